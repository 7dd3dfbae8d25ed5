"""TensorGuard: what some tensors were like, to tell of others at once whether they are the same."""

from collections.abc import Sequence

import torch

from oarlock.backend.torch.private import tensor_guards

__all__ = ["TensorGuard"]


class TensorGuard:
    """Called with as many values, it says whether they are tensors of the dtypes, sizes and devices of `tensors` that record no gradients.

    It may deny it of such too (one of them stands there twice, say): then it takes a closer look. How they lie in memory matters where
    `strides` are asked for; their layout always does. No value may be a nested tensor.
    """

    __slots__ = ("_agree",)

    def __init__(self, tensors: Sequence[torch.Tensor], *, strides: bool = False):
        self._agree = tensor_guards(tensors, strides=strides) or _Types(tensors, strides)  # one call takes a fifth of asking each

    def __call__(self, *values: object) -> bool:
        return self._agree(*values)


class _Types:
    """The same, where PyTorch has no such call."""

    def __init__(self, tensors: Sequence[torch.Tensor], strides: bool):
        self._strides = strides
        self._types = [self._type(tensor) for tensor in tensors]

    def __call__(self, *values: object) -> bool:
        return all(
            type(value) is torch.Tensor and not value.requires_grad and self._type(value) == known
            for value, known in zip(values, self._types, strict=True)
        )

    def _type(self, tensor: torch.Tensor) -> tuple[object, ...]:
        return tensor.dtype, tensor.shape, tensor.device, tensor.layout, tensor.stride() if self._strides else None
