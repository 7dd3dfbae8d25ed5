"""The ways to check a program: another evaluator, finite differences, what files and texts keep of it, and the checks of other files."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import numpy
from tolerances import FINITE_DIFFERENCE_STEP, GENERATED_DIFFERENCES, GENERATED_GRADIENTS, GENERATED_VALUES

import oarlock as ol
from generated.editing import check_edits
from generated.evaluator import Evaluated, evaluate
from generated.lbfgs import check_lbfgs
from generated.making import Case
from generated.parts import check_parts
from generated.randomness import check_randomness
from generated.recomputing import check_recomputation
from generated.reusing import check_reuse
from generated.running import (
    DisagreementError,
    differentiate,
    feed_of,
    require_alike,
    require_close,
    require_planned,
    require_same,
    run,
    scope_of,
)
from generated.training import check_training
from oarlock.backend.numpy.kernel_call import has_kernel
from oarlock.ir.traversal import inner_blocks, walk
from oarlock.registry import standard

__all__ = ["DisagreementError", "check"]

REDRAWS = 20


def check(case: Case, *, passes: bool = False, pairs: bool = False, others: int | None = None) -> set[str]:
    """Check a program; return what the histogram shall count of it. Raises DisagreementError, or whatever the framework raises.

    What it computes is held against another evaluator, its gradients against finite differences too, and its training by plans
    against the interpreter. With `passes` every pass is tried alone, with `pairs` every two of them; otherwise some. Of the other
    ways to use it, all are checked, or as many as `others` says.
    """
    features: set[str] = set()
    program = case.program
    names = [var.name for op in program.main.ops for var in op.writes]
    before = run(program, case.arrays, names)
    differentiated, found = differentiate(program, case)
    derived = [None if var is None else var.name for var in found]
    again = run(differentiated, case.arrays, [*names, *(name for name in derived if name is not None)])
    for name in names:
        require_same(f'"{name}" with and without gradients', again[name], before[name])
    features |= _compare_with_numpy(differentiated, case.arrays, again)
    weights = {name: numpy.ones(before[name].shape if name in before else case.arrays[name].shape) for name, _ in case.targets}
    weights |= {name: case.arrays[weight] for name, weight in case.targets if weight is not None}
    reference = evaluate(program.to_bytes(source=False), case.arrays, weights, case.wanted, second=case.second)
    _compare_values(before, reference)
    gradients = {wanted: None if name is None else again[name] for wanted, name in zip(case.wanted, derived, strict=True)}
    _compare_gradients("gradients", gradients, reference.gradients, before | case.arrays)
    if case.second:
        _check_second(differentiated, found, case, reference)
    _check_differences(case, gradients, features)
    random = Random(program.to_bytes(source=False))
    features |= check_training(case, random, passes=passes, pairs=pairs)
    reached = {wanted: name for wanted, name in zip(case.wanted, derived, strict=True) if name is not None}
    ways: list[Callable[[], object]] = [
        lambda: _check_files(differentiated, case.arrays, again),
        lambda: check_parts(case, differentiated, again, random),
        lambda: check_reuse(case, differentiated, again, random),
        lambda: check_edits(case, random),
        lambda: check_recomputation(case, random),
        lambda: check_lbfgs(case, random),
    ]
    if any(op.type == "dropout" for op in walk(program.main)):
        ways.append(lambda: check_randomness(case, differentiated, reached, weights))
    for way in ways if others is None else random.sample(ways, others):
        way()
    return features


# Another evaluator


def _compare_values(values: Mapping[str, numpy.ndarray], reference: Evaluated) -> None:
    for name, value in values.items():
        require_close("values", f'"{name}"', value, reference.values[name].numpy(force=True), GENERATED_VALUES)


def _compare_with_numpy(program: ol.Program, arrays: Mapping[str, numpy.ndarray], values: Mapping[str, numpy.ndarray]) -> set[str]:
    """By the backend that shares no kernel, where it has one for every op."""
    if not all(has_kernel(standard.get(op.type)) for op in walk(program.main)):
        return set()
    for name, value in run(program, dict(arrays), list(values), ol.Executor(backend="numpy")).items():
        require_close("NumPy", f'"{name}"', value, values[name], GENERATED_GRADIENTS)
    return {"computed by NumPy"}


def _compare_gradients(
    check: str, found: Mapping[str, numpy.ndarray | None], expected: Mapping[str, object], like: Mapping[str, numpy.ndarray]
) -> None:
    """None means zero on both sides."""
    for name, gradient in found.items():
        zeros = numpy.zeros(like[name].shape)
        actual = zeros if gradient is None else gradient
        other = expected[name]
        require_close(check, f'of "{name}"', actual, zeros if other is None else other.numpy(force=True), GENERATED_GRADIENTS)  # type: ignore[attr-defined]


def _check_second(program: ol.Program, found: list[ol.Var | None], case: Case, reference: Evaluated) -> None:
    """The gradients of the sum of all gradients, with respect to what is given.

    A gradient is no function of a value on the way: the ops before that have a say in it too, and may read it or recompute it.
    """
    given = [name for name in case.wanted if name in case.arrays]
    targets = [var for var in found if var is not None]
    if not targets or len(set(targets)) < len(targets):
        return
    again = ol.gradients(targets, [program.main.var(name) for name in given])
    values = run(program, case.arrays, [var.name for var in again if var is not None])
    gradients = {name: None if var is None else values[var.name] for name, var in zip(given, again, strict=True)}
    like = {name: value.numpy(force=True) for name, value in reference.values.items()}
    _compare_gradients("second gradients", gradients, reference.second, like)


# Finite differences


def _check_differences(case: Case, gradients: Mapping[str, numpy.ndarray | None], features: set[str]) -> None:
    """Along one direction through all inputs and parameters. Where values stop gradients, those of the program without such stops."""
    program = case.program
    moved = [name for name in case.wanted if name in case.arrays]
    fed = set(program.main.inputs)
    if any(var.stop_gradient and var not in fed for block in inner_blocks(program.main) for var in block.vars.values()):
        program = program.clone()
        for block in inner_blocks(program.main):
            for var in block.vars.values():
                var.stop_gradient = False
        free, found = differentiate(program, case)
        values = run(free, case.arrays, [var.name for var in found if var is not None])
        gradients = {name: None if var is None else values[var.name] for name, var in zip(case.wanted, found, strict=True)}
        features.add("differences without stops")
    random = numpy.random.default_rng(len(moved))
    arrays = dict(case.arrays)
    for _ in range(REDRAWS):
        direction = {name: random.choice((-1.0, 1.0), size=arrays[name].shape) for name in moved}
        sides = [{**arrays, **{name: arrays[name] + step * direction[name] for name in moved}} for step in (-EPSILON, EPSILON)]
        traces = [evaluate(program.to_bytes(source=False), side).trace for side in sides]
        if traces[0] == traces[1]:
            break
        features.add("differences redrawn")
    else:
        return
    executor = ol.Executor()
    low, high = (_weighed(program, side, case, executor) for side in sides)
    slope = (high - low) / (2 * EPSILON)
    sums = (numpy.sum(direction[name] * gradients[name]) for name in moved if gradients[name] is not None)
    if not numpy.isclose(sum(sums, 0.0), slope, rtol=GENERATED_DIFFERENCES[0], atol=GENERATED_DIFFERENCES[1]):
        sums = [numpy.sum(direction[name] * gradients[name]) for name in moved if gradients[name] is not None]
        raise DisagreementError("differences", f"the slope is {slope!r}, where gradients say {sum(sums)!r}")


EPSILON = FINITE_DIFFERENCE_STEP


def _weighed(program: ol.Program, arrays: Mapping[str, numpy.ndarray], case: Case, executor: ol.Executor) -> float:
    values = run(program, arrays, [name for name, _ in case.targets], executor)
    return sum(float(numpy.sum(values[name] * (1.0 if weight is None else arrays[weight]))) for name, weight in case.targets)


# Files and texts


def _check_files(program: ol.Program, arrays: Mapping[str, numpy.ndarray], values: Mapping[str, numpy.ndarray]) -> None:
    """A program that is saved, loaded and saved gives the same bytes and computes the same bits; one printed and parsed prints alike."""
    text = program.to_text(source=False)
    parsed = ol.parse_program(text)
    if parsed.to_text(source=False) != text:
        raise DisagreementError("text", "it is printed, parsed and printed as another text")
    if ol.content_hash(parsed) != ol.content_hash(program) or parsed.to_bytes(source=False) != program.to_bytes(source=False):
        raise DisagreementError("text", "what is parsed from the text is another program")
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "first"), Path(folder, "second")
        ol.save_model(program, scope_of(program, arrays), first)
        model = ol.load_model(first)
        ol.save_model(model, second)
        if first.read_bytes() != second.read_bytes():
            raise DisagreementError("file", "it is saved, loaded and saved as other bytes")
    feed = feed_of(model.program, arrays)
    loaded = ol.Executor(passes=()).run(model.program, feed, list(values), scope=model.scope)  # a plan as it is: the interpreter's values
    require_planned(program, "of the loaded program", dict(zip(values, loaded, strict=True)), values)  # type: ignore[arg-type]
    passed = ol.Executor().run(model.program, feed, list(values), scope=model.scope)  # after the passes, which may round otherwise
    require_alike("after the passes", dict(zip(values, passed, strict=True)), values)  # type: ignore[arg-type]
