"""Python functions on numbers that give the results of PyTorch functions on tensors of one element."""

import operator
from collections.abc import Callable, Sequence

import torch

__all__ = ["find_host_function"]

Function = Callable[..., object]

_NUMBERS: dict[Function, Function] = {torch.add: operator.add, torch.sub: operator.sub, torch.mul: operator.mul, torch.neg: operator.neg}
"""Equal to PyTorch's for integers, except for overflow. Not valid for bools."""

_COMPARISONS: dict[Function, Function] = {
    torch.gt: operator.gt,
    torch.ge: operator.ge,
    torch.lt: operator.lt,
    torch.le: operator.le,
    torch.eq: operator.eq,
    torch.ne: operator.ne,
}

_BOOLS: dict[Function, Function] = {
    torch.logical_and: operator.and_,
    torch.logical_or: operator.or_,
    torch.logical_not: operator.not_,
}
"""Only valid for bools: for integers, Python's are bitwise."""


def find_host_function(function: Function, dtypes: Sequence[str]) -> Function | None:
    """Return the Python function that gives the same results as a PyTorch function for inputs of these dtypes, or None."""
    if "bool" in dtypes:
        return (_COMPARISONS | _BOOLS).get(function) if set(dtypes) == {"bool"} else None
    return (_COMPARISONS | ({} if {"T", "any"} & set(dtypes) else _NUMBERS)).get(function)
