"""Walk the bytes of an ONNX model before protobuf sees them.

As `proto/prescan.py` does for our own files: the tags are read first, once, from front to back, with nothing built. So a reader knows
how much there is, that each field is one that this version knows and of its own kind, that no field that stands once stands twice, and
that text is Unicode. ONNX differs from our format in three ways: graphs hold graphs, numbers in a row may be packed or not, and tensors
lie in the file itself.
"""

from typing import Any, NamedTuple

from oarlock.errors import FormatError, LimitError
from oarlock.proto.limits import Limits

__all__ = ["check_wire"]

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_DEEPEST = 64  # messages in messages; protobuf itself stops at 100
_DATA = {"TensorProto.raw_data", "TensorProto.float_data", "TensorProto.double_data"}  # as large in memory as in the file


class _Field(NamedTuple):
    """One field of a message: how it is encoded, and what may follow from meeting it."""

    name: str
    wire_type: int
    once: bool
    is_text: bool
    message: "dict[int, _Field] | None"


def _fields(message: Any, known: dict[str, dict[int, _Field]]) -> dict[int, _Field]:
    """The fields of a message by number."""
    if message.full_name not in known:
        known[message.full_name] = table = {}
        for field in message.fields:
            kind = {field.TYPE_DOUBLE: _FIXED64, field.TYPE_FLOAT: _FIXED32}.get(field.type, _VARINT)
            if field.type in (field.TYPE_STRING, field.TYPE_BYTES, field.TYPE_MESSAGE):
                kind = _LENGTH
            inner = _fields(field.message_type, known) if field.message_type else None
            name = f"{message.name}.{field.name}"
            table[field.number] = _Field(name, kind, not field.is_repeated, field.type == field.TYPE_STRING, inner)
    return known[message.full_name]


_tables: dict[str, dict[str, dict[int, _Field]]] = {}


def check_wire(data: bytes, message: Any, limits: Limits, name: str) -> None:
    """Raise FormatError or LimitError where `data` is not one `message`, a descriptor, such as this version knows. Linear in `data`.

    What is counted: messages, texts, and all bytes but those of floats and raw data, which are `limits.program_bytes` at most.
    """
    table = _fields(message, _tables.setdefault(message.full_name, {}))
    messages = texts = held = at = 0
    end = len(data)
    fields, seen = table, set()
    around: list[tuple[dict[int, _Field], set[int], int]] = []
    while True:
        if at == end:
            if not around:
                return
            fields, seen, end = around.pop()
            continue
        start = at
        tag, at = _varint(data, at, end, name)
        field = fields.get(tag >> 3)
        if field is None:
            raise _refused(name, f"byte {start}: number {tag >> 3} is not a field that the installed onnx knows")
        if field.once:
            if tag >> 3 in seen:
                raise _refused(name, f"byte {start}: {field.name} stands there a second time")
            seen.add(tag >> 3)
        if tag & 7 != _LENGTH:
            if field.wire_type != tag & 7:
                raise _refused(name, f"byte {start}: {field.name} is of another kind")
            at = _after_number(data, at, end, tag & 7, field, name)
            held += at - start
        else:
            if field.wire_type != _LENGTH and field.once:
                raise _refused(name, f"byte {start}: {field.name} is of another kind")
            length, at = _varint(data, at, end, name)
            if length > end - at:
                raise _refused(name, f"byte {at}: {field.name} has {length:,} bytes, where {end - at:,} are left")
            if field.message is not None:
                messages += 1
                if messages > limits.messages:
                    raise _too_many(name, "messages", limits.messages)
                if len(around) >= _DEEPEST:
                    raise _refused(name, f"byte {start}: messages stand more than {_DEEPEST} deep in one another")
                around.append((fields, seen, end))
                fields, seen, end = field.message, set(), at + length
                continue
            if field.wire_type == _LENGTH and field.name not in _DATA:
                texts += 1
                if texts > limits.texts:
                    raise _too_many(name, "texts", limits.texts)
            if field.is_text:
                _require_text(data[at : at + length], at, field, name)
            at += length
            held += at - start if field.name not in _DATA else 0
        if held > limits.program_bytes:
            raise _too_many(name, "program_bytes", limits.program_bytes)


def _after_number(data: bytes, at: int, end: int, kind: int, field: _Field, name: str) -> int:
    """Where a number of this kind ends."""
    if kind == _VARINT:
        return _varint(data, at, end, name)[1]
    after = at + (8 if kind == _FIXED64 else 4)
    if after > end:
        raise _refused(name, f"byte {at}: {field.name} is cut short")
    return after


def _varint(data: bytes, at: int, end: int, name: str) -> tuple[int, int]:
    """The number at `at`, at most ten bytes, and where it ends."""
    number = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise _refused(name, f"byte {at}: a number does not end")


def _require_text(data: bytes, at: int, field: _Field, name: str) -> None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        raise _refused(name, f"byte {at}: {field.name} is not Unicode") from None


def _refused(name: str, reason: str) -> FormatError:
    return FormatError(f'"{name}" is not an ONNX model, or is cut short', given=[reason])


def _too_many(name: str, limit: str, allowed: int) -> LimitError:
    what = limit.replace("_", " ")
    return LimitError(f'"{name}": more than {allowed:,} {what}', hint=f"limits=Limits({limit}=...)")
