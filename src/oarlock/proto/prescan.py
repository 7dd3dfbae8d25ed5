"""Walk the bytes of a message before protobuf sees them: of a program of ours, or of another format.

Four bytes of a message may become a hundred in memory, and a parser takes the last of two values of one field. So the
tags are read first, once, from front to back, with nothing built: a reader knows how much there is, that each field is
one of the format's and of its own kind, and that no field that stands once stands twice.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor

from oarlock.errors import FormatError, LimitError
from oarlock.proto import program_pb2 as wire
from oarlock.proto.limits import Limits

__all__ = ["LENGTH", "Field", "Fields", "Format", "fields_of", "prescan", "scan"]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_WIRE_TYPES = {FieldDescriptor.TYPE_DOUBLE: FIXED64, FieldDescriptor.TYPE_FLOAT: FIXED32}
_LENGTHS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE)


class Field(NamedTuple):
    """One field of a message: how it is encoded, and what may follow from meeting it."""

    name: str
    wire_types: tuple[int, ...]
    once: str = ""  # what stands once in a message, a field or a oneof; empty where the field is repeated
    message: "Fields | None" = None
    is_counted: bool = False  # among the texts
    is_text: bool = False  # which is held to be Unicode here
    is_data: bool = False  # as large in memory as in the file, so that its bytes are not those of the program


Fields = dict[int, Field]


class Format(NamedTuple):
    """The fields of a format's outermost message, and how what is no such message is refused."""

    fields: Fields
    refused: str
    unknown: str
    too_many: str  # how a LimitError begins
    depth: int  # of messages in messages


def fields_of(message: Any, make: Callable[[Any, Field], Field], known: dict[str, Fields]) -> Fields:
    """The fields of a message by number, each as `make` makes it of its descriptor and of what is so in every format."""
    if message.full_name not in known:
        known[message.full_name] = table = {}
        for field in message.fields:
            kind = LENGTH if field.type in _LENGTHS else _WIRE_TYPES.get(field.type, VARINT)
            group = field.containing_oneof.name if field.containing_oneof else field.name
            inner = fields_of(field.message_type, make, known) if field.message_type else None
            table[field.number] = make(field, Field(f"{message.name}.{field.name}", (kind,), "" if field.is_repeated else group, inner))
    return known[message.full_name]


def _own(descriptor: Any, field: Field) -> Field:
    """A field of ours: a repeated number is packed, one run of bytes, and counts as a text does."""
    return field._replace(wire_types=(LENGTH,), is_counted=True) if descriptor.is_repeated else field


_FORMAT = Format(
    fields_of(wire.ProgramFile.DESCRIPTOR, _own, {}),
    refused="these bytes are not an Oarlock program",
    unknown="not a field of this version",
    too_many="a program of",
    depth=64,  # no message of ours holds its own kind, so that the format itself bounds it
)
_VERSION = "ProgramDesc.version"


def prescan(data: bytes, limits: Limits, *, versions: Sequence[int]) -> None:
    """Raise FormatError or LimitError where `data` is not one canonical-enough program of one of `versions`. Linear in `data`.

    Fields that this format does not know are refused: what they mean, only a later version knows.
    """
    scan(data, _FORMAT, limits, versions=versions)


def scan(data: bytes, form: Format, limits: Limits, *, versions: Sequence[int] = ()) -> None:
    """Raise FormatError or LimitError where `data` is not one message of `form`. Linear in `data`.

    What is counted: messages, texts, and bytes other than data, which are `limits.program_bytes` at most.
    """
    messages = texts = held = at = 0
    end = len(data)
    fields, seen = form.fields, set()
    around: list[tuple[Fields, set[str], int]] = []
    while True:
        if at == end:
            if not around:
                return
            fields, seen, end = around.pop()
            continue
        start = at
        tag, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at, end, form)  # most numbers are one byte
        field, kind = fields.get(tag >> 3), tag & 7
        if field is None:
            raise _refused(form, f"byte {start}: number {tag >> 3} is {form.unknown}")
        if field.once:
            if field.once in seen:
                raise _refused(form, f"byte {start}: {field.name} stands there a second time")
            seen.add(field.once)
        if kind not in field.wire_types:
            raise _refused(form, f"byte {start}: {field.name} is of another kind")
        if kind == VARINT:
            value, at = _varint(data, at, end, form)
            if field.name == _VERSION and value not in versions:
                raise FormatError(f"this is format version {value}; this Oarlock reads versions {' and '.join(map(str, versions))}")
        elif kind != LENGTH:
            size = 8 if kind == FIXED64 else 4
            if at + size > end:
                raise _refused(form, f"byte {at}: {field.name} is cut short")
            at += size
        else:
            length, at = (data[at], at + 1) if at < end and data[at] < 128 else _varint(data, at, end, form)
            if length > end - at:
                raise _refused(form, f"byte {at}: {field.name} has {length:,} bytes, where {end - at:,} are left")
            if field.message is not None:
                messages += 1
                if messages > limits.messages:
                    raise _too_many(form, "messages", limits.messages)
                if len(around) >= form.depth:
                    raise _refused(form, f"byte {start}: messages stand more than {form.depth} deep in one another")
                around.append((fields, seen, end))
                fields, seen, end = field.message, set(), at + length
                continue
            texts += field.is_counted
            if texts > limits.texts:
                raise _too_many(form, "texts", limits.texts)
            if field.is_text:
                _require_unicode(data[at : at + length], f"byte {at}: {field.name} is not Unicode", form)
            at += length
        held += 0 if field.is_data else at - start
        if held > limits.program_bytes:
            raise _too_many(form, "program_bytes", limits.program_bytes)


def _varint(data: bytes, at: int, end: int, form: Format) -> tuple[int, int]:
    """The number at `at`, at most ten bytes, and where it ends."""
    number = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise _refused(form, f"byte {at}: a number does not end")


def _require_unicode(data: bytes, otherwise: str, form: Format) -> None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        raise _refused(form, otherwise) from None


def _refused(form: Format, reason: str) -> FormatError:
    return FormatError(form.refused, given=[reason])


def _too_many(form: Format, limit: str, allowed: int) -> LimitError:
    return LimitError(f"{form.too_many} more than {allowed:,} {limit.replace('_', ' ')}", hint=f"limits=Limits({limit}=...)")
