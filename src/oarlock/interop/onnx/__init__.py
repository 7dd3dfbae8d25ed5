"""ONNX models read and written. Nothing here needs the package `onnx` before a model is."""

from oarlock.interop.onnx.export import Exported, to_onnx
from oarlock.interop.onnx.importing import from_onnx

__all__ = ["Exported", "from_onnx", "to_onnx"]
