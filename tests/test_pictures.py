"""The pictures of README.md are what their command draws now."""

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
_spec = importlib.util.spec_from_file_location("draw", FOLDER / "draw.py")
draw = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(draw)


@pytest.mark.parametrize("name", draw.PICTURES)
def test_a_picture_is_what_the_command_draws(name):
    drawn = draw.PICTURES[name]()
    assert ElementTree.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
    assert (FOLDER / name).read_text(encoding="utf-8") == drawn, f"python docs/pictures/draw.py remakes {name}"


def test_every_picture_of_the_folder_has_its_command():
    assert sorted(path.name for path in FOLDER.glob("*.svg")) == sorted(draw.PICTURES)


def test_the_chart_has_every_workload_of_the_table():
    document = draw.FIGURES.read_text(encoding="utf-8")
    table = document.split("| ours / best |")[1].split("\n\n")[0]
    assert [name.split()[0] for name, *_ in draw.read_step_times(document)] == re.findall(r"^\| ([WI]\d+) \|", table, re.MULTILINE)


def test_the_lengths_of_bars_are_in_the_ratio_of_the_times():
    chart = draw.draw_step_times("| W1 | 0.3 | torch eager, NHWC 0.4 | 0.75 | 1.00 | 2.00 |\n")
    assert re.findall(r'<rect class="(\w+)" x="190" y="\d+" width="(\d+)" height="12"', chart)[1:] == [("ours", "180"), ("peer", "240")]
    assert re.findall(r">(W1.*|0.*|torch.*)<", chart) == ["W1 mlp small", "0.3 ms", "torch eager, NHWC, 0.4 ms"]
