"""The pictures of README.md and of the documents are what their command draws now, or of the code that there is now."""

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
_spec = importlib.util.spec_from_file_location("make_pictures", FOLDER / "make.py")
making = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(making)
draw = making.draw


@pytest.mark.parametrize("name", draw.PICTURES)
def test_a_picture_is_what_the_command_draws(name):
    drawn = draw.PICTURES[name]()
    assert ElementTree.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
    assert (FOLDER / name).read_text(encoding="utf-8") == drawn, f"make pictures remakes {name}"


@pytest.mark.parametrize("name", making.TRAINED)
def test_a_picture_of_a_training_run_is_of_the_code_that_there_is(name):
    example, digest = making.source_of(name)
    text = making.file_of(name).read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert text.endswith(f"<!-- {example} {digest} -->\n"), f"python docs/pictures/make.py {name} remakes the picture of {example}"


def test_a_change_of_an_example_or_of_what_draws_it_is_noticed(monkeypatch, tmp_path):
    before = making.source_of("gallery/unet"), making.source_of("gallery/translation")
    monkeypatch.setitem(making.gallery.RUN, "translation", making.gallery.measure)
    assert making.source_of("gallery/translation") != before[1]
    (tmp_path / "examples").mkdir()
    code = (making.ROOT / "examples" / "unet.py").read_text(encoding="utf-8")
    (tmp_path / "examples" / "unet.py").write_text(code.replace("seed: int = 0", "seed: int = 1"), encoding="utf-8")
    monkeypatch.setattr(making, "ROOT", tmp_path)
    assert making.source_of("gallery/unet") != before[0]


def test_a_picture_says_at_its_end_what_it_is_of():
    svg = making.stamped("<svg>\n</svg>\n", "demo")
    assert re.fullmatch(r"<svg>\n</svg>\n<!-- examples/digits.py [0-9a-f]{16} -->\n", svg)


def test_every_picture_has_its_command_and_every_document_shows_one_of_them():
    made = set(map(making.file_of, [*making.MAKERS, *making.PHOTOGRAPHED]))
    assert {path for path in FOLDER.glob("**/*.*") if path.suffix in (".svg", ".png")} == made
    pages = [*making.ROOT.glob("*.md"), *making.ROOT.glob("docs/**/*.md"), *making.ROOT.glob("src/oarlock/**/*.md")]
    shown = {
        (page.parent / link).resolve() for page in pages for link in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    assert shown == made


def test_the_curves_of_runs_are_drawn(monkeypatch):
    pytest.importorskip("sklearn")
    drawn, kept = making.runs.draw_curves(epochs=1), making.file_of("runs/curves").read_text(encoding="utf-8")
    names = [re.findall("<text x=[^>]*>(adam.*?|mom.*?|val.*?)</text>", picture) for picture in (drawn, kept)]
    assert names == [["adam", "momentum", "validation"]] * 2
    monkeypatch.setattr(making.runs, "BROWSERS", ())
    with pytest.raises(SystemExit, match="docs/pictures/runs/report.png is taken by Chromium, which is not there"):
        making.make("runs/report")
    assert making.file_of("runs/report").read_bytes().startswith(b"\x89PNG")


def test_the_chart_has_every_workload_of_the_table():
    document = draw.FIGURES.read_text(encoding="utf-8")
    table = document.split("| Oarlock / best |")[1].split("\n\n")[0]
    assert [name.split()[0] for name, *_ in draw.read_step_times(document)] == re.findall(r"^\| ([WI]\d+) \|", table, re.MULTILINE)


def test_the_lengths_of_bars_are_in_the_ratio_of_the_times():
    chart = draw.draw_step_times("| W1 | 0.3 | torch eager, NHWC 0.4 | 0.75 | 1.00 | 2.00 |\n")
    assert re.findall(r'<rect class="(\w+)" x="190" y="\d+" width="(\d+)" height="12"', chart)[1:] == [("ours", "180"), ("peer", "240")]
    assert re.findall(r">(W1.*|0.*|torch.*)<", chart) == ["W1 mlp small", "0.3 ms", "torch eager, NHWC, 0.4 ms"]
