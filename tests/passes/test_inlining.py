"""The ops of a branch that always runs stand where the branch stood; the others stay where they are."""

import numpy
import pytest
from rewritten import require_same_values, rewritten

import oarlock as ol

FEED = {"x": numpy.random.default_rng(0).standard_normal((6, 3))}


def two_ways(activation=ol.op.relu) -> tuple[ol.Program, ol.Var]:
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3], dtype="float64")
        choice = ol.ifelse()
        with choice.true_block():
            choice.output(activation(ol.layer.fc(x, 2, name="yes")))
        with choice.false_block():
            choice.output(ol.layer.fc(x, 2, name="no"))
        y = choice(ol.op.reduce_sum(x, axis=1) > 0)
    return program, y


def test_rows_of_two_ways_are_computed_where_the_branches_stood():
    program, y = two_ways()
    before, _ = rewritten(program, [y])
    lines, applied = rewritten(program, [y], "inline")
    assert applied == {"inline": 2}
    assert any("conditional_block" in line for line in before)
    assert not any("conditional_block" in line or line.startswith("block ") for line in lines)
    ops = [line.partition(" = ")[2].partition("(")[0] for line in lines]
    assert ops[-8:] == ["nonzero", "gather", "linear", "relu", "nonzero", "gather", "linear", "merge"]
    require_same_values(program, FEED, [y], "inline")


def test_what_a_branch_hands_on_as_it_was_given_is_assigned():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3], dtype="float64")
        choice = ol.ifelse()
        with choice.true_block():
            choice.output(x)
        with choice.false_block():
            choice.output(ol.op.neg(x))
        y = choice(ol.op.reduce_sum(x, axis=1) > 0)
    lines, applied = rewritten(program, [y], "inline")
    assert applied == {"inline": 2}
    assert sum(" = assign(" in line for line in lines) == 1
    require_same_values(program, FEED, [y], "inline")


def test_gradients_of_what_rows_go_through_become_updates():
    program, y = two_ways()
    with program:
        ol.optimizer.SGD(0.1).minimize(ol.op.mean(ol.op.square(y)))
    scopes = []
    for passes in ((), ("inline", "fuse_updates")):
        scope, executor = ol.init(program, ol.Scope()), ol.Executor(passes=passes)
        for _ in range(3):
            executor.run(program, FEED, scope=scope)
        scopes.append(scope)
        applied = executor.plan(program).applied
    assert applied == {"inline": 4, "fuse_updates": 2}
    for name in ("yes.w", "yes.b", "no.w", "no.b"):
        numpy.testing.assert_allclose(scopes[0][name], scopes[1][name], rtol=1e-10)


@pytest.mark.parametrize("inside", ["refuses", "draws", "loops"])
def test_a_branch_whose_ops_tell_where_they_stand_stays(inside):
    activation = {
        "refuses": lambda x: ol.op.gather(x, ol.op.arange_like(x)),
        "draws": lambda x: ol.op.dropout(x, rate=0.5),
        "loops": lambda x: ol.cond(ol.op.full(shape=(), value=1.0, dtype="float64") > 0, lambda: ol.op.relu(x), lambda: ol.op.tanh(x)),
    }[inside]
    program, y = two_ways(activation)
    lines, applied = rewritten(program, [y], "inline")
    assert applied == {"inline": 1}
    assert any("conditional_block" in line for line in lines)
    require_same_values(program, FEED, [y], "inline")


def test_a_branch_that_may_not_run_stays():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3], dtype="float64")
        y = ol.cond(ol.op.reduce_sum(x) > 0, lambda: x + 1.0, lambda: x - 1.0)
    _, applied = rewritten(program, [y], "inline")
    assert applied == {"inline": 0}
