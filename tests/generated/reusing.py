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
    require_all_same,
    require_same,
    run,
    scope_of,
)
from oarlock.ir.size import Size
from oarlock.ir.walk import walk

__all__ = ["check_reuse"]

PLAIN = ol.Executor(passes=())
PASSED = ol.Executor()
"""Two executors for all the programs of a process: what they prepare is dropped and made again all the time."""


def check_reuse(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    """One of the checks. `program` has gradients, and `values` are what a new interpreter computes of it."""
    part = random.choice((_check_sizes, _check_attributes, _check_updates))
    part(case, program, values, random)


def _check_sizes(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    """The same program, prepared once, on values of other sizes, and on the first ones again."""
    names = list(values)
    other = resized(program, case.arrays)
    expected = run(program, other, names)
    require_all_same("by an executor used before", run(program, case.arrays, names, PLAIN), values)
    require_all_same("of other sizes", run(program, other, names, PLAIN), expected)
    require_all_same("of the first sizes again", run(program, case.arrays, names, PLAIN), values)
    require_alike("after the passes", run(program, case.arrays, names, PASSED), values)
    require_alike("of other sizes, after the passes", run(program, other, names, PASSED), expected)


def resized(program: ol.Program, arrays: Arrays) -> dict[str, numpy.ndarray]:
    """Values for a program where "n" is one more than before: rows, and elements of ragged values, come again from the first one on."""
    found = dict(arrays)
    changed: dict[Size, int] = {}
    for splits in [var for var in program.main.inputs if var.partitions is not None]:
        lengths = numpy.diff(arrays[splits.name])
        lengths = numpy.resize(lengths, len(lengths) + 1)
        found[splits.name] = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype("int64")
        changed[splits.partitions] = int(lengths.sum())  # type: ignore[index]
    for var in program.main.inputs:
        assert var.shape is not None
        if var.partitions is None and ("n" in var.shape or not changed.keys().isdisjoint(var.shape)):
            before = arrays[var.name]
            sizes = zip(before.shape, var.shape, strict=True)
            shape = tuple(number + 1 if size == "n" else changed.get(size, number) for number, size in sizes)
            cut = var.shape[0] == "n" or var.shape[0] in changed
            found[var.name] = numpy.resize(before, shape) if cut else numpy.ones_like(before, shape=shape)
    return found


def _check_attributes(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    """Programs that differ in one attribute, each made when the one before is gone."""
    fills = [number for number, op in enumerate(walk(program.main)) if op.type == "fill" and isinstance(op.attributes["value"], float)]
    if not fills:
        return
    number, names = random.choice(fills), list(values)
    for change in (0.0, 0.001):
        other = program.clone()
        op = list(walk(other.main))[number]
        op.attributes = {**op.attributes, "value": op.attributes["value"] + change}  # type: ignore[operator]
        other.changed()
        require_all_same("with another attribute", run(other, case.arrays, names, PLAIN), run(other, case.arrays, names))


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
        for name, expected, value in zip(names, *results, strict=True):
            require_same(f'"{name}" of run {number}', value, expected)
        for name in persistent:
            expected, value = (scope[name].numpy() for scope in scopes)  # type: ignore[attr-defined]
            require_same(f'what the scope has for "{name}" after run {number}', value, expected)
