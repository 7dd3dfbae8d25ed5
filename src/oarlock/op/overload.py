"""Operators of PyTorch, called without the Python around them."""

from collections.abc import Callable
from typing import Any

__all__ = ["without_python"]


def without_python(overload: Callable[..., Any]) -> Callable[..., Any]:
    """What an overload in `torch.ops.aten`, a Python object, does nothing but call; itself where it does not say."""
    return getattr(overload, "_op", overload)
