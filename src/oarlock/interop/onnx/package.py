"""The `onnx` package, an extra: imported when a model is read or written, not before."""

import importlib
from typing import Any

from oarlock.errors import ArgumentError

__all__ = ["get_package"]


def get_package(name: str = "onnx") -> Any:
    """The package called `name`. Raises ArgumentError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ArgumentError(f"{name} is not installed, and ONNX models need it", hint='pip install "oarlock[onnx]"') from None
