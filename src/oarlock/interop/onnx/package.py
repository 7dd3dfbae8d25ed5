"""Import the `onnx` package, an extra, on first use."""

import importlib
from typing import Any

from oarlock.errors import ArgumentError

__all__ = ["get_package"]


def get_package(name: str = "onnx") -> Any:
    """Import the package `name`. Raises ArgumentError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ArgumentError(f"{name} is not installed, but ONNX models require it", hint='pip install "oarlock[onnx]"') from None
