"""Draws of random operators: numbers of the distribution that they say, the same whenever the same program runs, others for another op."""

import math
from collections.abc import Callable

import numpy
import pytest
from tolerances import MOMENTS

import oarlock as ol

COUNT = 20_000
DRAWS: dict[str, Callable[[ol.Var], ol.Var]] = {
    "uniform": lambda like: ol.op.random_uniform(shape=(COUNT,), low=-1.0, high=3.0, dtype="float64"),
    "uniform_like": lambda like: ol.op.random_uniform_like(like, low=-1.0, high=3.0, dtype="float64"),
    "normal": lambda like: ol.op.random_normal(shape=(COUNT,), mean=1.0, deviation=2.0, dtype="float64"),
    "normal_like": lambda like: ol.op.random_normal_like(like, mean=1.0, deviation=2.0, dtype="float64"),
    "bernoulli": lambda like: ol.op.bernoulli(ol.op.full_like(like, value=0.3, dtype="float64")),
}
MOMENTS_OF = {"uniform": (1.0, 4.0 / math.sqrt(12.0)), "normal": (1.0, 2.0), "bernoulli": (0.3, math.sqrt(0.21))}


def drawn(*names: str, seed: int = 0, **options: object) -> list[numpy.ndarray]:
    with ol.Program(seed=seed) as program:
        like = ol.layer.data("like", shape=[], dtype="float32")
        found = [DRAWS[name](like) for name in names]
    return ol.Executor(**options).run(program, {"like": numpy.zeros(COUNT, "float32")}, found, scope=ol.Scope())


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_have_the_moments_of_their_distribution(name: str):
    (x,) = drawn(name)
    mean, deviation = MOMENTS_OF[name.partition("_")[0]]
    assert x.shape == (COUNT,)
    assert abs(x.mean() - mean) < MOMENTS * deviation / math.sqrt(COUNT)
    assert abs(x.std() - deviation) < MOMENTS * deviation * math.sqrt(1.0 / COUNT)
    assert abs(numpy.corrcoef(x[:-1], x[1:])[0, 1]) < MOMENTS / math.sqrt(COUNT)


def test_uniform_numbers_stay_in_their_range_and_fill_it():
    (x,) = drawn("uniform")
    counts, _ = numpy.histogram(x, bins=20, range=(-1.0, 3.0))
    assert counts.sum() == COUNT
    assert abs(counts - COUNT / 20).max() < MOMENTS * math.sqrt(COUNT / 20)


def test_normal_numbers_have_the_tails_of_their_distribution():
    (x,) = drawn("normal")
    for bound in (1.0, 2.0, 3.0):
        share = math.erfc(bound / math.sqrt(2.0))
        found = (abs((x - 1.0) / 2.0) > bound).mean()
        assert abs(found - share) < MOMENTS * math.sqrt(share * (1.0 - share) / COUNT)


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_program_draws_the_same_and_another_seed_or_op_other_numbers(name: str):
    first, second = drawn(name, name)
    again, _ = drawn(name, name, interpret=True)
    other, _ = drawn(name, name, seed=1)
    assert numpy.array_equal(first, again)
    assert not numpy.array_equal(first, second)
    assert not numpy.array_equal(first, other)


def test_each_step_of_training_draws_anew():
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", shape=[4])
        noise, kept = ol.op.random_normal_like(x), ol.op.bernoulli(ol.op.sigmoid(x))
        ol.optimizer.SGD(0.1).minimize(ol.layer.mean(ol.layer.fc(x * kept + noise, 1)))
    step = ol.Executor().prepare(program, [noise, kept], scope=ol.init(program, ol.Scope()))
    feed = {"x": numpy.ones((8, 4), "float32")}
    for first, second in zip(step(feed), step(feed), strict=True):
        assert not numpy.array_equal(first, second)


def test_no_gradient_flows_into_a_draw():
    with ol.Program():
        p = ol.layer.data("p", shape=[4])
        p.stop_gradient = False
        drawn = ol.op.bernoulli(p)
        assert ol.gradients([ol.op.reduce_sum(drawn)], [p]) == [None]


def test_a_shape_may_be_a_variable():
    with ol.Program() as program:
        shape = ol.layer.data("shape", shape=[2], dtype="int64", batch=None)
        y = ol.op.random_uniform(shape=shape)
    (found,) = ol.Executor().run(program, {"shape": numpy.array([3, 5])}, [y], scope=ol.Scope())
    assert found.shape == (3, 5)
    assert ((found >= 0.0) & (found < 1.0)).all()
