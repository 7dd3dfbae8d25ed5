"""Scopes that are read and changed between steps: whoever holds a value keeps it, and the next step begins with what is there."""

from random import Random

import numpy
import torch
from tolerances import PASSES_DIFFER

import oarlock as ol
from generated.making import Case
from generated.running import Arrays, DisagreementError, feed_of, require_close, require_planned, scope_of
from generated.training import trained

__all__ = ["check_edits"]

STEPS = 4


def check_edits(case: Case, random: Random) -> None:
    """Train by the interpreter and by plans, with the same edits between the steps."""
    program, names = trained(case, random)
    edits = random.randrange(1 << 30)
    expected = _train(program, case, names, ol.Executor(interpret=True), Random(edits))
    exact = _train(program, case, names, ol.Executor(passes=(), poison=True), Random(edits))
    for number, (values, others) in enumerate(zip(exact, expected, strict=True)):
        require_planned(program, f"after step {number} and edits of the scope, by a plan", values, others)
    for values, others in zip(_train(program, case, names, ol.Executor(poison=True), Random(edits)), expected, strict=True):
        for name, value in values.items():
            if value.size or others[name].size:
                require_close("passes", f'"{name}" in training with edits of the scope', value, others[name], PASSES_DIFFER)


def _train(program: ol.Program, case: Case, names: list[str], executor: ol.Executor, random: Random) -> list[Arrays]:
    """The fetched values of each step, and the values of the scope after it. Raises DisagreementError where a step changes a held value."""
    scope, feed = scope_of(program, case.arrays), feed_of(program, case.arrays)
    step = executor.prepare(program, names, scope=scope)
    held: list[tuple[str, torch.Tensor, torch.Tensor]] = []
    found: list[Arrays] = []
    for number in range(STEPS):
        found.append(dict(zip(names, step(feed), strict=True)))
        for name, tensor, copy in held:
            if tensor.numpy().tobytes() != copy.numpy().tobytes():
                raise DisagreementError("written over", f'"{name}" is held, was {copy!r}, and is {tensor!r} after step {number}')
        for name in random.sample(sorted(scope), min(2, len(scope))):
            _edit(scope, name, random.randrange(4), held)
    return [*found, {name: scope[name].numpy().copy() for name in scope}]  # type: ignore[attr-defined]


def _edit(scope: ol.Scope, name: str, kind: int, held: list[tuple[str, torch.Tensor, torch.Tensor]]) -> None:
    """Hold the value; set it to half of itself, to itself, or to a copy; whole numbers stay as they are."""
    value = scope[name]
    assert isinstance(value, torch.Tensor)
    if kind == 0:
        held.append((name, value, value.clone()))
    elif kind == 1 and value.is_floating_point():
        scope.set(name, numpy.asarray(value.numpy() * 0.5))
    elif kind == 2:
        scope.set(name, value)
        held.append((name, value, value.clone()))
    else:
        scope.set(name, value.clone())
