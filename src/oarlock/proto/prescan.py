"""Walk the bytes of a program before protobuf sees them.

Four bytes of a message may become a hundred in memory, and a parser takes the last of two values of one field. So the
tags are read first, once, from front to back, with nothing built: a reader knows how much there is, that each field is
one of ours and of its own kind, and that no field that stands once stands twice.
"""

from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from oarlock.errors import FormatError, LimitError
from oarlock.proto import program_pb2 as wire
from oarlock.proto.limits import Limits

__all__ = ["prescan"]

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_WIRE_TYPES = {FieldDescriptor.TYPE_DOUBLE: _FIXED64}
_LENGTHS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE)


class _Field(NamedTuple):
    """One field of a message: how it is encoded, and what may follow from meeting it."""

    name: str
    wire_type: int
    once: str  # what stands once in a message, a field or a oneof; empty where the field is repeated
    message: "dict[int, _Field] | None"


def _fields(message: Descriptor, known: dict[str, dict[int, _Field]]) -> dict[int, _Field]:
    """The fields of a message by number. No message of ours holds itself, at any depth."""
    if message.full_name not in known:
        known[message.full_name] = table = {}
        for field in message.fields:
            group = field.containing_oneof.name if field.containing_oneof else field.name
            table[field.number] = _Field(
                f"{message.name}.{field.name}",
                # a repeated number is packed: one run of bytes
                _LENGTH if field.is_repeated or field.type in _LENGTHS else _WIRE_TYPES.get(field.type, _VARINT),
                "" if field.is_repeated else group,
                _fields(field.message_type, known) if field.message_type else None,
            )
    return known[message.full_name]


_FILE = _fields(wire.ProgramFile.DESCRIPTOR, {})  # type: ignore[arg-type]
_VERSION = "ProgramDesc.version"


def prescan(data: bytes, limits: Limits, *, versions: Sequence[int]) -> None:
    """Raise FormatError or LimitError where `data` is not one canonical-enough message of one of `versions`. Linear in `data`.

    Fields that this format does not know are refused: what they mean, only a later version knows. Depth is bounded by
    the format, in which no message holds its own kind.
    """
    messages = texts = at = 0
    end = len(data)
    fields, seen = _FILE, set()
    around: list[tuple[dict[int, _Field], set[str], int]] = []
    while True:
        if at == end:
            if not around:
                return
            fields, seen, end = around.pop()
            continue
        tag, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at, end)  # most numbers are one byte
        field = fields.get(tag >> 3)
        if field is None or field.wire_type != tag & 7:
            kind = "is of another kind" if field else "is not a field of this version"
            raise _refused(f"byte {at - 1}: {field.name if field else f'number {tag >> 3}'} {kind}")
        if field.once:
            if field.once in seen:
                raise _refused(f"byte {at - 1}: {field.name} stands there a second time")
            seen.add(field.once)
        if field.wire_type == _VARINT:
            value, at = _varint(data, at, end)
            if field.name == _VERSION and value not in versions:
                raise FormatError(f"this is format version {value}; this Oarlock reads versions {' and '.join(map(str, versions))}")
            continue
        if field.wire_type == _FIXED64:
            at += 8
            if at > end:
                raise _refused(f"byte {at - 8}: {field.name} is cut short")
            continue
        length, at = (data[at], at + 1) if at < end and data[at] < 128 else _varint(data, at, end)
        if length > end - at:
            raise _refused(f"byte {at}: {field.name} has {length:,} bytes, where {end - at:,} are left")
        if field.message is None:
            at += length
            texts += not field.once
            if texts > limits.texts:
                raise _too_many("texts", limits.texts)
            continue
        messages += 1
        if messages > limits.messages:
            raise _too_many("messages", limits.messages)
        around.append((fields, seen, end))
        fields, seen, end = field.message, set(), at + length


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at `at`, at most ten bytes, and where it ends."""
    number = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise _refused(f"byte {at}: a number does not end")


def _refused(reason: str) -> FormatError:
    return FormatError("these bytes are not an Oarlock program", given=[reason])


def _too_many(name: str, allowed: int) -> LimitError:
    return LimitError(f"a program of more than {allowed:,} {name}", hint=f"limits=Limits({name}=...)")
