"""Attributes of nodes as Python values, and function bodies of operators."""

from collections.abc import Mapping, Sequence
from typing import Any

from oarlock.errors import FormatError
from oarlock.interop.onnx.known_value import Known
from oarlock.interop.onnx.package import get_package
from oarlock.interop.onnx.rule import Unsupported
from oarlock.interop.onnx.tensors import NUMBERS, TensorReader, UnknownElementTypeError
from oarlock.ir.var import Var

__all__ = ["find_body", "read_attributes", "substituted"]

# Attributes


_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS = range(1, 9)


def read_attributes(attributes: Mapping[str, Any], node: Any, reader: TensorReader) -> dict[str, Any]:
    """Return the attributes by name: numbers, strings, tuples of them, tensors as known values, and graphs unchanged.

    Raises FormatError for strings that are not Unicode, and Unsupported for other kinds of attributes.
    """
    return {name: _read(attribute, f'{node.op_type[:80]} "{node.name[:80]}"', reader) for name, attribute in attributes.items()}


def _read(attribute: Any, what: str, reader: TensorReader) -> Any:
    kind = attribute.type
    if kind == _FLOAT:
        return attribute.f
    if kind == _INT:
        return attribute.i
    if kind == _STRING:
        return _text(attribute.s, what)
    if kind == _GRAPH:
        return attribute.g
    if kind == _FLOATS:
        return tuple(attribute.floats)
    if kind == _INTS:
        return tuple(attribute.ints)
    if kind == _STRINGS:
        return tuple(_text(item, what) for item in attribute.strings)
    if kind == _TENSOR:
        try:
            dtype, shape, read = reader.open(attribute.t, f"a tensor of {what}")
        except UnknownElementTypeError as error:
            raise Unsupported(f"the attribute {attribute.name[:80]} is a tensor of {error}, which is not supported") from None
        return Known(dtype, shape, read)
    raise Unsupported(f"the kind of the attribute {attribute.name[:80]} is not supported")


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise FormatError(f"{what} has an attribute that is not Unicode") from None


def substituted(attributes: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a node inside a function, with references replaced by the attributes of the call, `given`."""
    found: dict[str, Any] = {}
    for name, attribute in attributes.items():
        if not attribute.ref_attr_name:
            found[name] = attribute
        elif attribute.ref_attr_name in given:
            found[name] = given[attribute.ref_attr_name]
    return found


# Function bodies


def find_body(
    node: Any, attributes: Mapping[str, Any], domain: str, opset: int | None, inputs: Sequence[object]
) -> tuple[Any, dict[str, Any]] | None:
    """Return the FunctionProto of a node with these inputs, and the default attributes in its schema.

    None if there is no schema, or the schema has no body.
    """
    onnx = get_package()
    if opset is None:
        return None
    try:
        schema = onnx.defs.get_schema(node.op_type, min(opset, onnx.defs.onnx_opset_version()) if not domain else opset, domain)
    except onnx.defs.SchemaError:
        return None
    defaults = {name: item.default_value for name, item in schema.attributes.items() if item.default_value.type}
    if schema.has_function:
        return schema.function_body, defaults
    if not schema.has_context_dependent_function or not all(item is None or isinstance(item, Var | Known) for item in inputs):
        return None
    types = [_type_of(item, onnx).SerializeToString() for item in inputs]
    try:
        body = schema.get_context_dependent_function(_with(node, attributes, onnx).SerializeToString(), types)
        return (onnx.FunctionProto.FromString(body), defaults) if body else None
    except Exception:  # the schema does not support the node: it has no body for it
        return None


def _with(node: Any, attributes: Mapping[str, Any], onnx: Any) -> Any:
    """Return the node with its attributes, in which references are resolved."""
    found = onnx.NodeProto()
    found.CopyFrom(node)
    del found.attribute[:]
    for name, attribute in attributes.items():
        found.attribute.add().CopyFrom(attribute)
        found.attribute[-1].name = name
    return found


def _type_of(value: object, onnx: Any) -> Any:
    """Return the type of an input as a TypeProto; an empty one for an omitted input."""
    if not isinstance(value, Var | Known):
        return onnx.TypeProto()
    shape = None if value.shape is None else [size if isinstance(size, int) else None for size in value.shape]
    return onnx.helper.make_tensor_type_proto(NUMBERS[value.dtype], shape)
