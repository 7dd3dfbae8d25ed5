"""Executors that are used again: whatever they ran before, each gives what a new one gives."""

from random import Random

import numpy

import oarlock as ol
from generated.making import Case
from generated.running import (
    Arrays,
    append_updates,
    differentiate,
    feed_of,
    require_alike,
    require_planned,
    run,
    scope_of,
)
from generated.writing import SPLIT
from oarlock.ir.size import Size, add
from oarlock.ir.traversal import walk

__all__ = ["check_reuse"]

GROWING = ("n", SPLIT)
PLAIN = ol.Executor(passes=())
PASSED = ol.Executor()
"""Two executors for all the programs of a process: what they prepare is dropped and made again all the time."""


def check_reuse(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    """One of the checks. `program` has gradients, and `values` are what a new interpreter computes of it."""
    part = random.choice((_check_sizes, _check_prepared, _check_attributes, _check_updates))
    part(case, program, values, random)


def _check_sizes(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    """The same program, prepared once, on values of other sizes, and on the first ones again."""
    names = list(values)
    other = resized(program, case.arrays)
    expected = run(program, other, names)
    require_planned(program, "by an executor used before", run(program, case.arrays, names, PLAIN), values)
    require_planned(program, "of other sizes", run(program, other, names, PLAIN), expected)
    require_planned(program, "of the first sizes again", run(program, case.arrays, names, PLAIN), values)
    require_alike("after the passes", run(program, case.arrays, names, PASSED), values)
    require_alike("of other sizes, after the passes", run(program, other, names, PASSED), expected)


def _check_prepared(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    """One step, prepared once and fed one size after another, back and forth."""
    names = list(values)
    fed = [case.arrays, *(resized(program, case.arrays, more) for more in (1, 3))]
    expected = [values, *(run(program, arrays, names) for arrays in fed[1:])]
    steps = [executor.prepare(program, names, scope=scope_of(program, case.arrays)) for executor in (PLAIN, PASSED)]
    for number in (0, 1, 2, 1, 0, *(random.randrange(3) for _ in range(3))):
        plain, passed = (dict(zip(names, step(feed_of(program, fed[number])), strict=True)) for step in steps)
        require_planned(program, f"by a prepared step fed the sizes {number}", plain, expected[number])
        require_alike(f"by a prepared step fed the sizes {number}, after the passes", passed, expected[number])


def resized(program: ol.Program, arrays: Arrays, more: int = 1) -> dict[str, numpy.ndarray]:
    """Values for a program where there are `more` rows and sequences: rows, and elements of ragged values, come again from the first on."""
    found = dict(arrays)
    changed: dict[Size, int] = {}
    for var in program.main.inputs:
        assert var.shape is not None
        before = arrays[var.name]
        if var.row_splits_of is not None and (rows := add(var.shape[0], -1)) in (*GROWING, *changed):
            lengths = numpy.resize(numpy.diff(before), changed.setdefault(rows, len(before) - 1 + more))
            found[var.name] = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype("int64")
            changed[var.row_splits_of] = int(lengths.sum())
    for var in program.main.inputs:
        assert var.shape is not None
        if var.row_splits_of is None and not {*GROWING, *changed}.isdisjoint(var.shape):
            before = arrays[var.name]
            sizes = zip(before.shape, var.shape, strict=True)
            shape = tuple(number + more if size in GROWING else changed.get(size, number) for number, size in sizes)
            cut = var.shape[0] in GROWING or var.shape[0] in changed
            again = cut or before.dtype.kind == "i"  # which may be labels, or numbers of rows: those that were given are right
            found[var.name] = numpy.resize(before, shape) if again else numpy.ones_like(before, shape=shape)
    return found


def _check_attributes(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    """Programs that differ in one attribute, each made when the one before is gone; and one that is changed after it was run."""
    fills = [number for number, op in enumerate(walk(program.main)) if op.type == "full" and isinstance(op.attributes["value"], float)]
    if not fills:
        return
    number, names = random.choice(fills), list(values)
    for change in (0.0, 0.001):
        other = program.clone()
        op = list(walk(other.main))[number]
        for what in ("with another attribute", "changed after a run"):
            op.attributes = {**op.attributes, "value": op.attributes["value"] + change}  # type: ignore[operator]
            other.changed()
            require_planned(other, what, run(other, case.arrays, names, PLAIN), run(other, case.arrays, names))


def _check_updates(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    """Runs before and after updates are appended, steps and evaluations, training and not, in one scope after another."""
    names = list(values)
    program, found = differentiate(case.program, case)
    PLAIN.run(program, feed_of(program, case.arrays), names, scope=scope_of(program, case.arrays))
    if not append_updates(program, case, found):
        return
    persistent = [var.name for var in program.persistables()]
    scopes = [scope_of(program, case.arrays) for _ in range(2)]
    kinds = [("eval", False), ("run", False), ("run", True), ("eval", True), ("run", False)]
    for number, (kind, training) in enumerate(kinds):
        feed = feed_of(program, case.arrays)
        results = []
        for executor, scope in zip((ol.Executor(interpret=True), PLAIN), scopes, strict=True):
            if kind == "eval":
                results.append(executor.eval(program, names, feed, scope=scope, training=training))
            else:
                results.append(executor.run(program, feed, names, scope=scope, training=training))
        expected, planned = (dict(zip(names, values, strict=True)) for values in results)
        require_planned(program, f"of run {number}", planned, expected)
        expected, planned = ({name: scope[name].numpy() for name in persistent} for scope in scopes)  # type: ignore[attr-defined]
        require_planned(program, f"in the scope after run {number}", planned, expected)
