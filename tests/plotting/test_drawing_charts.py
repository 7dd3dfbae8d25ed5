"""Charts as text, SVG and images: what is drawn, and that a name is text wherever it stands."""

import io
import re
import sys
from xml.etree import ElementTree

import numpy
import pytest
from rich.console import Console

from oarlock.errors import ArgumentError
from oarlock.plotting import Chart, Curve, Plot
from oarlock.plotting.palette import looks_of
from oarlock.plotting.svg import draw_chart
from oarlock.plotting.terminal import draw_text

HOSTILE = '</title><script>alert(1)</script>"\x1b[2J$\\frac$ _\u202e'


def curve(values, run="one", part="training") -> Curve:
    return Curve(run, part, numpy.arange(1.0, len(values) + 1), numpy.array(values, float))


FALLING = [8.0, 4.0, 2.0, 1.0]
PAIR = Plot((Chart("loss", (curve(FALLING), curve([6.0, 5.0, 4.0, 4.0], part="validation"))),))


def drawn(plot: Plot, width: int = 40, **options) -> str:
    return "\n".join(line.rstrip() for line in draw_text(plot.charts, width=width, height=5, **options).plain.splitlines())


def test_two_curves_without_colors_are_letters():
    expected = """\
a training   b validation

loss by step
8 ┤aaaa
6 ┤bbbbbbaaa
4 ┤      bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
  │                   aaaaaaaaaaa
2 ┤                              aaaaaaa
  └┬───────────┬───────────┬───────────┬
   1           2           3           4"""
    assert drawn(PAIR) == expected


def test_a_single_curve_is_dots_and_in_colors_all_are():
    assert re.search("[\u2801-\u28ff]", drawn(Plot((Chart("loss", (curve(FALLING),)),))))
    assert re.search("[\u2801-\u28ff]", drawn(PAIR, colors=True))
    assert not re.search("[\u2801-\u28ff]", drawn(PAIR))


def test_a_terminal_without_these_letters_is_shown_ascii():
    assert drawn(PAIR, ascii_only=True).isascii()
    told = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    PAIR.show(Console(file=told, width=50))
    told.flush()
    assert b"a training   b validation" in told.buffer.getvalue()


@pytest.mark.parametrize("width", [1, 24, 60, 200])
def test_text_is_as_wide_as_it_may_be(width):
    lines = drawn(PAIR, width).splitlines()
    assert max(map(len, lines[2:])) <= max(width, 24)


@pytest.mark.parametrize("values", [[], [1.0], [float("nan")], [float("inf"), 2.0], [0.0, 0.0], [1e308, -1e308]])
@pytest.mark.parametrize("log", [False, True])
def test_whatever_was_measured_is_drawn(values, log):
    plot = Plot((Chart("loss", (curve(values), curve(values, part="validation")), log, 0.5),))
    assert "loss" in str(plot)
    ElementTree.fromstring(plot._repr_svg_())


def test_a_name_is_text_in_svg_and_steers_no_terminal():
    chart = Chart(HOSTILE, (curve(FALLING, HOSTILE), curve(FALLING, "two", HOSTILE), curve([float("nan")], "three")))
    picture = Plot((chart,))._repr_svg_()
    tree = ElementTree.fromstring(picture)
    assert {node.tag.rpartition("}")[2] for node in tree.iter()} == {"svg", "title", "style", "rect", "g", "path", "text", "circle"}
    assert "\x1b" not in picture
    assert "\u202e" not in picture
    looks = looks_of([HOSTILE, "two", "three"], ["training", HOSTILE])
    assert "<script" not in draw_chart(chart, looks)
    assert ElementTree.fromstring(draw_chart(chart, looks)).attrib["data-chart"].startswith('{"low":1.0,"high":4.0,')
    assert "\x1b" not in str(Plot((chart,)))


def test_a_picture_tells_each_curve_apart_without_color():
    picture = Plot((Chart("loss", (curve(FALLING, "a"), curve(FALLING, "a", "validation"), curve(FALLING, "b"))),))._repr_svg_()
    assert picture.count("stroke-dasharray=") == 2  # of the validation, in the chart and in the legend
    assert "<title>loss, a: last 1, min 1, max 8</title>" in picture
    assert "prefers-color-scheme: dark" in picture


def test_points_of_a_curve_are_where_its_values_are():
    picture = Plot((Chart("loss", (curve([0.0, 1.0, 0.5]),)),))._repr_svg_()
    points = re.findall(r'class="curve tone-0" d="M([\d. L]+)"', picture)[-1].split("L")
    (x0, y0), (x1, y1), (x2, y2) = (map(float, point.split()) for point in points)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 > y2 > y1
    assert y2 - y1 == pytest.approx(y0 - y2, abs=0.2)


@pytest.mark.parametrize(("suffix", "begins"), [(".png", b"\x89PNG\r\n"), (".pdf", b"%PDF"), (".SVG", b"<svg ")])
def test_a_plot_is_saved_by_its_suffix_whatever_its_names(suffix, begins, tmp_path, monkeypatch):
    if suffix != ".SVG":
        pytest.importorskip("matplotlib")
    monkeypatch.delenv("DISPLAY", raising=False)
    charts = [Chart(HOSTILE, (curve(FALLING, HOSTILE), curve([float("nan"), 3.0], "_two", "validation")), True, 0.5)]
    charts += [Chart("accuracy 精度", (curve([]),)), Chart("one", (curve([1.0]),))]
    Plot(tuple(charts)).save(tmp_path / f"plot{suffix}")
    assert (tmp_path / f"plot{suffix}").read_bytes().startswith(begins)


def test_an_image_has_the_colors_of_its_curves():
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    shown = numpy.asarray(image.open(io.BytesIO(PAIR.content(".png"))).convert("RGB")).reshape(-1, 3)
    for color in ((0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)):
        assert (abs(shown.astype(int) - color).max(1) < 8).sum() > 300
    assert (shown == 255).all(1).mean() > 0.7


def test_without_matplotlib_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ArgumentError) as raised:
        PAIR.save(tmp_path / "plot.png")
    assert str(raised.value) == (
        "writing PNG needs matplotlib, which is not installed\n"
        '  Try: pip install "oarlock[plot]", or save as .svg, which needs no package    (oarlock explain ArgumentError)'
    )
    assert list(tmp_path.iterdir()) == []


def test_another_suffix_is_refused():
    with pytest.raises(ArgumentError, match=r"^a plot can be saved as \.png, \.svg or \.pdf, not as '\.gif'$"):
        PAIR.content(".gif")


def test_drawing_a_terminal_plot_loads_no_matplotlib():
    """Whoever has no extra is not asked for one."""
    loaded = {name for name in sys.modules if name.startswith("matplotlib")}
    str(PAIR)
    assert {name for name in sys.modules if name.startswith("matplotlib")} == loaded
