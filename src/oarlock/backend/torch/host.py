"""PyTorch's functions and Python's own: the function that gives, of numbers of the host, what a tensor of one number each would hold."""

import operator
from collections.abc import Callable, Sequence

import torch

__all__ = ["find_host_function"]

Function = Callable[..., object]

_NUMBERS: dict[Function, Function] = {torch.add: operator.add, torch.sub: operator.sub, torch.mul: operator.mul, torch.neg: operator.neg}
"""Of integers they give what PyTorch gives, if these had no end. Of bools they do not."""

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
"""Of integers Python goes bit by bit."""


def find_host_function(function: Function, dtypes: Sequence[str]) -> Function | None:
    """Python's function for one of PyTorch, of inputs declared so; None where there is none that gives the same."""
    if "bool" in dtypes:
        return (_COMPARISONS | _BOOLS).get(function) if set(dtypes) == {"bool"} else None
    return (_COMPARISONS | ({} if {"T", "any"} & set(dtypes) else _NUMBERS)).get(function)
