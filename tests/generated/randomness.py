"""Dropout in training: what is drawn differs from op to op, trip to trip, step to step and seed to seed, and is the same for the same."""

from collections.abc import Sequence
from functools import partial

import numpy
from tolerances import GENERATED_GRADIENTS, GENERATED_VALUES

import oarlock as ol
from generated.evaluator import evaluate
from generated.making import Case
from generated.running import (
    DisagreementError,
    append_updates,
    differentiate,
    feed_of,
    require_alike,
    require_close,
    require_planned,
    require_same,
    run,
    scope_of,
)
from generated.writing import WIDE
from oarlock.ir.traversal import walk
from oarlock.runtime.scopes import Scopes

__all__ = ["check_randomness"]

Masks = dict[str, numpy.ndarray]


def check_randomness(case: Case, program: ol.Program, gradients: dict[str, str], weights: dict[str, numpy.ndarray]) -> None:
    """Check a program with dropouts. `gradients` gives wanted variables the names of theirs, `weights` are those of the targets."""
    names = list(dict.fromkeys([*(var.name for op in case.program.main.ops for var in op.writes), *gradients.values()]))
    values = run(program, case.arrays, names, training=True)
    for executor, require in ((ol.Executor(passes=()), partial(require_planned, program)), (ol.Executor(), require_alike)):
        run(program, case.arrays, names, executor)  # nothing of another run may be left in what was prepared
        require("in training", run(program, case.arrays, names, executor, training=True), values)
    masks = _masks(program, _step(program, case, names, scope_of(program, case.arrays), values))
    _require_different("one run", masks)
    _compare(case, values, gradients, masks, weights)
    other = program.clone()
    other.seed = program.seed + 1
    other.changed()
    _require_different("two seeds", masks, _masks(other, _step(other, case, names, scope_of(other, case.arrays))))
    _check_steps(case, names)


def _step(program: ol.Program, case: Case, names: Sequence[str], scope: ol.Scope, expected: Masks | None = None) -> Scopes:
    """The scopes of one step of training, after which the values are as expected."""
    feed = feed_of(program, case.arrays)
    values, scopes = ol.Executor().run(program, feed, names, scope=scope, training=True, keep_scopes=True)
    for name, value in zip(names, values, strict=True):
        if expected is not None:
            require_same(f'"{name}" where scopes are kept', value, expected[name])  # type: ignore[arg-type]
    return scopes


def _masks(program: ol.Program, scopes: Scopes) -> Masks:
    """Every mask that was drawn, by path: where what it masked is too, for something outside may have its name."""
    drawn = {(op.outputs["y"][0].name, op.outputs["mask"][0].name) for op in walk(program.main) if op.type == "dropout"}
    found = {}
    for path in scopes:
        scope = scopes[path]
        here = set(scope)  # type: ignore[call-overload]
        found |= {f"{path}/{mask}": scope[mask].numpy() for masked, mask in drawn if {masked, mask} <= here}  # type: ignore[union-attr]
    return found


def _require_different(what: str, *draws: Masks) -> None:
    """Of what is so wide that chance cannot make two alike, no two are."""
    seen: dict[bytes, str] = {}
    for masks in draws:
        for path, mask in masks.items():
            pattern = (mask != 0).tobytes()
            if mask.size >= WIDE and pattern in seen:
                raise DisagreementError("randomness", f"in {what}, {path} is dropped as {seen[pattern]} is")
            seen[pattern] = path


def _compare(case: Case, values: Masks, gradients: dict[str, str], masks: Masks, weights: Masks) -> None:
    """With the masks that were kept, the other evaluator computes the same values, and gradients through the same masks."""
    sizes = {name: values[name].shape for name in weights if name in values}  # which may be others: a dropout may tell how many trips
    weights = {
        name: weight if sizes.get(name, weight.shape) == weight.shape else numpy.ones(sizes[name]) for name, weight in weights.items()
    }
    reference = evaluate(case.program.to_bytes(source=False), case.arrays, weights, case.wanted, masks=masks)
    for op in case.program.main.ops:
        for var in op.writes:
            require_close("training", f'"{var.name}"', values[var.name], reference.values[var.name].numpy(force=True), GENERATED_VALUES)
    for name, gradient in gradients.items():
        expected = reference.gradients[name]
        other = numpy.zeros_like(values[gradient]) if expected is None else expected.numpy(force=True)
        require_close("training", f'the gradient of "{name}"', values[gradient], other, GENERATED_GRADIENTS)


def _check_steps(case: Case, names: Sequence[str]) -> None:
    """Two steps of one program differ; the first and the second of another run of it are as they were."""
    program, found = differentiate(case.program, case)
    if not append_updates(program, case, found):
        return
    steps = []
    for executor in (ol.Executor(interpret=True), ol.Executor(passes=())):
        scope = scope_of(program, case.arrays)
        steps.append([executor.run(program, feed_of(program, case.arrays), names, scope=scope, training=True) for _ in range(2)])
    for step, (expected, values) in enumerate(zip(*steps, strict=True)):
        planned, interpreted = (dict(zip(names, found, strict=True)) for found in (values, expected))
        require_planned(program, f"of step {step} in training", planned, interpreted)  # type: ignore[arg-type]
    scope = scope_of(program, case.arrays)
    first, second = (_masks(program, _step(program, case, [], scope)) for _ in range(2))
    _require_different("two steps", first, second)
