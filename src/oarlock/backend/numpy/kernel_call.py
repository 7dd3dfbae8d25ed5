"""Call an operator's NumPy kernel on CPU tensors, which share memory with the arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from oarlock.backend.numpy import elementwise, manipulation, products, reduction, training
from oarlock.backend.numpy.kernels import KERNELS
from oarlock.registry.declaration import Operator

__all__ = ["call", "has_kernel"]

_FAMILIES = elementwise, products, reduction, manipulation, training  # imported to register their kernels


def has_kernel(operator: Operator) -> bool:
    """Return whether NumPy computes an operator: it has a kernel, or it owns blocks.

    Operators with blocks run the ops of their blocks, with any backend.
    """
    return (operator.catalogue, operator.type) in KERNELS or bool(operator.block_attributes)


def call(operator: Operator, given: Mapping[str, Sequence[Any]], attributes: Mapping[str, object], context: object) -> dict[str, list[Any]]:
    """Compute the results of `Operator.call` with NumPy.

    Operators with blocks, and calls with uneven stacks, use the operator's own kernel.
    """
    if operator.block_attributes or any(isinstance(value, list) for values in given.values() for value in values):
        return operator.call(given, attributes, context)
    arrays = {slot: [value.numpy() for value in values] for slot, values in given.items()}
    with np.errstate(all="ignore"):
        computed = operator.call(arrays, attributes, kernel=KERNELS[operator.catalogue, operator.type])
    return {slot: [_tensor(value) for value in values] for slot, values in computed.items()}


def _tensor(value: Any) -> torch.Tensor:
    """Return a copy of an array or NumPy number as a tensor, so that it can be modified."""
    return torch.from_numpy(np.array(value))
