"""Convert a finished graph to an ONNX message, without unread values, and write it as a file.

Large tensors are written to a second file if one message cannot hold them.
"""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy

from oarlock.errors import ArgumentError
from oarlock.interop.onnx.export_graph import Graph, Node, Value, all_nodes, blocks_of, onnx_dtype
from oarlock.interop.onnx.package import get_package
from oarlock.io.atomic_write import write_file
from oarlock.ir.location import here

__all__ = ["IR_VERSIONS", "write_model", "write_model_file"]

# Messages


IR_VERSIONS = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
"""The IR version for each supported opset."""


def write_model(graph: Graph, name: str) -> Any:
    """Return the model of a main graph, whose inputs are in `graph.shared`."""
    onnx = get_package()
    drop_unread(graph)
    opset = graph.opset
    message = onnx.helper.make_model(
        _graph(graph, name, graph.shared.inputs),
        opset_imports=[onnx.helper.make_opsetid("", opset)],
        ir_version=IR_VERSIONS[opset],
        producer_name="oarlock",
    )
    read = {item for node in _every(graph) for item in node.inputs} | {value.name for value in graph.outputs}
    given = {value.name for value in graph.shared.inputs}
    for label, array in graph.shared.initializers.items():
        if label in read or label in given:
            message.graph.initializer.append(_tensor(array, label))
    return message


def _every(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield from all_nodes(node)


def drop_unread(graph: Graph) -> None:
    """Remove nodes without readers from the graph and its nested blocks."""
    wanted = {value.name for value in graph.outputs}
    kept = []
    for node in reversed(graph.nodes):
        if not wanted.isdisjoint(node.outputs):
            kept.append(node)
            wanted.update(node.inputs)
            for block in blocks_of(node):
                drop_unread(block)
                wanted.update(name for inner in _every(block) for name in inner.inputs)
    graph.nodes = kept[::-1]


def _graph(graph: Graph, name: str, inputs: list[Value]) -> Any:
    onnx = get_package()
    return onnx.helper.make_graph(
        [_node(node) for node in graph.nodes],
        name,
        [_value_info(value) for value in inputs],
        [_value_info(value) for value in graph.outputs],
    )


def _node(node: Node) -> Any:
    onnx = get_package()
    message = onnx.helper.make_node(node.type, node.inputs, node.outputs, name=node.name)
    for name, value in node.attributes.items():
        if isinstance(value, Graph):
            value = _graph(value, f"{node.name}/{name}", value.inputs)
        elif isinstance(value, numpy.ndarray):
            value = _tensor(value, "")
        message.attribute.append(onnx.helper.make_attribute(name, value))
    return message


def _value_info(value: Value) -> Any:
    return get_package().helper.make_tensor_value_info(value.name, onnx_dtype(value.dtype), value.shape)


def _tensor(array: numpy.ndarray, name: str) -> Any:
    return get_package().numpy_helper.from_array(array, name)


# Files


_LARGEST = 2**31 - 2**24  # bytes of tensors in one message, whose total must stay below 2**31
_SMALLEST_OUTSIDE = 1024  # bytes: smaller tensors, such as shapes, stay in the message
_ALIGNMENT = 4096  # of tensors in the second file, so that they can be memory-mapped


def write_model_file(model: Any, path: str | os.PathLike[str] | io.BufferedIOBase) -> None:
    """Write the file; its tensors go to `NAME.data` in the same folder if they are too large for one message.

    Raises ArgumentError for such a model and an open file, and the errors of `write_file`.
    """
    large = sum(len(tensor.raw_data) for tensor in _tensors(model.graph)) > _LARGEST
    if isinstance(path, io.BufferedIOBase):
        if large:
            raise ArgumentError(
                "the model has more than 2 GiB of values, which do not fit in one ONNX message",
                location=here(),
                hint="pass a path, so that the values can be written to a second file",
            )
        path.write(model.SerializeToString())
        return
    if large:
        beside = Path(path).with_name(f"{Path(path).name}.data")
        write_file(beside, memoryview(_moved_out(model, beside.name)))
    write_file(path, model.SerializeToString())


def _moved_out(model: Any, location: str) -> bytearray:
    """Move the large tensors of `model` to an external file at `location`; return its bytes. Each tensor starts on a page."""
    data = bytearray()
    for tensor in _tensors(model.graph):
        raw = tensor.raw_data
        if len(raw) < _SMALLEST_OUTSIDE:
            continue
        data.extend(bytes(-len(data) % _ALIGNMENT))
        for key, value in (("location", location), ("offset", len(data)), ("length", len(raw))):
            tensor.external_data.add(key=key, value=str(value))
        data.extend(raw)
        tensor.ClearField("raw_data")
        tensor.data_location = get_package().TensorProto.EXTERNAL
    return data


def _tensors(graph: Any) -> Iterator[Any]:
    """Iterate over the tensors of a graph and of its nested graphs."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            elif attribute.HasField("g"):
                yield from _tensors(attribute.g)
