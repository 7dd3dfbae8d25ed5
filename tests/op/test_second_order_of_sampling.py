"""Gradients of the gradients of `grid_sample`, which PyTorch does not have: finite differences of its first ones, places outside too."""

from collections.abc import Callable

import numpy
import pytest
from tolerances import FINITE_DIFFERENCE_STEP, FINITE_DIFFERENCES

import oarlock as ol


def differences(function: Callable[[numpy.ndarray], float], at: numpy.ndarray) -> numpy.ndarray:
    found = numpy.zeros_like(at)
    for index in range(at.size):
        step = numpy.zeros_like(at)
        step.flat[index] = FINITE_DIFFERENCE_STEP
        found.flat[index] = (function(at + step) - function(at - step)) / (2 * FINITE_DIFFERENCE_STEP)
    return found


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(("mode", "axes"), [("bilinear", 2), ("bilinear", 3), ("bicubic", 2)])
def test_a_penalty_on_the_gradients_of_sampled_images_has_its_own(mode, axes, padding_mode, align_corners):
    random = numpy.random.default_rng(0)
    x = random.normal(size=(1, 2, 4, 3) if axes == 2 else (1, 1, 2, 3, 2))
    grid = random.uniform(-1.6, 1.6, size=(1, 2, 2, 2) if axes == 2 else (1, 1, 1, 3, 3))
    with ol.Program() as program:
        vars = [ol.layer.data(name, list(each.shape), dtype="float64", batch=None) for name, each in (("x", x), ("grid", grid))]
        y = ol.op.grid_sample(*vars, mode=mode, padding_mode=padding_mode, align_corners=align_corners)
        firsts = ol.gradients([ol.op.reduce_sum(ol.op.sin(y))], vars)
        penalty = ol.op.reduce_sum(ol.op.square(firsts[0])) + 0.3 * ol.op.reduce_sum(ol.op.square(firsts[1]))
        seconds = ol.gradients([penalty], vars)
    executor, scope = ol.Executor(), ol.Scope()
    step = executor.prepare(program, [penalty], scope=scope)
    found = executor.run(program, {"x": x, "grid": grid}, seconds, scope=scope)
    of_x = differences(lambda moved: float(step({"x": moved, "grid": grid})[0]), x)
    of_grid = differences(lambda moved: float(step({"x": x, "grid": moved})[0]), grid)
    for ours, expected in zip(found, (of_x, of_grid), strict=True):
        numpy.testing.assert_allclose(ours, expected, rtol=FINITE_DIFFERENCES[0], atol=10 * FINITE_DIFFERENCES[1])


def test_places_that_are_chosen_to_the_nearest_pixel_have_none():
    with ol.Program() as program:
        x, grid = (ol.layer.data(name, shape, dtype="float64", batch=None) for name, shape in (("x", [1, 1, 2, 2]), ("grid", [1, 1, 3, 2])))
        (first,) = ol.gradients([ol.op.reduce_sum(ol.op.square(ol.op.grid_sample(x, grid, mode="nearest")))], [grid])
        seconds = ol.gradients([ol.op.reduce_sum(ol.op.exp(first))], [x, grid])
    feed = {"x": numpy.ones((1, 1, 2, 2)), "grid": numpy.full((1, 1, 3, 2), 0.3)}
    assert not any(each.any() for each in ol.Executor().run(program, feed, seconds, scope=ol.Scope()))
