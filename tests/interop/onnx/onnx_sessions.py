"""An exported program in ONNX Runtime, after every check that there is."""

import io

import numpy
import onnx
import onnxruntime
import torch

from oarlock.interop.onnx.export import Exported, to_onnx
from oarlock.ir.names import is_name

__all__ = ["Session", "export", "session_of"]

onnxruntime.set_default_logger_severity(4)  # what it says of sizes in blocks, which differ from trip to trip


class Session:
    """An exported program, and the runtime that has it."""

    def __init__(self, exported: Exported, data: bytes):
        self.exported, self.data = exported, data
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(data, options)

    @property
    def model(self) -> onnx.ModelProto:
        return onnx.load_from_string(self.data)

    def run(self, feed: dict[str, object]) -> dict[str, numpy.ndarray]:
        """The outputs for `feed`, of which the session is given the inputs that it takes."""
        given = {name: value.numpy() if isinstance(value, torch.Tensor) else numpy.asarray(value) for name, value in feed.items()}
        taken = {item.name: given[item.name] for item in self.session.get_inputs()}
        return dict(zip(self.exported.outputs, self.session.run(None, taken), strict=True))


def export(target: object, parameters: object = None, *, opset: int = 18, training: bool = False) -> tuple[Exported, bytes]:
    """Export to memory, and hold the file to ONNX's own rules, each value to the type that is inferred for it."""
    held = io.BytesIO()
    exported = to_onnx(target, held, parameters, opset=opset, training=training)
    model = onnx.load_from_string(held.getvalue())
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    assert [item.name for item in model.graph.input] == list(exported.inputs)
    assert [item.name for item in model.graph.output] == list(exported.outputs)
    assert all(is_name(name) for name in (*exported.inputs, *exported.outputs))
    assert {item.domain for item in model.opset_import} == {""}
    return exported, held.getvalue()


def session_of(target: object, parameters: object = None, *, opset: int = 18, training: bool = False) -> Session:
    return Session(*export(target, parameters, opset=opset, training=training))
