"""Writes of a gradient at given indices: indices that anyone may give are checked, those of our own are not."""

import numpy
import pytest

import oarlock as ol
from oarlock.op.pooling import max_pool2d, max_pool2d_dx
from oarlock.registry import standard
from oarlock.registry.value_checks import checks_values, may_skip_checks

EXECUTORS = {
    "plan": ol.Executor(),
    "plain": ol.Executor(passes=()),
    "interpreter": ol.Executor(interpret=True),
    "limited": ol.Executor(limits=ol.RunLimits()),
}
WINDOWS = {"size": (2, 2), "stride": (2, 2), "padding": (0, 0)}
EVIL = [-1, 16, 48, -5, -48, 2**31, 2**63 - 1, -(2**63)]


def _back(given: str) -> ol.Program:
    """The gradient of a pooling whose index is fed, is state, or is a constant."""
    with ol.Program() as program:
        x = ol.layer.data("x", [1, 4, 4], dtype="float64")
        dy = ol.layer.data("dy", [1, 2, 2], dtype="float64")
        if given == "fed":
            index = ol.layer.data("index", [1, 2, 2], dtype="int64")
        else:
            index = program.main.new_var("index", ol.DType.INT64, (1, 1, 2, 2), persistable=True, stop_gradient=True)
        program.targets["dx"] = max_pool2d_dx(index, dy, x, **WINDOWS)
    return program


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("given", ["fed", "state"])
@pytest.mark.parametrize("evil", EVIL)
def test_an_index_that_is_no_place_of_the_image_is_refused(executor: str, given: str, evil: int):
    program, scope = _back(given), ol.Scope()
    index = numpy.zeros((1, 1, 2, 2), "int64")
    index[0, 0, 1, 0] = evil
    feed = {"x": numpy.zeros((1, 1, 4, 4)), "dy": numpy.ones((1, 1, 2, 2))}
    if given == "fed":
        feed["index"] = index
    else:
        scope["index"] = index
    with pytest.raises(ol.KernelError) as raised:
        EXECUTORS[executor].run(program, feed, ["dx"], scope=scope)
    assert raised.value.message == f"max_pool2d_dx: index {evil} is out of range for an image of 4 x 4 positions, numbered from 0"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_index_from_elsewhere_that_is_a_place_is_taken(executor: str):
    feed = {"x": numpy.zeros((1, 1, 4, 4)), "dy": numpy.ones((1, 1, 2, 2)), "index": numpy.array([[[[0, 15], [15, 15]]]])}
    (dx,) = EXECUTORS[executor].run(_back("fed"), feed, ["dx"], scope=ol.Scope())
    assert dx.reshape(-1).tolist() == [1.0, *[0.0] * 14, 3.0]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_no_windows_have_no_index_to_look_at(executor: str):
    feed = {"x": numpy.zeros((0, 1, 4, 4)), "dy": numpy.ones((0, 1, 2, 2)), "index": numpy.zeros((0, 1, 2, 2), "int64")}
    (dx,) = EXECUTORS[executor].run(_back("fed"), feed, ["dx"], scope=ol.Scope())
    assert dx.shape == (0, 1, 4, 4)


def _pooled() -> ol.Program:
    """A pooling with its gradient, which is told another image of the same size."""
    with ol.Program() as program:
        x, like = (ol.layer.data(name, [1, 4, 4], dtype="float64") for name in ("x", "like"))
        pooled = max_pool2d(x, **WINDOWS)
        program.targets["dx"] = max_pool2d_dx(program.main.ops[-1].outputs["index"][0], pooled, like, **WINDOWS)
    return program


def _text(program: ol.Program) -> str:
    return ol.Executor().plan(program, ["dx"]).text


def test_a_plan_does_not_look_at_indices_that_the_program_made_itself():
    program = _pooled()
    (op,) = (op for op in program.main.ops if op.type == "max_pool2d_dx")
    assert may_skip_checks(standard.get("max_pool2d_dx"), op)
    assert not checks_values(standard.get("max_pool2d_dx"), op)
    assert "= max_pool2d_dx_unchecked" in _text(program)
    assert "= max_pool2d_dx_unchecked" not in _text(_back("fed"))


def test_training_a_network_looks_at_no_index():
    with ol.Program() as program:
        x = ol.layer.data("x", [1, 8, 8])
        pooled = ol.layer.pool2d(ol.layer.conv2d(x, filters=2, size=3, act="relu"), size=2)
        cost = program.targets["dx"] = ol.layer.mean(ol.layer.fc(ol.layer.flatten(pooled), 1))
        ol.optimizer.SGD(0.1).minimize(cost)
    assert _text(program).count("max_pool2d_dx_unchecked") == 1


@pytest.mark.parametrize("executor", EXECUTORS)
def test_indices_of_a_larger_image_are_looked_at(executor: str):
    """The indices of a pooled image of 4 x 4 are written into one of 2 x 2.

    Each image has one window of its own size, so the number of windows does not tell the two apart.
    """
    with ol.Program() as program:
        x = ol.layer.data("x", [1, 4, 4], dtype="float64")
        like = ol.layer.data("like", [1, 2, 2], dtype="float64")
        pooled = max_pool2d(x, size=(4, 4), stride=(4, 4))
        index = program.main.ops[-1].outputs["index"][0]
        program.targets["dx"] = max_pool2d_dx(index, pooled, like, size=(2, 2), stride=(2, 2), padding=(0, 0))
    image = numpy.zeros((1, 1, 4, 4))
    image[0, 0, 3, 3] = 1.0
    with pytest.raises(ol.KernelError) as raised:
        EXECUTORS[executor].run(program, {"x": image, "like": numpy.zeros((1, 1, 2, 2))}, ["dx"], scope=ol.Scope())
    assert raised.value.message == "max_pool2d_dx: index 15 is out of range for an image of 2 x 2 positions, numbered from 0"


def test_the_form_for_indices_of_our_own_gives_the_bits_of_the_kernel():
    generator = numpy.random.default_rng(0)
    feed = {"x": generator.normal(size=(3, 1, 4, 4)), "like": numpy.zeros((3, 1, 4, 4))}
    program = _pooled()
    (unchecked,) = ol.Executor().run(program, feed, ["dx"], scope=ol.Scope())
    (looking,) = ol.Executor(interpret=True).run(program, feed, ["dx"], scope=ol.Scope())
    assert unchecked.tobytes() == looking.tobytes()
