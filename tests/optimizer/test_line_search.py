"""The search along a line finds what PyTorch's does, on lines with many bottoms, from any first length, in any number of evaluations."""

import math

import numpy
import pytest
import torch
from tolerances import PYTORCH
from torch.optim.lbfgs import _strong_wolfe

import oarlock as ol
from oarlock.ir.operation import Role
from oarlock.optimizer.line_search import Point, search_line


def line(tolerance: float) -> tuple[ol.Program, list[ol.Var]]:
    """``f(x) = a x + b sin(c x + d) + e x**2``, with the coefficients, the first length and how often to evaluate fed."""
    with ol.Program() as program:
        names = [ol.layer.data(name, shape=[], dtype="float64", batch=None) for name in (*"abcde", "length")]
        a, b, c, d, e, length = names
        most, when = (ol.layer.data(name, shape=[], dtype=dtype, batch=None) for name, dtype in (("most", "int64"), ("when", "bool")))

        def evaluate(x: ol.Var) -> tuple[ol.Var, ol.Var]:
            slope = a + b * c * ol.op.cos(c * x + d) + 2.0 * e * x
            return a * x + b * ol.op.sin(c * x + d) + e * x * x, ol.op.reshape(slope, shape=(1,))

        with program.write_as(Role.UPDATE):
            cost, gradient = evaluate(length * 0.0)
            direction = ol.op.full(shape=(1,), value=1.0, dtype="float64")
            start = Point(length * 0.0, cost, gradient, ol.op.dot(gradient, direction))
            found, count = search_line(evaluate, start, direction, length, most=most, tolerance=tolerance, when=when)
    return program, [found.length, found.cost, found.slope, count]


def by_torch(coefficients, length, most, tolerance):
    a, b, c, d, e = coefficients

    def evaluate(x, t, direction):
        cost = a * t + b * math.sin(c * t + d) + e * t * t
        return cost, torch.tensor([a + b * c * math.cos(c * t + d) + 2 * e * t], dtype=torch.float64)

    origin, direction = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    cost, gradient = evaluate(origin, 0.0, direction)
    found = _strong_wolfe(
        evaluate, origin, length, direction, cost, gradient, gradient.dot(direction), tolerance_change=tolerance, max_ls=most
    )
    cost, gradient, length, count = found
    return [float(length), float(cost), float(gradient), count]


@pytest.mark.parametrize(("tolerance", "most"), [(1e-9, 25), (1e-9, 1), (1e-9, 3), (0.3, 25)])
def test_the_length_the_cost_and_the_evaluations_are_pytorchs(tolerance, most):
    program, targets = line(tolerance)
    executor, random = ol.Executor(), numpy.random.default_rng(most)
    counts: list[float] = []
    while len(counts) < 50:
        a, b, c, d, e = random.uniform([-1, -3, 0.1, -3, 0.001], [-0.01, 3, 6, 3, 0.2])
        if a + b * c * math.cos(d) >= 0:  # uphill, where no search begins
            b = -b - 2 * abs(a / (c * math.cos(d)))
        length = float(10 ** random.uniform(-3, 2))
        feed = {**dict(zip("abcde", (a, b, c, d, e), strict=True)), "length": length, "most": most, "when": True}
        expected = by_torch((a, b, c, d, e), length, most, tolerance)
        if not numpy.allclose(by_torch((a, b, c, d + 1e-14, e), length, most, tolerance), expected, rtol=1e-8):
            continue  # a cubic through two places that are hardly apart tells rounding
        found = [float(value) for value in executor.run(program, feed, targets, scope=ol.Scope())]
        numpy.testing.assert_allclose(found, expected, rtol=1e4 * PYTORCH[0], atol=1e4 * PYTORCH[0], err_msg=str(feed))
        counts.append(expected[3])
    assert len(set(counts)) > 2 or most < 25, "the lines are of many kinds"


def test_nothing_is_evaluated_where_it_is_not_asked_for():
    program, targets = line(1e-9)
    feed = {**dict.fromkeys("abcde", -1.0), "length": 1.0, "most": 5, "when": False}
    length, cost, _, count = ol.Executor().run(program, feed, targets, scope=ol.Scope())
    assert (float(length), int(count)) == (0.0, 0)
    assert float(cost) == pytest.approx(-math.sin(-1.0))


def test_a_last_evaluation_that_leads_uphill_leaves_the_place_where_it_is():
    """PyTorch goes back to where the search began then, and not to the lower place in between."""
    program, targets = line(1e-9)
    coefficients, length = (-0.297, -1.59, 1.238, -1.618, 0.176), 0.728
    expected = by_torch(coefficients, length, 1, 1e-9)
    assert expected[0] == 0.0
    feed = {**dict(zip("abcde", coefficients, strict=True)), "length": length, "most": 1, "when": True}
    found = [float(value) for value in ol.Executor().run(program, feed, targets, scope=ol.Scope())]
    numpy.testing.assert_allclose(found, expected, rtol=PYTORCH[0], atol=PYTORCH[0])
