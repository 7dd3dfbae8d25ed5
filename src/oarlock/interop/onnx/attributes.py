"""Convert the attributes of a node to Python values."""

from collections.abc import Mapping
from typing import Any

from oarlock.errors import FormatError
from oarlock.interop.onnx.known_value import Known
from oarlock.interop.onnx.rule import Unsupported
from oarlock.interop.onnx.tensors import TensorReader, UnknownElementTypeError

__all__ = ["read_attributes", "substituted"]

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
