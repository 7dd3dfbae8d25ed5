"""The attributes of a node as Python's values."""

from collections.abc import Mapping
from typing import Any

from oarlock.errors import FormatError
from oarlock.interop.onnx.known_value import Known
from oarlock.interop.onnx.rule import Unsupported
from oarlock.interop.onnx.tensors import TensorReader, UnknownElementTypeError

__all__ = ["read_attributes", "substituted"]

_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS = range(1, 9)


def read_attributes(attributes: Mapping[str, Any], node: Any, reader: TensorReader) -> dict[str, Any]:
    """Values by name: numbers, text, tuples of them, tensors as known values, graphs as they are.

    Raises FormatError for text that is not Unicode, Unsupported for kinds that we have nothing for.
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
            raise Unsupported(f"the attribute {attribute.name[:80]} is a tensor of {error}") from None
        return Known(dtype, shape, read)
    raise Unsupported(f"the attribute {attribute.name[:80]} is of a kind that is not read")


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise FormatError(f"{what} has an attribute that is not Unicode") from None


def substituted(attributes: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a node inside a function, of which some stand for those that the function was `given`."""
    found: dict[str, Any] = {}
    for name, attribute in attributes.items():
        if not attribute.ref_attr_name:
            found[name] = attribute
        elif attribute.ref_attr_name in given:
            found[name] = given[attribute.ref_attr_name]
    return found
