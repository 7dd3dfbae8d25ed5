"""From PyTorch's name to the call of ours that computes the same, as a user would write it, of the arguments that PyTorch takes."""

from collections.abc import Callable
from typing import Any

from database_table import (
    activations,
    convolutions,
    creation,
    elementwise,
    fourier,
    indexing,
    linear_algebra,
    losses,
    masked,
    normalizations,
    products,
    reductions,
    shapes,
    special,
)
from database_table.left_out import LEFT_OUT

__all__ = ["LEFT_OUT", "TABLE"]

_FAMILIES = (
    elementwise,
    reductions,
    shapes,
    indexing,
    products,
    activations,
    convolutions,
    creation,
    special,
    losses,
    normalizations,
    masked,
    linear_algebra,
    fourier,
)

TABLE: dict[str, Callable[..., Any]] = {name: call for family in _FAMILIES for name, call in family.CALLS.items()}
