"""ONNX models read and written. Nothing here needs the package `onnx` before a model is."""

from oarlock.interop.onnx.importing import from_onnx

__all__ = ["from_onnx"]
