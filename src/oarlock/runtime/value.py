"""Into tensors and out of them."""

import numpy
import torch

from oarlock.errors import DTypeError
from oarlock.ir.dtype import DType
from oarlock.tensor.dtype import from_torch, to_torch

__all__ = [
    "EXACT_IN_FLOAT64",
    "describe_value",
    "exact_numbers",
    "find_dense_form",
    "first_beyond",
    "is_dense",
    "of_dtype",
    "read_as",
    "to_numpy",
    "to_tensor",
    "whole_numbers",
]

EXACT_IN_FLOAT64 = 2**53
"""Integers of this magnitude and above are not all numbers of float64."""


def to_tensor(value: object) -> torch.Tensor:
    """`value` as a tensor; NumPy's memory is copied, a tensor is taken as it is.

    The copy lies in memory of PyTorch's, which begins where kernels read it fastest: NumPy's may begin in the middle of a cache line.
    Python floats become float32, as in PyTorch. Raises DTypeError for what no tensor of ours can hold.
    """
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
        if tensor.is_conj() or tensor.is_neg():  # what PyTorch leaves to be done by whoever reads it
            tensor = tensor.resolve_conj().resolve_neg()
    elif isinstance(value, numpy.ndarray | numpy.generic):
        if value.dtype.kind not in "fiubc" or value.dtype.itemsize > (16 if value.dtype.kind == "c" else 8):
            raise DTypeError(f"an array of {value.dtype} is not numbers that a program can hold")
        tensor = torch.tensor(numpy.asarray(value, order="C"))
    else:
        try:
            tensor = torch.tensor(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise DTypeError(f"{type(value).__name__} {value!r:.60} is not numbers that a program can hold") from error
    if from_torch(tensor.dtype) is None:
        raise DTypeError(f"a tensor of {tensor.dtype} is not one that a program can hold")
    return tensor


def exact_numbers(value: object, tensor: torch.Tensor) -> torch.Tensor | None:
    """The numbers of Python's that `tensor` was made of, as they are; None for an array or a tensor, which has a dtype of its own.

    Integers beside floats are float64, or int64 where all are whole and float64 does not hold them.
    """
    if isinstance(value, torch.Tensor | numpy.ndarray | numpy.generic):
        return None
    wide = torch.float64 if tensor.is_floating_point() else torch.complex128 if tensor.is_complex() else None
    if wide is None:
        return tensor.clone()
    exact = torch.tensor(value, dtype=wide)
    whole = whole_numbers(value) if wide is torch.float64 and bool((exact.abs() >= EXACT_IN_FLOAT64).any()) else None
    return exact if whole is None else whole


def whole_numbers(value: object) -> torch.Tensor | None:
    """`value`, numbers in nested lists, as int64; None where one is not whole, or int64 does not hold it."""
    items = numpy.array(value, dtype=object)
    numbers = [item.item() if isinstance(item, numpy.generic | torch.Tensor) else item for item in items.reshape(-1).tolist()]
    if not all(isinstance(number, int) or (isinstance(number, float) and number.is_integer()) for number in numbers):
        return None
    integers = [int(number) for number in numbers]
    if not all(-(2**63) <= integer < 2**63 for integer in integers):
        return None
    return torch.tensor(integers, dtype=torch.int64).reshape(items.shape)


def read_as(value: object, dtype: DType) -> torch.Tensor:
    """`value` as a tensor; Python's numbers, which have no dtype of their own, as `dtype`, where that keeps what they say.

    Python's floats are read as they are, not by way of float32. Raises what `to_tensor` does, and DTypeError for a number beyond `dtype`.
    """
    tensor = to_tensor(value)
    exact = exact_numbers(value, tensor)
    read = None if exact is None else of_dtype(exact, dtype)
    if read is None and exact is not None and dtype.is_inexact and _keeps_numbers(exact, dtype):
        beyond = first_beyond(exact, exact.to(to_torch(dtype)))
        raise DTypeError(f"{beyond!r} is beyond {dtype}, whose largest number is {torch.finfo(to_torch(dtype)).max:.6g}")
    return tensor if read is None else read


def first_beyond(exact: torch.Tensor, read: torch.Tensor) -> float | None:
    """The first finite number of `exact` that became infinite in `read`, the same numbers as another dtype; None without one."""
    if not (read.is_floating_point() or read.is_complex()) or not bool(torch.isinf(read).any()):
        return None
    beyond = torch.isinf(read) & torch.isfinite(exact)
    return exact[beyond].reshape(-1)[0].item() if bool(beyond.any()) else None


def of_dtype(exact: torch.Tensor, dtype: DType) -> torch.Tensor | None:
    """Python's `exact` numbers as `dtype`; None where it does not hold them: a fraction for an integer, or a number that is too large."""
    if not _keeps_numbers(exact, dtype):
        return None
    read = exact.to(to_torch(dtype))
    is_same = first_beyond(exact, read) is None if dtype.is_inexact else torch.equal(read.to(exact.dtype), exact)
    return read if is_same else None


def to_numpy(tensor: torch.Tensor) -> numpy.ndarray:
    """A copy of the tensor as an array of its own; bfloat16, which NumPy lacks, as float32. Raises DTypeError for one that is not dense."""
    try:
        found = tensor.detach().cpu()
        return numpy.array((found.float() if found.dtype is torch.bfloat16 else found).numpy())
    except (RuntimeError, TypeError) as error:
        if is_dense(tensor, False):
            raise
        raise DTypeError(f"{describe_value(tensor)} is no array", hint=find_dense_form(tensor)) from error


def is_dense(tensor: torch.Tensor, at_meta: bool) -> bool:
    """Whether each element has its place in memory, by strides, as kernels read them. Where a run is `at_meta`, there need be no memory."""
    return tensor.layout is torch.strided and not tensor.is_nested and (at_meta or not tensor.is_meta)


def find_dense_form(value: object) -> str | None:
    """How a tensor that is not dense is made so, as a caller would write it; None for other values."""
    if not isinstance(value, torch.Tensor) or is_dense(value, False):
        return None
    if value.is_nested:
        return "value.to_padded_tensor(0.0)"
    return "value.to_dense()" if value.layout is not torch.strided else 'torch.zeros_like(value, device="cpu")'


def describe_value(value: object) -> str:
    """A description of a value, for a message: `float32[3, 4]` for a tensor of a type and a layout that programs have."""
    if not isinstance(value, torch.Tensor):
        return f"a {type(value).__name__}"
    if value.is_nested:  # which may have no shape
        return "a nested tensor"
    if value.layout is not torch.strided:
        return "a tensor in a layout of MKL-DNN" if value.is_mkldnn else "a sparse tensor"
    return f"{from_torch(value.dtype) or value.dtype}{list(value.shape)}" + (' without elements (device "meta")' if value.is_meta else "")


def _keeps_numbers(tensor: torch.Tensor, dtype: DType) -> bool:
    """Whether numbers, read as `tensor`, may become `dtype` without losing a fraction. Only truth values are truth values."""
    if tensor.dtype == torch.bool or dtype is DType.BOOL:
        return dtype is DType.BOOL and tensor.dtype == torch.bool
    if tensor.is_complex():
        return dtype.is_complex
    return dtype.is_inexact or not tensor.is_floating_point() or tensor.numel() == 0
