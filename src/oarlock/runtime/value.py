"""Conversion of values to and from tensors."""

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
"""From this magnitude on, not every integer is exact in float64."""


def to_tensor(value: object) -> torch.Tensor:
    """Return `value` as a tensor. NumPy arrays are copied; tensors are used as they are.

    The copy is in memory allocated by PyTorch, which is aligned for kernels. Python floats become float32, as in PyTorch.
    Raises DTypeError for values that cannot be stored in a tensor.
    """
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
        if tensor.is_conj() or tensor.is_neg():  # PyTorch leaves conjugation and negation to readers
            tensor = tensor.resolve_conj().resolve_neg()
    elif isinstance(value, numpy.ndarray | numpy.generic):
        if value.dtype.kind not in "fiubc" or value.dtype.itemsize > (16 if value.dtype.kind == "c" else 8):
            raise DTypeError(f"arrays of {value.dtype} are not supported")
        tensor = torch.tensor(numpy.asarray(value, order="C"))
    else:
        try:
            tensor = torch.tensor(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise DTypeError(f"{type(value).__name__} {value!r:.60} cannot be converted to a tensor") from error
    if from_torch(tensor.dtype) is None:
        raise DTypeError(f"tensors of {tensor.dtype} are not supported")
    return tensor


def exact_numbers(value: object, tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the Python numbers that `tensor` was made from, unrounded; None for an array or a tensor.

    Mixed integers and floats are float64, or int64 if all are whole and float64 cannot represent them.
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
    """Return nested lists of numbers as int64; None if one is not whole or does not fit."""
    items = numpy.array(value, dtype=object)
    numbers = [item.item() if isinstance(item, numpy.generic | torch.Tensor) else item for item in items.reshape(-1).tolist()]
    if not all(isinstance(number, int) or (isinstance(number, float) and number.is_integer()) for number in numbers):
        return None
    integers = [int(number) for number in numbers]
    if not all(-(2**63) <= integer < 2**63 for integer in integers):
        return None
    return torch.tensor(integers, dtype=torch.int64).reshape(items.shape)


def read_as(value: object, dtype: DType) -> torch.Tensor:
    """Return `value` as a tensor; Python numbers are converted to `dtype` if that is exact.

    Python floats are converted directly, not through float32. Raises the same as `to_tensor`, and DTypeError for a number out of range.
    """
    tensor = to_tensor(value)
    exact = exact_numbers(value, tensor)
    read = None if exact is None else of_dtype(exact, dtype)
    if read is None and exact is not None and dtype.is_inexact and _keeps_numbers(exact, dtype):
        beyond = first_beyond(exact, exact.to(to_torch(dtype)))
        raise DTypeError(f"{beyond!r} is out of range for {dtype}, whose maximum is {torch.finfo(to_torch(dtype)).max:.6g}")
    return tensor if read is None else read


def first_beyond(exact: torch.Tensor, read: torch.Tensor) -> float | None:
    """Return the first finite number of `exact` that became infinite in `read`, its converted form; None if there is none."""
    if not (read.is_floating_point() or read.is_complex()) or not bool(torch.isinf(read).any()):
        return None
    beyond = torch.isinf(read) & torch.isfinite(exact)
    return exact[beyond].reshape(-1)[0].item() if bool(beyond.any()) else None


def of_dtype(exact: torch.Tensor, dtype: DType) -> torch.Tensor | None:
    """Return `exact` as `dtype`, or None if it does not fit: a fraction as an integer, or a number out of range."""
    if not _keeps_numbers(exact, dtype):
        return None
    read = exact.to(to_torch(dtype))
    is_same = first_beyond(exact, read) is None if dtype.is_inexact else torch.equal(read.to(exact.dtype), exact)
    return read if is_same else None


def to_numpy(tensor: torch.Tensor) -> numpy.ndarray:
    """Return a copy as a NumPy array; bfloat16, which NumPy lacks, becomes float32. Raises DTypeError for a tensor that is not dense."""
    try:
        found = tensor.detach().cpu()
        return numpy.array((found.float() if found.dtype is torch.bfloat16 else found).numpy())
    except (RuntimeError, TypeError) as error:
        if is_dense(tensor, False):
            raise
        raise DTypeError(f"{describe_value(tensor)} cannot be converted to an array", hint=find_dense_form(tensor)) from error


def is_dense(tensor: torch.Tensor, at_meta: bool) -> bool:
    """Return whether the tensor is a strided tensor in memory, as kernels require. `at_meta` allows tensors without memory."""
    return tensor.layout is torch.strided and not tensor.is_nested and (at_meta or not tensor.is_meta)


def find_dense_form(value: object) -> str | None:
    """Return the Python expression that makes a sparse, nested or meta tensor dense; None for other values."""
    if not isinstance(value, torch.Tensor) or is_dense(value, False):
        return None
    if value.is_nested:
        return "value.to_padded_tensor(0.0)"
    return "value.to_dense()" if value.layout is not torch.strided else 'torch.zeros_like(value, device="cpu")'


def describe_value(value: object) -> str:
    """Return a description for messages: `float32[3, 4]` for an ordinary tensor."""
    if not isinstance(value, torch.Tensor):
        return f"a {type(value).__name__}"
    if value.is_nested:  # may have no shape
        return "a nested tensor"
    if value.layout is not torch.strided:
        return "a tensor in an MKL-DNN layout" if value.is_mkldnn else "a sparse tensor"
    return f"{from_torch(value.dtype) or value.dtype}{list(value.shape)}" + (' without elements (device "meta")' if value.is_meta else "")


def _keeps_numbers(tensor: torch.Tensor, dtype: DType) -> bool:
    """Return whether numbers read as `tensor` may become `dtype` without losing a fraction. Bools convert only to and from bools."""
    if tensor.dtype == torch.bool or dtype is DType.BOOL:
        return dtype is DType.BOOL and tensor.dtype == torch.bool
    if tensor.is_complex():
        return dtype.is_complex
    return dtype.is_inexact or not tensor.is_floating_point() or tensor.numel() == 0
