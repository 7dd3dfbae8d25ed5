"""Convert a finished graph to an ONNX message, without unread values."""

from collections.abc import Iterator
from typing import Any

import numpy

from oarlock.interop.onnx.export_graph import Graph, Node, Value, all_nodes, blocks_of, onnx_dtype
from oarlock.interop.onnx.package import get_package

__all__ = ["IR_VERSIONS", "write_model"]

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
