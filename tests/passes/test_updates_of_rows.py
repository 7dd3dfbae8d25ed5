"""The gradient of a table that is looked up: an update takes its rows, and no table of gradients is made."""

import re

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.ir.verification import verify_program
from oarlock.passes.pipeline import optimize
from oarlock.registry import standard, typecheck

IDS = numpy.array([[2, 0], [2, 2], [4, 0]])


def lookup(*, twice: bool = False, optimizer=None) -> tuple[ol.Program, ol.Var]:
    with ol.Program(seed=0) as program:
        ids = ol.layer.data("ids", shape=[2], dtype="int64")
        rows = ol.layer.embedding(ids, (5, 3), dtype="float64", params=["words"])
        if twice:
            first = ol.op.reshape(ol.op.slice(ids, axis=1, start=0, stop=1), shape=("n",))
            rows = ol.op.reduce_sum(rows, axis=1) + ol.layer.embedding(first, (5, 3), dtype="float64", params=["words"])
        cost = ol.layer.mean(ol.op.square(ol.op.tanh(rows)))
        (optimizer or ol.optimizer.SGD(0.1)).minimize(cost)
    return program, cost


def updates(program: ol.Program, *wanted: ol.Var) -> list[str]:
    """The operators that change the table, once `fuse_updates` has been."""
    copy = program.clone()
    optimize(copy, [copy.main.vars[var.name] for var in wanted], standard, ["fuse_updates"])
    verify_program(copy)
    typecheck(copy, standard)
    return [op.type for op in copy.main.ops if op.type in ("sgd", "momentum", "adam", "sparse_sgd")]


def tables(program: ol.Program, cost: ol.Var, executor: ol.Executor) -> torch.Tensor:
    scope = ol.init(program, ol.Scope())
    for _ in range(4):
        executor.run(program, {"ids": IDS}, [cost], scope=scope, training=True)
    return scope["words"]


@pytest.mark.parametrize("twice", [False, True])
def test_a_step_takes_the_rows_of_each_lookup(twice):
    program, cost = lookup(twice=twice)
    assert updates(program, cost) == ["sparse_sgd"] * (1 + twice)
    found = [tables(program, cost, executor) for executor in (ol.Executor(), ol.Executor(passes=()), ol.Executor(interpret=True))]
    torch.testing.assert_close(found[0], found[1], rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(found[1], found[2], rtol=0.0, atol=0.0)


def test_rows_of_a_lookup_of_one_number_are_taken():
    with ol.Program(seed=0) as program:
        number = ol.layer.data("ids", shape=[], batch=None, dtype="int64")
        cost = ol.op.reduce_sum(ol.op.square(ol.layer.embedding(number, (5, 3), dtype="float64", params=["words"])))
        ol.optimizer.SGD(0.25).minimize(cost)
    assert updates(program, cost) == ["sparse_sgd"]
    scope = ol.init(program, ol.Scope())
    before = scope["words"].clone()
    ol.Executor().run(program, {"ids": numpy.array(3)}, [cost], scope=scope, training=True)
    before[3] *= 0.5
    torch.testing.assert_close(scope["words"], before, rtol=1e-15, atol=0.0)


@pytest.mark.parametrize("optimizer", [ol.optimizer.Momentum(0.1), ol.optimizer.Adam(0.1)], ids=["momentum", "adam"])
def test_updates_that_change_other_rows_too_keep_the_table_of_gradients(optimizer):
    program, cost = lookup(optimizer=optimizer)
    assert updates(program, cost) == [type(optimizer).__name__.lower()]


def test_a_table_of_gradients_that_is_fetched_stays():
    program, cost = lookup()
    assert updates(program, cost, program.main.var("words@GRAD")) == ["sgd"]


def test_a_step_writes_the_rows_where_they_lie():
    program, cost = lookup()
    text = ol.Executor().plan(program, [cost]).text
    assert re.search(r"words_\d+ = sparse_sgd_in_place_\d+\(words_\d+, ", text), text


def test_a_number_that_is_no_row_is_refused_before_anything_is_written():
    """Here the lookup itself is not asked for, so that only the update looks at the numbers."""
    with ol.Program(seed=0) as program:
        ids = ol.layer.data("ids", shape=[], dtype="int64")
        words = ol.layer.create_parameter([5, 3], name="words", dtype="float64")
        ol.layer.create_parameter([3], name="other", dtype="float64")
        values = ol.op.gather(ol.op.full(shape=(1, 3), value=1.0, dtype="float64"), ids * 0)
        gradient = ol.op.scatter_add(values, ids, words)
        other = ol.op.full(shape=(3,), value=1.0, dtype="float64")
        ol.optimizer.SGD(0.1).apply([(program.main.var("other"), other), (words, gradient)])
    assert updates(program) == ["sgd", "sparse_sgd"]
    scope = ol.init(program, ol.Scope())
    before = {name: scope[name].clone() for name in ("words", "other", "@STEP")}
    for executor in (ol.Executor(), ol.Executor(passes=()), ol.Executor(interpret=True)):
        with pytest.raises(ol.errors.KernelError, match="row 5 is out of range: (param|like) has 5 rows, numbered from 0"):
            executor.run(program, {"ids": numpy.array([1, 5])}, [], scope=scope, training=True)
        assert all(torch.equal(scope[name], value) for name, value in before.items())
