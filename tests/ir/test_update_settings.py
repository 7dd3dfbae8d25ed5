"""Settings of the updates of one parameter: in memory, in text, in a file; and which are refused."""

import math

import pytest

import oarlock as ol
from oarlock.ir.serialization import build_program, program_desc
from oarlock.ir.update_settings import AS_OTHERS, UpdateSettings
from oarlock.proto import program_pb2 as wire

TEXT = """program seed=0

block main() {
  parameter w: float32[2] update(clip_norm=1.0, clip_value=0.5, l1=0.001, l2=0.01, rate_factor=0.1, weight_decay=0.0) = constant(value=1.0)
  frozen parameter update: float32[2] update(rate_factor=2.0)
  parameter b: float32[] = constant(value=0.0)
  w_1: float32[2] = neg(x=w)
}
"""
ALL = UpdateSettings(rate_factor=0.1, weight_decay=0.0, l1=1e-3, l2=1e-2, clip_value=0.5, clip_norm=1)


def test_settings_are_printed_parsed_written_read_and_copied():
    program = ol.parse_program(TEXT)
    assert program.to_text() == TEXT
    assert program.main.var("w").update_settings == ALL
    assert program.main.var("update").update_settings == UpdateSettings(rate_factor=2.0)
    assert program.main.var("b").update_settings == AS_OTHERS
    for again in (ol.Program.from_bytes(program.to_bytes()), program.clone()):
        assert again.to_text() == TEXT
        assert again.to_bytes() == program.to_bytes()
        assert again.main.var("w").update_settings == ALL


def test_settings_that_mean_nothing_leave_no_trace():
    program = ol.parse_program(TEXT.replace("update(rate_factor=2.0)", "update(rate_factor=1.0)"))
    assert program.to_text() == TEXT.replace(" update(rate_factor=2.0)", "")
    assert not program_desc(program).blocks[0].vars[1].HasField("update")
    assert UpdateSettings().stated == {} == UpdateSettings(rate_factor=1, l1=0).stated


def test_a_variable_may_be_called_update():
    text = "program seed=0\n\nblock main() {\n  parameter a: int64[3]\n  update: int64[3] = assign(x=a)\n\n  commit:\n  a <- update\n}\n"
    assert ol.parse_program(text).to_text() == text


def test_programs_whose_parameters_are_updated_differently_are_different_programs():
    before, after = ol.parse_program(TEXT), ol.parse_program(TEXT)
    after.main.var("w").update_settings = UpdateSettings(l1=0.5, clip_norm=1.0)
    assert ol.content_hash(before) != ol.content_hash(after)
    assert [str(item) for item in ol.diff_programs(before, after)] == [
        "~ main: parameter w: float32[2] update(clip_norm=1.0, l1=0.5) = constant(value=1.0)\n"
        "      update, clip_value: 0.5 became absent\n"
        "      update, l1: 0.001 became 0.5\n"
        "      update, l2: 0.01 became absent\n"
        "      update, rate_factor: 0.1 became absent\n"
        "      update, weight_decay: 0.0 became absent"
    ]


@pytest.mark.parametrize("name", ["rate_factor", "weight_decay", "l1", "l2", "clip_value", "clip_norm"])
@pytest.mark.parametrize("value", [-1e-9, math.nan, math.inf, 10**400])
def test_numbers_that_no_update_can_use_are_refused_in_python_and_in_a_file(name, value):
    least = "> 0" if name.startswith("clip") else ">= 0"
    with pytest.raises(ol.ArgumentError) as raised:
        UpdateSettings(**{name: value})
    assert raised.value.message == f"update settings: {name} must be a finite number {least}, not {value!r:.60}"
    assert "test_update_settings.py" in str(raised.value)
    if isinstance(value, float):
        desc = program_desc(ol.parse_program(TEXT))
        setattr(desc.blocks[0].vars[0].update, name, value)
        with pytest.raises(ol.VerifyError, match=f'main: variable "w" is not readable: update settings: {name} must be a finite number'):
            build_program(wire.ProgramFile(program=desc))


@pytest.mark.parametrize("value", [True, "0.1", None])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ol.ArgumentError, match="rate_factor must be a finite number >= 0, not"):
        UpdateSettings(rate_factor=value)
    with pytest.raises(ol.ArgumentError, match="clip_norm must be a finite number > 0, not 0"):
        UpdateSettings(clip_norm=0.0)


def test_only_a_parameter_has_settings():
    with pytest.raises(ol.VerifyError) as raised:
        ol.parse_program("program seed=0\n\nblock main() {\n  state s: float32[] update(l2=0.5)\n}\n")
    assert raised.value.message == 'main: variable "s" has update settings, so it must be a parameter'


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("update(rate=0.5)", "line 4: a setting of updates instead of rate expected"),
        ("update(l2=1)", "line 4: a float expected"),
        ('update(l2="1")', "line 4: a float expected"),
        ("update(l2=0.5", "line 4: ',' expected"),
    ],
)
def test_text_that_is_not_of_settings_is_refused_by_its_line(settings, message):
    with pytest.raises(ol.FormatError) as raised:
        ol.parse_program(f"program seed=0\n\nblock main() {{\n  parameter w: float32[] {settings} = constant(value=0.0)\n}}\n")
    assert raised.value.message == message
