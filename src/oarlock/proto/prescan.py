"""A scan of the bytes of a message before protobuf parses it, for programs and other formats.

A few bytes of a message may expand a hundredfold in memory, and parsers accept the last of duplicate fields. The scan reads only the tags,
once, and builds nothing: it bounds the size, and checks that every field is known, has the right type, and is not duplicated if singular.
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
    """One field of a message: its encoding, and the checks that apply to it."""

    name: str
    wire_types: tuple[int, ...]
    once: str = ""  # name of the singular field or oneof; empty if repeated
    message: "Fields | None" = None
    is_counted: bool = False  # counts as a text
    is_text: bool = False  # must be valid Unicode
    is_data: bool = False  # as large in memory as in the file, so its bytes are not counted


Fields = dict[int, Field]


class Format(NamedTuple):
    """The fields of a format's outermost message, and the texts of its errors."""

    fields: Fields
    refused: str
    unknown: str
    too_many: str  # start of a LimitError message
    depth: int  # maximum nesting of messages


def fields_of(message: Any, make: Callable[[Any, Field], Field], known: dict[str, Fields]) -> Fields:
    """Return the fields of a message by number. `make` adapts the properties that all formats share to the field's descriptor."""
    if message.full_name not in known:
        known[message.full_name] = table = {}
        for field in message.fields:
            kind = LENGTH if field.type in _LENGTHS else _WIRE_TYPES.get(field.type, VARINT)
            group = field.containing_oneof.name if field.containing_oneof else field.name
            inner = fields_of(field.message_type, make, known) if field.message_type else None
            table[field.number] = make(field, Field(f"{message.name}.{field.name}", (kind,), "" if field.is_repeated else group, inner))
    return known[message.full_name]


def _own(descriptor: Any, field: Field) -> Field:
    """Return a field of our format: repeated numbers are packed into one run of bytes and count as a text."""
    return field._replace(wire_types=(LENGTH,), is_counted=True) if descriptor.is_repeated else field


_FORMAT = Format(
    fields_of(wire.ProgramFile.DESCRIPTOR, _own, {}),
    refused="these bytes are not an Oarlock program",
    unknown="not a field of this version",
    too_many="a program of",
    depth=64,  # our messages are not recursive, so the format bounds the depth
)
_VERSION = "ProgramDesc.version"


def prescan(data: bytes, limits: Limits, *, versions: Sequence[int]) -> None:
    """Check that `data` is one program of one of `versions`. Raises FormatError or LimitError. Takes linear time.

    Unknown fields are rejected, because only a later version knows their meaning.
    """
    scan(data, _FORMAT, limits, versions=versions)


def scan(data: bytes, form: Format, limits: Limits, *, versions: Sequence[int] = ()) -> None:
    """Check that `data` is one message of `form`. Raises FormatError or LimitError. Takes linear time.

    It counts messages, texts, and bytes other than data, which are limited by `limits.program_bytes`.
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
        tag, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at, end, form)  # most numbers have one byte
        field, kind = fields.get(tag >> 3), tag & 7
        if field is None:
            raise _refused(form, f"byte {start}: number {tag >> 3} is {form.unknown}")
        if field.once:
            if field.once in seen:
                raise _refused(form, f"byte {start}: {field.name} is given twice")
            seen.add(field.once)
        if kind not in field.wire_types:
            raise _refused(form, f"byte {start}: {field.name} has the wrong type")
        if kind == VARINT:
            value, at = _varint(data, at, end, form)
            if field.name == _VERSION and value not in versions:
                raise FormatError(f"this is format version {value}; this Oarlock reads versions {' and '.join(map(str, versions))}")
        elif kind != LENGTH:
            size = 8 if kind == FIXED64 else 4
            if at + size > end:
                raise _refused(form, f"byte {at}: {field.name} is truncated")
            at += size
        else:
            length, at = (data[at], at + 1) if at < end and data[at] < 128 else _varint(data, at, end, form)
            if length > end - at:
                raise _refused(form, f"byte {at}: {field.name} needs {length:,} bytes, but only {end - at:,} are left")
            if field.message is not None:
                messages += 1
                if messages > limits.messages:
                    raise _too_many(form, "messages", limits.messages)
                if len(around) >= form.depth:
                    raise _refused(form, f"byte {start}: messages are nested more than {form.depth} deep")
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
    """Return the varint at `at`, at most ten bytes, and the position after it."""
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
