"""How workers divide variables: in memory, in text, in a file; and what is refused."""

import pytest

import oarlock as ol
from oarlock.ir.serialization import build_program, program_desc
from oarlock.ir.sharding import Sharding
from oarlock.proto import program_pb2 as wire

TEXT = """program seed=0

block main() {
  parameter w: float32[2, 6] shard(axis=1) update(l2=0.5) = constant(value=1.0)
  frozen parameter shard: float32[2] shard(axis=0, workers=4) = uniform(high=1.0, low=0.0)
  state s: float32[2, 6] shard(axis=0)
  parameter b: float32[] = constant(value=0.0)
  w_1: float32[2, 6] = neg(x=w)
}
"""


def test_shares_are_printed_parsed_written_read_and_copied():
    program = ol.parse_program(TEXT)
    assert program.to_text() == TEXT
    for again in (program, ol.Program.from_bytes(program.to_bytes()), program.clone()):
        assert again.to_text() == TEXT
        assert again.to_bytes() == program.to_bytes()
        assert [again.main.var(name).sharding for name in ("w", "shard", "s", "b")] == [Sharding(1), Sharding(0, 4), Sharding(0), None]
    assert not program_desc(program).blocks[0].vars[3].HasField("sharding")


def test_a_share_has_the_shape_of_a_part_of_the_whole():
    main = ol.parse_program(TEXT).main
    assert main.var("w").whole_shape == (2, 6)
    assert main.var("shard").whole_shape == (8,)
    assert main.var("b").whole_shape == ()


def test_a_variable_may_be_called_shard():
    text = "program seed=0\n\nblock main() {\n  parameter a: int64[3]\n  shard: int64[3] = assign(x=a)\n\n  commit:\n  a <- shard\n}\n"
    assert ol.parse_program(text).to_text() == text


def test_programs_whose_parameters_are_divided_differently_are_different_programs():
    before, after = ol.parse_program(TEXT), ol.parse_program(TEXT)
    after.main.var("w").sharding = None
    after.main.var("s").sharding = Sharding(0, 3)
    assert ol.content_hash(before) != ol.content_hash(after)
    assert [str(item) for item in ol.diff_programs(before, after)] == [
        "~ main: parameter w: float32[2, 6] update(l2=0.5) = constant(value=1.0)\n      sharding: shard(axis=1) became none",
        "~ main: state s: float32[2, 6] shard(axis=0, workers=3)\n      sharding: shard(axis=0) became shard(axis=0, workers=3)",
    ]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("parameter w: float32[2] shard(axis=1)", "is sharded along axis 1, which float32[2] does not have"),
        ("parameter w: float32[] shard(axis=0)", "is sharded along axis 0, which float32[] does not have"),
        ("parameter w: float32[2] shard(axis=0, workers=4000000000)", "is sharded by 4000000000 workers"),
        ("var w: float32[2] shard(axis=0)", "is sharded, so it must be persistable"),
    ],
)
def test_shares_that_cannot_be_are_refused(declared, message):
    with pytest.raises(ol.VerifyError) as raised:
        ol.parse_program(f"program seed=0\n\nblock main() {{\n  {declared}\n}}\n")
    assert raised.value.message == f'main: variable "w" {message}'


def test_an_axis_that_is_not_there_is_refused_in_a_file():
    desc = program_desc(ol.parse_program(TEXT))
    desc.blocks[0].vars[0].sharding.axis = 7
    with pytest.raises(ol.VerifyError) as raised:
        build_program(wire.ProgramFile(program=desc))
    assert raised.value.message == 'main: variable "w" is sharded along axis 7, which float32[2, 6] does not have'


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ("shard(rows=1)", "line 4: axis or workers instead of rows expected"),
        ("shard(axis=x)", "line 4: a number expected"),
        ("shard(axis=-1)", "line 4: a number expected"),
        ("shard(axis=1", "line 4: ',' expected"),
        ("shard(axis=99999999999)", "line 4: a valid program (ValueError) expected"),
    ],
)
def test_text_that_is_not_of_shares_is_refused_by_its_line(shares, message):
    with pytest.raises(ol.FormatError) as raised:
        ol.parse_program(f"program seed=0\n\nblock main() {{\n  parameter w: float32[2] {shares} = constant(value=0.0)\n}}\n")
    assert raised.value.message == message


def test_an_array_that_a_share_starts_from_is_whole():
    text = 'program seed=0\n\nblock main() {\n  parameter w: uint8[1] shard(axis=0, workers=2) = array(data=bytes("AAE="), shape=[2])\n}\n'
    assert ol.parse_program(text).to_text() == text
    with pytest.raises(ol.VerifyError) as raised:
        ol.parse_program(text.replace("workers=2", "workers=3"))
    assert raised.value.message == 'main: variable "w" has an invalid initializer: an array of shape [2] does not fit uint8[3]'
