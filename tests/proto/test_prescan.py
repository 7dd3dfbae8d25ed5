"""The bytes of a program are walked before the parser sees them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.files import field, varint
from sample_programs import nested_loops

import oarlock as ol
from oarlock.proto import program_pb2 as wire
from oarlock.proto.prescan import prescan

GOOD = nested_loops().to_bytes()


def test_what_we_write_is_taken():
    prescan(GOOD, ol.Limits(), versions=[2])
    prescan(b"", ol.Limits(), versions=[2])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x80", "byte 1: a number does not end"),
        (b"\xff" * 11, "byte 10: a number does not end"),
        (field(1, b"\x08"), "byte 3: a number does not end"),
        (b"\x0a\x05ab", "byte 2: ProgramFile.program needs 5 bytes, but only 2 are left"),
        (b"\x08\x01", "byte 0: ProgramFile.program has the wrong type"),
        (field(3, b""), "byte 0: number 3 is not a field of this version"),
        (b"\x00\x00", "byte 0: number 0 is not a field of this version"),
        (b"\x0b\x0c", "byte 0: ProgramFile.program has the wrong type"),
        (field(1, b"\x10\x01\x10\x01"), "byte 4: ProgramDesc.seed is given twice"),
        (field(1, field(3, field(6, field(4, b"\x19" + b"\0" * 7)))), "byte 9: AttributeDesc.float is truncated"),
        (field(1, field(3, field(6, field(4, b"\x10\x01\x20\x01")))), "byte 10: AttributeDesc.bool is given twice"),
        (field(1, field(3, b"\x10\x00" * 2)), "byte 6: BlockDesc.parent is given twice"),
        (field(1, field(3, field(6, field(4, field(7, b"\x08\x01\x08\x01"))))), "byte 10: IntList.values has the wrong type"),
    ],
)
def test_what_is_no_program_is_refused_with_its_place(data, reason):
    with pytest.raises(ol.FormatError) as caught:
        prescan(data, ol.Limits(), versions=[2])
    assert caught.value.message == "these bytes are not an Oarlock program"
    assert caught.value.given == (reason,)


def test_another_version_is_named_whatever_else_is_new():
    with pytest.raises(ol.FormatError, match="^this is format version 7; this Oarlock reads versions 2$"):
        prescan(field(1, b"\x08\x07" + field(99, b"new")), ol.Limits(), versions=[2])


def test_messages_and_texts_are_counted():
    data = field(1, b"\x08\x02" + field(3, field(3, b"a") + field(3, b"b") + field(5, b"")))  # three messages, two texts
    prescan(data, ol.Limits(messages=3, texts=2), versions=[2])
    with pytest.raises(ol.LimitError, match="^a program of more than 2 messages"):
        prescan(data, ol.Limits(messages=2), versions=[2])
    with pytest.raises(ol.LimitError, match="^a program of more than 1 texts"):
        prescan(data, ol.Limits(texts=1), versions=[2])


def test_no_message_holds_its_own_kind():
    """So the format itself bounds the depth that a parser goes to."""

    def depth(message, around=()):
        assert message.full_name not in around
        inner = [field.message_type for field in message.fields if field.message_type]
        return 1 + max((depth(item, (*around, message.full_name)) for item in inner), default=0)

    assert depth(wire.ProgramFile.DESCRIPTOR) == 8


def test_numbers_are_written_as_the_scan_reads_them():
    for number in (0, 1, 127, 128, 300, 2**63):
        assert wire.ProgramDesc.FromString(b"\x10" + varint(number)).seed == number


def test_the_backend_in_pure_python_is_refused():
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(ol.__file__).parent.parent),
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python",
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run([sys.executable, "-c", "import oarlock.ir"], capture_output=True, text=True, env=environment, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: Oarlock needs protobuf's compiled backend; this process uses the pure Python one, which malicious files can exhaust. "
        "Unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION, or install a protobuf wheel for this platform."
    )
