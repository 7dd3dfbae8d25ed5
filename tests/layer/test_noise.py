"""Noise in training: its moments, its gradient, and that other runs have none."""

import numpy
import pytest

import oarlock as ol

ROWS = numpy.random.default_rng(0).normal(2.0, 1.0, size=(400, 500)).astype("float32")


@pytest.mark.parametrize("options", [{"interpret": True}, {}], ids=["interpreter", "plan"])
def test_noise_has_the_moments_that_are_asked_for_and_only_in_training(options):
    with ol.Program(seed=0) as program:
        x = ol.layer.data("x", [500])
        added, multiplied = ol.layer.gaussian_noise(x, 0.5), ol.layer.gaussian_dropout(x, 0.2)
        gradients = ol.gradients([ol.op.reduce_sum(added)], [x]) + ol.gradients([ol.op.reduce_sum(multiplied)], [x])
    executor, scope = ol.Executor(**options), ol.init(program, ol.Scope())
    found = executor.run(program, {"x": ROWS}, [added, multiplied, *gradients], scope=scope, training=True)
    noise, factor = found[0] - ROWS, found[3]
    assert abs(noise.mean()) < 0.01
    assert abs(noise.std() - 0.5) < 0.01
    assert abs(factor.mean() - 1.0) < 0.01
    assert abs(factor.std() - 0.5) < 0.01  # the root of 0.2 / 0.8
    numpy.testing.assert_allclose(found[1], ROWS * factor, rtol=1e-6)
    assert (found[2] == 1.0).all()
    again = executor.run(program, {"x": ROWS}, [added], scope=scope, training=True)[0]
    assert not numpy.array_equal(again, found[0])
    for value, expected in zip(
        executor.run(program, {"x": ROWS}, [added, multiplied, *gradients], scope=scope, training=False),
        (ROWS, ROWS, numpy.ones_like(ROWS), numpy.ones_like(ROWS)), strict=True,
    ):  # fmt: skip
        assert numpy.array_equal(value, expected)


def test_no_noise_is_none_and_numbers_out_of_range_are_refused():
    with ol.Program() as program:
        x = ol.layer.data("x", [3])
        y = ol.layer.gaussian_dropout(ol.layer.gaussian_noise(x, 0.0), 0.0)
        with pytest.raises(ol.ArgumentError, match="gaussian_noise: deviation must be a non-negative number, not -1"):
            ol.layer.gaussian_noise(x, -1)
        with pytest.raises(ol.ArgumentError, match=r"gaussian_dropout: rate must be in \[0, 1\), not 1\.0"):
            ol.layer.gaussian_dropout(x, 1.0)
    value = numpy.ones((2, 3), "float32")
    assert numpy.array_equal(ol.Executor().run(program, {"x": value}, [y], scope=ol.init(program, ol.Scope()), training=True)[0], value)
