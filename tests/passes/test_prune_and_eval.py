"""Pruning and evaluating share one analysis: what cannot reach a target does not run."""

import numpy
import pytest

import oarlock as ol
from oarlock.ir.traversal import walk
from oarlock.registry import Catalogue
from oarlock.runtime import preparation


@pytest.fixture
def counted():
    """An operator that counts how often it runs, and a catalogue that has it."""
    catalogue = Catalogue()
    runs = []

    @ol.operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def count(x, *, tag: str):
        runs.append(tag)
        return x + 1

    return catalogue, count, runs


@pytest.mark.mission("B49")
def test_nothing_runs_that_cannot_reach_a_target(counted):
    catalogue, count, runs = counted
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[])
        shared = count(x, tag="shared")
        left, right = count(shared, tag="left"), count(shared, tag="right")
        count(left, tag="after left")
    executor = ol.Executor(catalogue=catalogue)
    feed = {"x": numpy.zeros(1, "float32")}
    for targets, expected in (
        ([left], ["shared", "left"]),
        ([right], ["shared", "right"]),
        ([x], []),
        ([left, right], ["shared", "left", "right"]),
    ):
        runs.clear()
        executor.eval(program, targets, feed, scope=ol.Scope())
        assert runs == expected
        pruned = ol.prune(program, {var.name: var for var in targets})
        assert [op.attributes["tag"] for op in walk(pruned.main)] == expected


@pytest.mark.mission("B49", "B45")
def test_what_targets_need_is_found_once(counted, monkeypatch):
    catalogue, count, runs = counted
    with ol.Program() as program:
        y = count(ol.layer.data("x", shape=[]), tag="y")
    executor = ol.Executor(catalogue=catalogue)
    asked = []
    monkeypatch.setattr("oarlock.runtime.preparation.needed_ops", lambda ops, wanted: asked.append(wanted) or list(ops))
    for _ in range(3):
        executor.eval(program, [y], {"x": numpy.zeros(1, "float32")}, scope=ol.Scope())
    assert (len(asked), runs) == (1, ["y"] * 3)
    executor.eval(program, ["x"], {"x": numpy.zeros(1, "float32")}, scope=ol.Scope())
    assert len(asked) == 2


@pytest.mark.mission("B48", "B49")
def test_a_block_and_ol_eval_find_what_targets_need_once(monkeypatch):
    with ol.Program() as program:
        y = ol.op.square(ol.layer.data("x", shape=[]), name="y")
    scope, asked = ol.Scope(), []
    scope["x"] = numpy.ones(1, "float32")
    original = preparation.needed_ops
    monkeypatch.setattr("oarlock.runtime.preparation.needed_ops", lambda ops, wanted: asked.append(wanted) or original(ops, wanted))
    for _ in range(3):
        program.main.eval([y], scope)
        program.main.eval(y, scope, ol.CPUPlace())
        ol.eval(y, context=ol.Context(scope))
    assert len(asked) == 1
    program.main.eval(["x", "y"], scope)
    assert len(asked) == 2


@pytest.mark.mission("B48")
def test_eval_prunes_runs_and_returns_the_values_of_its_targets():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        y = ol.layer.fc(x, 1, name="fc")
        cost = ol.layer.mean(ol.op.square(y))
        ol.optimizer.SGD(1.0).minimize(cost)
    scope = ol.Scope()
    scope.set("fc.w", numpy.array([[2], [3]], "float32"))
    scope.set("fc.b", numpy.zeros(1, "float32"))
    ol.init(program, scope)
    feed = {"x": numpy.array([[1, 0], [0, 1]], "float32")}
    first, second = ol.Executor().eval(program, [y, cost], feed, scope=scope)
    assert (first.tolist(), float(second)) == ([[2], [3]], 6.5)
    assert (scope["fc.w"].tolist(), "fc.out" in scope) == ([[2], [3]], False)
    assert ol.eval([cost], feed, context=ol.Context(scope))[0] == 6.5
    assert ol.eval(y, feed, context=ol.Context(scope)).tolist() == [[2], [3]]
    assert int(scope["@STEP"]) == 0


def test_eval_gives_what_pruning_and_running_give():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        y = ol.op.square(x, name="y")
        ol.op.neg(y)
    kept = ol.prune(program, {"y": y})
    scope = ol.Scope()
    scope.set("x", numpy.array([[3, 4]], "float32"))
    ol.Net(ol.Program.from_bytes(kept.to_bytes())).run(scope)
    assert scope["y"].tolist() == ol.eval(y, {"x": numpy.array([[3, 4]], "float32")}).tolist() == [[9, 16]]


@pytest.mark.mission("B47", "C6")
def test_names_are_told_apart_by_their_blocks_when_pruning():
    """Two variables are called `z`, one of them in the loop; each target keeps what it needs of its own."""
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[], batch="t")
        z = ol.op.neg(xs, name="z")
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.op.square(loop.step_input(xs), name="z"))
        squares = loop()
    kept = ol.prune(program, {"squares": squares})
    assert [op.type for op in walk(kept.main)] == ["recurrent", "square"]
    assert "z" not in kept.main.vars
    assert [op.type for op in walk(ol.prune(program, {"z": z}).main)] == ["neg"]
    with pytest.raises(ol.UndefinedVarError, match="^target .* is not a variable of the main block of this program"):
        ol.prune(program, {"inner": program.blocks[1].var("z")})


def test_evaluating_initialises_the_parameters_that_the_targets_need_and_no_others():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        y = ol.layer.fc(x, 2, name="first")
        ol.layer.fc(y, 2, name="second")
        loop = ol.rnn()
        with loop.step():
            inside = ol.layer.fc(loop.step_input(x), 2, name="inside")
            loop.output(inside)
        loop()
    scope, feed = ol.Scope(), {"x": numpy.ones((4, 3), "float32")}
    context = ol.Context(scope)
    assert ol.eval(y, feed, context=context).shape == (4, 2)
    assert list(scope) == ["first.w", "first.b"]
    assert ol.eval(inside, feed, context=context).shape == (4, 2)
    assert list(scope) == ["first.w", "first.b", "inside.w", "inside.b"]
    ol.eval(program.main.var("second.w"), context=context)
    assert "second.w" in scope
    assert "second.b" not in scope
