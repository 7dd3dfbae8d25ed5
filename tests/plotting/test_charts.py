"""Curves as they are drawn: smoothed, thinned out, with gaps for what is no number; axes and their ticks."""

import numpy
import pytest

from oarlock.errors import ArgumentError
from oarlock.plotting.axis import Axis, format_number
from oarlock.plotting.chart import Chart, Curve, require_smooth
from oarlock.plotting.palette import legend_of, looks_of, tone_of

NAN, INF = float("nan"), float("inf")


def curve(values, *, run="one", part="training", first=1) -> Curve:
    return Curve(run, part, numpy.arange(first, first + len(values), dtype=float), numpy.array(values, float))


def test_a_smooth_curve_is_the_weighted_mean_of_what_came_before_and_begins_where_the_curve_does():
    assert curve([4.0, 0.0, 0.0]).smoothed(0.5).values.tolist() == [4.0, 4 * 0.25 / 0.75, 4 * 0.125 / 0.875]
    assert curve([4.0, 0.0]).smoothed(0.0).values.tolist() == [4.0, 0.0]
    assert curve([4.0, 0.0], part="validation").smoothed(0.5).values.tolist() == [4.0, 0.0]


def test_what_is_no_number_stays_so_in_a_smooth_curve_and_has_no_part_in_the_others():
    smooth = curve([4.0, NAN, INF, 0.0]).smoothed(0.5).values
    assert smooth[[0, 3]].tolist() == curve([4.0, 0.0]).smoothed(0.5).values.tolist()
    assert numpy.isnan(smooth[1])
    assert smooth[2] == INF


def test_a_long_curve_is_thinned_out_and_keeps_its_peaks_its_ends_and_its_gaps():
    values = numpy.sin(numpy.arange(100_000) / 1000)
    values[[12_345, 54_321]], values[70_000] = [50.0, -50.0], NAN
    thin = curve(values).thinned(500)
    assert len(thin.steps) <= 510
    assert {50.0, -50.0} <= set(thin.values)
    assert numpy.isnan(thin.values).sum() == 1
    assert thin.steps[[0, -1]].tolist() == [1, 100_000]
    assert (numpy.diff(thin.steps) > 0).all()
    short = curve([1.0, 2.0])
    assert short.thinned(500) is short


def test_a_curve_is_drawn_in_pieces_between_its_gaps():
    axis = Axis(0.0, 1.0)
    assert [(xs.tolist(), ys.tolist()) for xs, ys in curve([0.1, 0.2, NAN, 0.3, -INF]).pieces(axis)] == [
        ([1.0, 2.0], [0.1, 0.2]),
        ([4.0], [0.3]),
    ]
    assert [ys.tolist() for _, ys in curve([0.1, 0.0, 0.2]).pieces(Axis(0.1, 1.0, log=True))] == [[0.1], [0.2]]
    assert curve([NAN]).pieces(axis) == curve([]).pieces(axis) == []


def test_a_chart_says_what_it_cannot_draw():
    chart = Chart("loss", (curve([1.0, NAN, INF]), curve([-1.0, 2.0], run="two")), log=True)
    assert chart.notes == [
        "one, training: 2 of 3 values are not finite, the first nan at step 2",
        "two, training: 1 of 2 values are not above 0, and cannot be shown on a logarithmic axis",
    ]
    assert Chart("loss", (curve([-1.0, 0.0]),), log=True).notes == ["no value is above 0, so the axis is linear"]
    assert not Chart("loss", (curve([-1.0, 0.0]),), log=True).is_log
    assert Chart("loss", (curve([NAN]),)).notes == ["training: the value is not finite, the first nan at step 1"]


@pytest.mark.parametrize(
    "values",
    [[], [NAN], [0.3], [0.0], [2.0, 2.0], [1e308, -1e308], [1e149, -1e149], [0.0, 1e-320], [1e-320], [5e-9, 5e-9 + 1e-24], [-7.0, 1e12]],
)
@pytest.mark.parametrize("log", [False, True])
def test_every_chart_has_a_range_with_finite_ticks_inside(values, log):
    chart = Chart("loss", (curve(values),), log)
    for axis in (chart.values, chart.steps):
        assert axis.low < axis.high
        places = axis.place(numpy.array([value for value, _ in axis.ticks(5)]))
        assert ((places >= 0) & (places <= 1)).all()
    drawn = [place for _, ys in chart.lines[0].pieces(chart.values) for place in chart.values.place(ys)]
    assert all(0 <= place <= 1 for place in drawn)
    assert len(drawn) == sum(abs(value) < 1e150 and (value > 0 or not chart.is_log) for value in values)


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis(0.0, 1.0), "0 0.2 0.4 0.6 0.8 1.0"),
        (Axis(0.97, 1.004), "0.970 0.975 0.980 0.985 0.990 0.995 1.000"),
        (Axis(1.0, 24_000.0), "5,000 10,000 15,000 20,000"),
        (Axis(-2.0, 2.0), "-2 -1 0 1 2"),
        (Axis(0.0, 3e7), "0 5e+06 1.0e+07 1.5e+07 2.0e+07 2.5e+07 3.0e+07"),
        (Axis(1e-4, 10.0, log=True), "0.0001 0.001 0.01 0.1 1 10"),
        (Axis(0.2, 0.9, log=True), "0.2 0.5"),
        (Axis(1e-30, 1.0, log=True), "1e-30 1e-25 1e-20 1e-15 1e-10 1e-05 1"),
    ],
)
def test_ticks_are_round_numbers(axis, ticks):
    assert " ".join(name for _, name in axis.ticks(5)) == ticks


def test_numbers_have_four_digits():
    numbers = [0.0, 0.123456, 12.34567, 999.96, 12345.6, 1234567.0, 0.00001234, NAN, -INF]
    assert [format_number(number) for number in numbers] == [
        "0",
        "0.1235",
        "12.35",
        "1000",
        "12,346",
        "1.235e+06",
        "1.234e-05",
        "nan",
        "-inf",
    ]


def test_a_few_values_far_out_do_not_press_a_smooth_curve_flat():
    values = numpy.ones(1000)
    values[::2], values[500] = 1.1, 1e6
    assert Chart("loss", (curve(values),), smooth=0.99).values.high < 1e5
    assert Chart("loss", (curve(values),)).values.high > 1e6


@pytest.mark.parametrize("smooth", [-0.1, 1.0, NAN, "0.5", True])
def test_a_weight_is_from_0_to_less_than_1(smooth):
    with pytest.raises(ArgumentError, match="smooth must be from 0 to less than 1, not "):
        require_smooth(smooth)


def test_each_run_has_a_color_of_its_own_or_dashes_where_there_are_no_more():
    looks = looks_of([str(number) for number in range(24)], ["training"])
    assert len({(look.tone.light, look.tone.dashes) for look in looks.values()}) == 24
    pair = looks_of(["a", "b"], ["training", "validation"])
    assert [(look.name, look.is_marked, bool(look.tone.dashes)) for look in pair.values()] == [
        ("a", False, False),
        ("a, validation", True, True),
        ("b", False, False),
        ("b, validation", True, True),
    ]
    assert pair["a", "training"].tone.light == pair["a", "validation"].tone.light
    alone = looks_of(["a"], ["training", "validation"])
    assert [look.name for look in alone.values()] == ["training", "validation"]
    assert len({look.tone.light for look in alone.values()}) == 2


def test_a_legend_has_each_run_once_and_says_what_dashes_are():
    def names(*drawn: tuple[str, str]) -> list[tuple[str, bool]]:
        return [(look.name, bool(look.tone.dashes)) for look in legend_of(drawn)]

    a, b = ("a", "training"), ("b", "training")
    assert names(a, ("a", "validation")) == [("training", False), ("validation", False)]
    assert names(a, b) == [("a", False), ("b", False)]
    assert names(a, ("a", "validation"), b) == [("a", False), ("b", False), ("validation", True)]
    assert names(("a", "validation"), ("b", "validation")) == [("a", True), ("b", True)]


def luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("number", range(6))
def test_colors_stand_out_from_their_backgrounds(number):
    """Three to one, as WCAG 2.2 (1.4.11) asks of lines."""
    tone = tone_of(number)
    assert 1.05 / (luminance(tone.light) + 0.05) >= 3
    assert (luminance(tone.dark) + 0.05) / (luminance("#0d1117") + 0.05) >= 3
