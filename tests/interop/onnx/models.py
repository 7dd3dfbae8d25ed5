"""Small ONNX models, written by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["BOOL", "FLOAT", "INT64", "model", "node", "tensor", "written"]

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def tensor(name: str, values: object, dtype: str = "float32") -> onnx.TensorProto:
    return numpy_helper.from_array(numpy.array(values, dtype=dtype), name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, object],
    outputs: Sequence[str],
    initializers: Sequence[onnx.TensorProto] = (),
    *,
    opset: int = 21,
    functions: Sequence[onnx.FunctionProto] = (),
    domains: Sequence[str] = (),
) -> onnx.ModelProto:
    """A model: inputs are shapes, of floats where no element type stands before the shape, `(INT64, [2])`."""
    values = []
    for name, kind in inputs.items():
        element, shape = kind if isinstance(kind, tuple) else (FLOAT, kind)
        values.append(helper.make_tensor_value_info(name, element, shape))  # type: ignore[arg-type]
    results = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    graph = helper.make_graph(list(nodes), "graph", values, results, list(initializers))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10)


def written(folder: Path, built: onnx.ModelProto, name: str = "model.onnx") -> Path:
    path = folder / name
    path.write_bytes(built.SerializeToString())
    return path
