"""Attribute values in Python and in messages. Blocks are handled by `serialization`."""

import base64
import json

from oarlock.errors import ArgumentError
from oarlock.ir.dtype import DType
from oarlock.ir.size import Shape, Size, format_shape
from oarlock.proto import program_pb2 as wire

__all__ = ["Sizes", "format_attribute", "read_attribute", "read_shape", "write_attribute", "write_shape"]


class Sizes(tuple[Size, ...]):
    """A shape given as an attribute. Unlike a plain tuple of ints, it may contain symbols."""


def write_attribute(name: str, value: object, desc: wire.AttributeDesc) -> None:
    """Write an attribute to `desc`. Raises ArgumentError for an unsupported value."""
    desc.name = name
    try:
        _write_value(value, desc)
    except ValueError as error:  # an integer beyond 64 bits, or invalid Unicode
        raise ArgumentError(f"{value!r:.60} is not a valid attribute: {error}") from error


def _write_value(value: object, desc: wire.AttributeDesc) -> None:
    if isinstance(value, bool):
        desc.bool = value
    elif isinstance(value, int):
        desc.int = value
    elif isinstance(value, float):
        desc.float = value
    elif isinstance(value, str):
        desc.string = value
    elif isinstance(value, bytes):
        desc.bytes = value
    elif isinstance(value, DType):
        desc.dtype = value.number  # type: ignore[assignment]
    elif isinstance(value, Sizes):
        write_shape(value, desc.shape)
    elif isinstance(value, tuple) and all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        desc.ints.SetInParent()
        desc.ints.values.extend(value)
    elif isinstance(value, tuple) and all(isinstance(item, float) for item in value):
        desc.floats.values.extend(value)
    elif isinstance(value, tuple) and all(isinstance(item, str) for item in value):
        desc.strings.values.extend(value)
    else:
        raise ArgumentError(f"{value!r} is not a valid attribute")


def read_attribute(desc: wire.AttributeDesc) -> object:
    """Return the value in `desc`. Raises ValueError or KeyError if it has none."""
    kind = desc.WhichOneof("value")
    if kind is None:
        raise ValueError("it has no value")
    if kind in ("block", "var"):
        raise ValueError(f"a {'block' if kind == 'block' else 'variable'} is not allowed here")
    if kind == "shape":
        return Sizes(read_shape(desc.shape))
    if kind == "dtype":
        return DType.from_number(desc.dtype)
    value = getattr(desc, kind)  # a field of our own message, named by `oneof value`
    return tuple(value.values) if kind in ("ints", "floats", "strings") else value


def write_shape(shape: Shape, desc: wire.ShapeDesc) -> None:
    desc.SetInParent()
    for size in shape:
        item = desc.sizes.add()
        if isinstance(size, int):
            item.number = size
        else:
            item.symbol = size


def read_shape(desc: wire.ShapeDesc) -> Shape:
    """Return the shape in `desc`. Raises ValueError if a size has no value."""
    sizes: list[Size] = []
    for item in desc.sizes:
        kind = item.WhichOneof("value")
        if kind is None:
            raise ValueError("a size has no value")
        sizes.append(item.number if kind == "number" else item.symbol)
    return tuple(sizes)


def format_attribute(value: object) -> str:
    """Return the value as printed in a program."""
    if isinstance(value, Sizes):
        return f"shape{format_shape(value)}"
    if isinstance(value, tuple):
        return "[" + ", ".join(format_attribute(item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, bytes):
        return f'bytes("{base64.b64encode(value).decode()}")'
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
