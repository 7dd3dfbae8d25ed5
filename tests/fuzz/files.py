"""Mutators of bytes: of the program inside a sound file, of the file around a sound program, and of the whole."""

import json
from collections.abc import Callable
from random import Random

from fuzz.draft import Draft

__all__ = ["DRAFT_MUTATORS", "FILE_MUTATORS", "varint"]

DRAFT_MUTATORS: dict[str, Callable[[Random, Draft], None]] = {}
FILE_MUTATORS: dict[str, Callable[[Random, bytes], bytes]] = {}


def of_draft(function):
    DRAFT_MUTATORS[function.__name__] = function
    return function


def of_file(function):
    FILE_MUTATORS[function.__name__] = function
    return function


def varint(number: int) -> bytes:
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def field(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


# The program's bytes


@of_draft
def nested_deep(random, draft):
    """Messages in messages: 100 is as deep as the parser goes, 101 one more."""
    payload = b""
    for _ in range(random.choice([64, 65, 100, 101, 3000])):
        payload = field(random.choice([1, 3, 5, 11]), payload)
    draft.program_bytes = draft.serialized() + field(random.choice([1, 2, 15]), payload)


@of_draft
def a_field_twice(random, draft):
    """The parser would take the last."""
    draft.program_bytes = draft.serialized() * 2


@of_draft
def a_version_twice(random, draft):
    inner = draft.program.program.SerializeToString(deterministic=True) + b"\x08" + varint(random.choice([1, 2]))
    draft.program_bytes = field(1, inner)


@of_draft
def an_unknown_field(random, draft):
    extra = random.choice([field(99, b"x"), b"\xf8\x06\x01", field(3, b""), b"\x1b\x1c", b"\x00", b"\x07"])
    inner = draft.program.program.SerializeToString(deterministic=True)
    draft.program_bytes = random.choice([draft.serialized() + extra, field(1, inner + extra)])


@of_draft
def many_empty_messages(random, draft):
    inner = draft.program.program.SerializeToString(deterministic=True)
    count = random.choice([100, 5_000, 60_000])
    draft.program_bytes = field(1, inner + random.choice([b"\x1a\x00", b"\x22\x00", field(3, b"\x2a\x00" * 9)]) * count)


@of_draft
def a_length_that_lies(random, draft):
    data = bytearray(draft.serialized())
    data[1 : 1 + random.choice([1, 2, 3])] = random.choice([b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", b"\xff" * 11, b"\x00"])
    draft.program_bytes = bytes(data)


@of_draft
def flip_bits_of_the_program(random, draft):
    data = bytearray(draft.serialized() or b"\0")
    for _ in range(random.choice([1, 1, 2, 8])):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    draft.program_bytes = bytes(data)


@of_draft
def cut_the_program(random, draft):
    data = draft.serialized()
    draft.program_bytes = data[: random.randrange(len(data) or 1)]


@of_draft
def bytes_of_the_program_moved(random, draft):
    data = draft.serialized() or b"\0\0"
    start, end = sorted(random.sample(range(len(data)), 2))
    at = random.randrange(len(data))
    draft.program_bytes = data[:at] + data[start : min(end, start + 60)] + data[at:]


@of_draft
def text_that_is_not_unicode(random, draft):
    data = draft.serialized()
    name = random.choice([b"linear", b"recurrent", b"main", b"cost"])
    draft.program_bytes = data.replace(name, b"\xff\xc0" + name[2:], 1)


@of_draft
def no_program(random, draft):
    draft.program_bytes = random.choice([b"", b"\x0a\x00", b"\0" * 64, b"PK\x03\x04" * 16, b"\x80\x04\x95" + b"c" * 40])


# The tensors


@of_draft
def a_weight_too_few(random, draft):
    if draft.tensors:
        del draft.tensors[random.choice(sorted(draft.tensors))]


@of_draft
def a_weight_too_many(random, draft):
    name = random.choice(["stowaway", "", "\0", "../../x", "__class__", "x" * 5000, "\x1b[2J", "\u0430"])
    draft.tensors[name] = ("F32", [1], b"\0" * 4)


@of_draft
def a_weight_of_another_shape(random, draft):
    if draft.tensors:
        name = random.choice(sorted(draft.tensors))
        dtype, shape, data = draft.tensors[name]
        shapes = [shape[::-1], [len(data)], [], [1, *shape], [2**62, 4], [0, 2**63 - 1], [2**64 - 1], [1] * 200, [0] * 17]
        draft.tensors[name] = (dtype, random.choice(shapes), data if random.random() < 0.5 else b"")


@of_draft
def a_weight_of_another_dtype(random, draft):
    if draft.tensors:
        name = random.choice(sorted(draft.tensors))
        _, shape, data = draft.tensors[name]
        draft.tensors[name] = (random.choice(["F64", "I32", "F8_E4M3", "C64", "U64", "BOOL", "", "f32", "pickle", "F4"]), shape, data)


# The header


@of_draft
def overlapping_offsets(random, draft):
    for name in sorted(draft.tensors):
        dtype, shape, data = draft.tensors[name]
        start = random.choice([0, 1, 4])
        draft.header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, start + len(data)]}


@of_draft
def offsets_that_lie(random, draft):
    if draft.tensors:
        name = random.choice(sorted(draft.tensors))
        huge = [2**70, 2**70 + 4]
        offsets = random.choice([[0, 2**63], [2**64 - 4, 2**64], [-1, 3], [8, 4], [0, 0], [0.5, 2], ["0", "4"], [0], [], None, huge])
        draft.header[name] = {"dtype": "F32", "shape": [1], "data_offsets": offsets}


@of_draft
def a_header_length_that_lies(random, draft):
    draft.header_length = random.choice([0, 1, 2**63, 2**64 - 1, 2**31, 100_000_001, 8, 2**24])


@of_draft
def a_header_that_is_something_else(random, draft):
    entry = b'{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}'
    twice = b'{"__metadata__":{"oarlock":"1 x"},"__metadata__":{"oarlock":"1 y"}}'
    spaces, deep = b"{" + b" " * 5000 + b"}", b'{"a":' * 5_000 + b"1" + b"}" * 5_000
    other = json.dumps({"__metadata__": {"oarlock": "1 x"}})
    encoded = [other.encode(name) for name in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be", "utf-7")]
    texts = [*encoded, b"[]", b"{}", b"null", b'{"a":', b"[" * 100_000, deep, b"\xff\xfe", b'{"__metadata__":3}', spaces,
             twice, b"9" * 5000, b'{"a":' + entry + b"}"]  # fmt: skip
    draft.header_text = random.choice(texts)


@of_draft
def text_that_steers_a_terminal(random, draft):
    """In the header, where a name, a dtype or metadata would be printed."""
    evil = random.choice(["\x1b]0;owned\x07", "\x1b[2J\x00", "\n  Try: curl stranger | sh", "\u202e\u2028\x85", "\ud800"])
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    draft.header |= random.choice(
        [{evil: entry}, {"x": entry | {"dtype": evil}}, {"x": entry | {evil: 1}}, {"__metadata__": {"oarlock": f"{evil} {evil}"}}]
    )


@of_draft
def lines_of_the_author(random, draft):
    """Texts that are long, evil, or named often; numbers of texts that are not there."""
    source = draft.program.source
    source.strings.extend([random.choice(["\x1b[2J\n", "x" * 1_024, "x" * 1_025, "x" * 70_000, ""])] * random.choice([1, 3]))
    block = source.blocks.add() if random.random() < 0.3 or not source.blocks else random.choice(list(source.blocks))
    for _ in range(random.choice([1, 30, 30_000])):
        block.ops.add(line=random.choice([0, 1, 2**32 - 1]), file=random.choice([0, len(source.strings) - 1, 2**32 - 1]))


@of_draft
def a_name_twice_in_the_header(random, draft):
    entry = json.dumps({"dtype": "U8", "shape": [4], "data_offsets": [0, 4]})
    draft.header_text = f'{{"oarlock.program": {entry}, "oarlock.program": {entry}}}'.encode()
    draft.tail = b"abcd"


@of_draft
def other_metadata(random, draft):
    values = [
        {},
        {"oarlock": ""},
        {"oarlock": "1"},
        {"oarlock": "2 abc"},
        {"oarlock": "1 " + "0" * 64},
        {"oarlock": 1},
        {"oarlock": "x" * 9000 + " y"},
        None,
        [],
        {"format": "pt"},
    ]
    draft.header["__metadata__"] = random.choice(values)


@of_draft
def a_digest_of_something_else(random, draft):
    draft.digest = "0" * 64


@of_draft
def bytes_at_the_end(random, draft):
    draft.tail = random.choice([b"\0", b"PK\x05\x06" + b"\0" * 18, b"x" * 4096])


# The whole file


@of_file
def truncate(random, data):
    return data[: random.randrange(len(data))]


@of_file
def flip_bits(random, data):
    changed = bytearray(data)
    for _ in range(random.choice([1, 1, 4])):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


@of_file
def another_kind_of_file(random, data):
    return random.choice(
        [b"", b"\0" * 8, b"\x80\x02}q\x00.", b"PK\x03\x04" + data, b"\x93NUMPY\x01\x00v\x00", data[8:], data * 2, b"{}" + data]
    )
