"""Running programs, and comparing what that gives: what all the checks share."""

from collections.abc import Mapping, Sequence

import numpy
import torch
from rounding import rounded_by_place
from tolerances import GENERATED_GRADIENTS, PLANS_DIFFER

import oarlock as ol
from generated.making import Case

__all__ = [
    "Arrays",
    "DisagreementError",
    "append_updates",
    "differentiate",
    "feed_of",
    "require_alike",
    "require_all_same",
    "require_close",
    "require_planned",
    "require_same",
    "run",
    "scope_of",
]

Arrays = Mapping[str, numpy.ndarray]


class DisagreementError(Exception):
    """A program for which two ways disagree. `check` names the check, so that shrinking stays with it."""

    def __init__(self, check: str, message: str):
        super().__init__(f"{check}: {message}")
        self.check = check


def differentiate(program: ol.Program, case: Case) -> tuple[ol.Program, list[ol.Var | None]]:
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


def append_updates(program: ol.Program, case: Case, found: Sequence[ol.Var | None]) -> bool:
    """Append a step of the trainable parameters among the wanted variables, whose gradients `found` are; return whether there are any."""
    pairs = [(program.main.var(name), gradient) for name, gradient in zip(case.wanted, found, strict=True) if gradient is not None]
    pairs = [(var, gradient) for var, gradient in pairs if var.parameter and var.trainable]
    if pairs:
        ol.optimizer.SGD(0.01).apply(pairs)
    return bool(pairs)


def scope_of(program: ol.Program, arrays: Arrays) -> ol.Scope:
    """A new scope with the parameters; what else persists, such as the step counter, starts as zeros."""
    scope = ol.Scope()
    for var in program.persistables():
        if var.name in arrays:
            scope.set(var.name, arrays[var.name])
        else:
            scope.set(var.name, numpy.full(var.shape, var.initializer.attributes["value"], str(var.dtype)))
    return scope


def feed_of(program: ol.Program, arrays: Arrays) -> dict[str, numpy.ndarray]:
    return {var.name: arrays[var.name] for var in program.main.inputs}


def run(
    program: ol.Program, arrays: Arrays, names: Sequence[str], executor: ol.Executor | None = None, *, training: bool = False
) -> dict[str, numpy.ndarray]:
    """The values of variables: by a new interpreter, which checks the type of each, or by an executor.

    Raises DisagreementError where that changes what it is given.
    """
    executor = ol.Executor(check=True) if executor is None else executor
    scope = scope_of(program, arrays)
    held = {name: scope[name] for name in scope}
    feed = {var.name: torch.from_numpy(numpy.array(arrays[var.name])) for var in program.main.inputs}
    values = executor.eval(program, list(names), feed, scope=scope, training=training)
    for name, tensor in {**feed, **held}.items():
        if name in arrays and tensor.numpy().tobytes() != arrays[name].tobytes():
            raise DisagreementError("written over", f'"{name}" was {arrays[name]!r} before the run, and is {tensor!r}')
    return dict(zip(names, values, strict=True))


def require_same(what: str, actual: numpy.ndarray, expected: numpy.ndarray) -> None:
    if (actual.dtype, actual.shape, actual.tobytes()) != (expected.dtype, expected.shape, expected.tobytes()):
        raise DisagreementError("same bits", f"{what}: {actual!r} is not {expected!r}")


def require_all_same(what: str, values: Arrays, expected: Arrays) -> None:
    for name, value in values.items():
        require_same(f'"{name}" {what}', value, expected[name])


def require_planned(program: ol.Program, what: str, values: Arrays, expected: Arrays) -> None:
    """That values by a plan without passes are those of the interpreter: to the bit, or near where they are rounded by place."""
    rounded = rounded_by_place(program)
    for name, value in values.items():
        if name in rounded and value.dtype.kind == "f":
            require_close("same bits", f'"{name}" {what}', value, expected[name], PLANS_DIFFER[torch.float64])
        else:
            require_same(f'"{name}" {what}', value, expected[name])


def require_close(check: str, what: str, actual: numpy.ndarray, expected: numpy.ndarray, tolerance: tuple[float, float]) -> None:
    if actual.shape != expected.shape:
        raise DisagreementError(check, f"{what} is {list(actual.shape)}, not {list(expected.shape)}")
    if not numpy.allclose(actual, expected, rtol=tolerance[0], atol=tolerance[1], equal_nan=True):
        raise DisagreementError(check, f"{what} is\n{actual!r}\nnot\n{expected!r}")


def require_alike(what: str, values: Arrays, expected: Arrays) -> None:
    """That passes, which may round otherwise, have changed nothing else.

    Where nothing tells a size, as in a block that has not run, it is any number: there are no elements then.
    """
    for name, value in values.items():
        if not value.size and not expected[name].size and value.ndim == expected[name].ndim:
            continue
        if value.dtype.kind == "f":
            require_close("passes", f'"{name}" {what}', value, expected[name], GENERATED_GRADIENTS)
        else:
            require_same(f'"{name}" {what}', value, expected[name])
