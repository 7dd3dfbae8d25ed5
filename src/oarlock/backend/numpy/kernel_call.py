"""Calling an operator's NumPy kernel on tensors at the processor. They share their memory with the arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from oarlock.backend.numpy import elementwise, manipulation, products, reduction, training
from oarlock.backend.numpy.kernels import KERNELS
from oarlock.registry.declaration import Operator

__all__ = ["call", "has_kernel"]

_FAMILIES = elementwise, products, reduction, manipulation, training  # which declare their kernels when they are imported


def has_kernel(operator: Operator) -> bool:
    """Whether NumPy computes an operator, for which a kernel is declared.

    Operators with blocks run what is in their blocks, whatever computes that.
    """
    return (operator.catalogue, operator.type) in KERNELS or bool(operator.block_attributes)


def call(operator: Operator, given: Mapping[str, Sequence[Any]], attributes: Mapping[str, object], context: object) -> dict[str, list[Any]]:
    """Compute the results of `Operator.call` with NumPy.

    An operator with blocks is computed by its own kernel, and so are stacks of uneven tensors.
    """
    if operator.block_attributes or any(isinstance(value, list) for values in given.values() for value in values):
        return operator.call(given, attributes, context)
    arrays = {slot: [value.numpy() for value in values] for slot, values in given.items()}
    with np.errstate(all="ignore"):
        computed = operator.call(arrays, attributes, kernel=KERNELS[operator.catalogue, operator.type])
    return {slot: [_tensor(value) for value in values] for slot, values in computed.items()}


def _tensor(value: Any) -> torch.Tensor:
    """A tensor of an array, or of a number of NumPy's; in memory of its own, where it may be written over."""
    return torch.from_numpy(np.array(value))
