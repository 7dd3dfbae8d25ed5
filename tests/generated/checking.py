"""The three ways to check a program: another evaluator, finite differences, and what files and texts keep of it."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy
from tolerances import FINITE_DIFFERENCE_STEP, GENERATED_DIFFERENCES, GENERATED_GRADIENTS, GENERATED_VALUES

import oarlock as ol
from generated.evaluator import Evaluated, evaluate
from generated.making import Case
from oarlock.ir.walk import inner_blocks

__all__ = ["DisagreementError", "check"]

REDRAWS = 20


class DisagreementError(Exception):
    """A program for which two ways disagree. `check` names the check, so that shrinking stays with it."""

    def __init__(self, check: str, message: str):
        super().__init__(f"{check}: {message}")
        self.check = check


def check(case: Case) -> set[str]:
    """Run every check; return what the histogram shall count of them. Raises DisagreementError, or whatever the framework raises."""
    features: set[str] = set()
    program = case.program
    names = [var.name for op in program.main.ops for var in op.writes]
    before = _run(program, case.arrays, names)
    differentiated, found = _differentiate(program, case)
    derived = [None if var is None else var.name for var in found]
    again = _run(differentiated, case.arrays, [*names, *(name for name in derived if name is not None)])
    for name in names:
        _require_same(f'"{name}" with and without gradients', again[name], before[name])
    weights = {name: numpy.ones(before[name].shape if name in before else case.arrays[name].shape) for name, _ in case.targets}
    weights |= {name: case.arrays[weight] for name, weight in case.targets if weight is not None}
    reference = evaluate(program.to_bytes(source=False), case.arrays, weights, case.wanted, second=case.second)
    _compare_values(before, reference)
    gradients = {wanted: None if name is None else again[name] for wanted, name in zip(case.wanted, derived, strict=True)}
    _compare_gradients("gradients", gradients, reference.gradients, before | case.arrays)
    if case.second:
        _check_second(differentiated, found, case, reference)
    _check_differences(case, gradients, features)
    _check_files(differentiated, case.arrays, again)
    return features


def _differentiate(program: ol.Program, case: Case) -> tuple[ol.Program, list[ol.Var | None]]:
    """A copy of the program with gradients, and the gradient of each wanted variable."""
    copy = program.clone()
    starts = [None if weight is None else copy.main.var(weight) for _, weight in case.targets]
    targets = [copy.main.var(name) for name, _ in case.targets]
    wanted = [copy.main.var(name) for name in case.wanted]
    scalar = len(targets) == 1 and starts == [None] and targets[0].shape == ()
    found = ol.gradients(targets, wanted, starts)
    if scalar:  # the other door to the same gradients
        other = program.clone()
        reached = [other.main.var(var.name) for var, gradient in zip(wanted, found, strict=True) if gradient is not None]
        if reached:
            ol.append_backward(other.main.var(targets[0].name), reached)
            if other.to_bytes(source=False) != copy.to_bytes(source=False) and len(reached) == len(wanted):
                raise DisagreementError("append_backward", "it writes another program than gradients()")
    return copy, found


def _scope(program: ol.Program, arrays: Mapping[str, numpy.ndarray]) -> ol.Scope:
    scope = ol.Scope()
    for var in program.persistables():
        scope.set(var.name, arrays[var.name])
    return scope


def _run(program: ol.Program, arrays: Mapping[str, numpy.ndarray], names: list[str], *, planned: bool = False) -> dict[str, numpy.ndarray]:
    """The values of variables, by the interpreter, which checks the type of each; or by a plan."""
    feed = {var.name: arrays[var.name] for var in program.main.inputs}
    values = ol.Executor(check=not planned).run(program, feed, names, scope=_scope(program, arrays))
    return dict(zip(names, values, strict=True))  # type: ignore[arg-type]


def _require_same(what: str, actual: numpy.ndarray, expected: numpy.ndarray) -> None:
    if (actual.dtype, actual.shape, actual.tobytes()) != (expected.dtype, expected.shape, expected.tobytes()):
        raise DisagreementError("same bits", f"{what}: {actual!r} is not {expected!r}")


def _require_close(check: str, what: str, actual: numpy.ndarray, expected: numpy.ndarray, tolerance: tuple[float, float]) -> None:
    if actual.shape != expected.shape:
        raise DisagreementError(check, f"{what} is {list(actual.shape)}, not {list(expected.shape)}")
    if not numpy.allclose(actual, expected, rtol=tolerance[0], atol=tolerance[1]):
        raise DisagreementError(check, f"{what} is\n{actual!r}\nnot\n{expected!r}")


# Another evaluator


def _compare_values(values: Mapping[str, numpy.ndarray], reference: Evaluated) -> None:
    for name, value in values.items():
        _require_close("values", f'"{name}"', value, reference.values[name].numpy(force=True), GENERATED_VALUES)


def _compare_gradients(
    check: str, found: Mapping[str, numpy.ndarray | None], expected: Mapping[str, object], like: Mapping[str, numpy.ndarray]
) -> None:
    """None means zero on both sides."""
    for name, gradient in found.items():
        zeros = numpy.zeros(like[name].shape)
        actual = zeros if gradient is None else gradient
        other = expected[name]
        _require_close(check, f'of "{name}"', actual, zeros if other is None else other.numpy(force=True), GENERATED_GRADIENTS)  # type: ignore[attr-defined]


def _check_second(program: ol.Program, found: list[ol.Var | None], case: Case, reference: Evaluated) -> None:
    """The gradients of the sum of all gradients, with respect to what is given.

    A gradient is no function of a value on the way: the ops before that have a say in it too, and may read it or recompute it.
    """
    given = [name for name in case.wanted if name in case.arrays]
    targets = [var for var in found if var is not None]
    if not targets or len(set(targets)) < len(targets):
        return
    again = ol.gradients(targets, [program.main.var(name) for name in given])
    values = _run(program, case.arrays, [var.name for var in again if var is not None])
    gradients = {name: None if var is None else values[var.name] for name, var in zip(given, again, strict=True)}
    like = {name: value.numpy(force=True) for name, value in reference.values.items()}
    _compare_gradients("second gradients", gradients, reference.second, like)


# Finite differences


def _check_differences(case: Case, gradients: Mapping[str, numpy.ndarray | None], features: set[str]) -> None:
    """Along one direction through all inputs and parameters. Where values stop gradients, those of the program without such stops."""
    program = case.program
    moved = [name for name in case.wanted if name in case.arrays]
    if any(
        var.stop_gradient and var not in block.program.main.inputs for block in inner_blocks(program.main) for var in block.vars.values()
    ):
        program = program.clone()
        for block in inner_blocks(program.main):
            for var in block.vars.values():
                var.stop_gradient = False
        free, found = _differentiate(program, case)
        values = _run(free, case.arrays, [var.name for var in found if var is not None])
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
    low, high = (_weighed(program, side, case) for side in sides)
    slope = (high - low) / (2 * EPSILON)
    sums = (numpy.sum(direction[name] * gradients[name]) for name in moved if gradients[name] is not None)
    if not numpy.isclose(sum(sums, 0.0), slope, rtol=GENERATED_DIFFERENCES[0], atol=GENERATED_DIFFERENCES[1]):
        sums = [numpy.sum(direction[name] * gradients[name]) for name in moved if gradients[name] is not None]
        raise DisagreementError("differences", f"the slope is {slope!r}, where gradients say {sum(sums)!r}")


EPSILON = FINITE_DIFFERENCE_STEP


def _weighed(program: ol.Program, arrays: Mapping[str, numpy.ndarray], case: Case) -> float:
    values = _run(program, arrays, [name for name, _ in case.targets], planned=True)
    return sum(float(numpy.sum(values[name] * (1.0 if weight is None else arrays[weight]))) for name, weight in case.targets)


# Files and texts


def _check_files(program: ol.Program, arrays: Mapping[str, numpy.ndarray], values: Mapping[str, numpy.ndarray]) -> None:
    """What is saved, loaded and saved is the same bytes and computes the same bits; what is printed and parsed prints alike."""
    text = program.to_text(source=False)
    parsed = ol.parse_program(text)
    if parsed.to_text(source=False) != text:
        raise DisagreementError("text", "it is printed, parsed and printed as another text")
    if ol.content_hash(parsed) != ol.content_hash(program) or parsed.to_bytes(source=False) != program.to_bytes(source=False):
        raise DisagreementError("text", "what is parsed from the text is another program")
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "first"), Path(folder, "second")
        ol.save_model(program, _scope(program, arrays), first)
        model = ol.load_model(first)
        ol.save_model(model, second)
        if first.read_bytes() != second.read_bytes():
            raise DisagreementError("file", "it is saved, loaded and saved as other bytes")
    feed = {var.name: arrays[var.name] for var in model.program.main.inputs}
    loaded = ol.Executor(passes=()).run(model.program, feed, list(values), scope=model.scope)  # a plan as it is: the interpreter's bits
    for name, value in zip(values, loaded, strict=True):
        _require_same(f'"{name}" of the loaded program', value, values[name])  # type: ignore[arg-type]
    passed = ol.Executor().run(model.program, feed, list(values), scope=model.scope)  # after the passes, which may round otherwise
    for name, value in zip(values, passed, strict=True):
        if value.dtype.kind == "f":
            _require_close("passes", f'"{name}" after the passes', value, values[name], GENERATED_GRADIENTS)  # type: ignore[arg-type]
        else:
            _require_same(f'"{name}" after the passes', value, values[name])  # type: ignore[arg-type]
