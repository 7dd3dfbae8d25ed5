"""Into tensors and out of them."""

import numpy
import torch

from oarlock.errors import DTypeError
from oarlock.ir.dtype import DType
from oarlock.op.torch_dtype import from_torch

__all__ = ["keeps_numbers", "to_numpy", "to_tensor"]


def to_tensor(value: object) -> torch.Tensor:
    """`value` as a tensor; NumPy's memory is copied, a tensor is taken as it is.

    The copy lies in memory of PyTorch's, which begins where kernels read it fastest: NumPy's may begin in the middle of a cache line.
    Python floats become float32, as in PyTorch. Raises DTypeError for what no tensor of ours can hold.
    """
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
    elif isinstance(value, numpy.ndarray | numpy.generic):
        if value.dtype.kind not in "fiub" or value.dtype.itemsize > 8:
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


def to_numpy(tensor: torch.Tensor) -> numpy.ndarray:
    """A copy of the tensor as an array of its own; bfloat16, which NumPy lacks, as float32."""
    tensor = tensor.detach().cpu()
    return numpy.array((tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy())


def keeps_numbers(tensor: torch.Tensor, dtype: DType) -> bool:
    """Whether numbers, read as `tensor`, may become `dtype` without losing a fraction. Only truth values are truth values."""
    if tensor.dtype == torch.bool or dtype is DType.BOOL:
        return dtype is DType.BOOL and tensor.dtype == torch.bool
    return dtype.is_floating or not tensor.is_floating_point() or tensor.numel() == 0
