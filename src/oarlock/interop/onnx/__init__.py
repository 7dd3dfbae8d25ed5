"""Import and export of ONNX models. The package `onnx` is only imported when a model is read or written."""

from oarlock.interop.onnx.export import Exported, to_onnx
from oarlock.interop.onnx.importing import from_onnx

__all__ = ["Exported", "from_onnx", "to_onnx"]
