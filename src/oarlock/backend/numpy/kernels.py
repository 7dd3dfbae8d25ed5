"""The kernels by the operators that they compute."""

from collections.abc import Callable
from typing import Any

__all__ = ["KERNELS", "kernel"]

KERNELS: dict[str, Callable[..., Any]] = {}
"""By the operator's name. A kernel takes and returns arrays as the operator's own takes and returns tensors, and changes none of them."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare the kernel of the operator that has the name of the function."""
    KERNELS[function.__name__.removesuffix("_")] = function
    return function
