"""PyTorch's functions and Python's own: what a tensor of one number each comes to where the host has the numbers."""

import operator
from collections.abc import Callable

import torch

__all__ = ["HOST_FUNCTIONS"]

HOST_FUNCTIONS: dict[Callable[..., object], Callable[..., object]] = {
    torch.add: operator.add,
    torch.sub: operator.sub,
    torch.mul: operator.mul,
    torch.neg: operator.neg,
    torch.gt: operator.gt,
    torch.ge: operator.ge,
    torch.lt: operator.lt,
    torch.le: operator.le,
    torch.eq: operator.eq,
    torch.ne: operator.ne,
    torch.logical_and: operator.and_,
    torch.logical_or: operator.or_,
    torch.logical_not: operator.not_,
}
"""Of bools they give what PyTorch gives; of integers what it would if these had no end."""
