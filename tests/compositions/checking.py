"""Holding a composition to what the interpreter gives of it."""

from collections import Counter
from random import Random
from typing import Any

import numpy
import pytest
from generated.running import DisagreementError
from tolerances import GENERATED_GRADIENTS

import oarlock as ol
from compositions.making import Composition
from oarlock.ir.operation import Op
from oarlock.ir.traversal import walk
from oarlock.passes.pipeline import PASSES
from oarlock.runtime.interpreter import Interpreter

__all__ = ["DisagreementError", "check", "operators_of"]


def check(composition: Composition, random: Random) -> str:
    """Compare runs of a composition; return how it ended: "agree", "refused" where its values are no legal ones, or "refused early".

    The last is where an op in a loop or a branch refused its values, that the interpreter did not run, and passes had moved out. A symbol
    may be any number until the run, and a loop may have no trips: then sizes are refused though nobody reaches them. Raises
    DisagreementError.
    """
    program, made = composition.program, composition.made
    some = tuple(name for name in PASSES if random.random() < 0.5)
    executors = {
        "by default": ol.Executor(),
        "without passes": ol.Executor(passes=(), poison=True),
        **{f"with {name} alone": ol.Executor(passes=(name,)) for name in random.sample(sorted(PASSES), 3)},
        f"with {', '.join(some)}": ol.Executor(passes=some),
    }
    fetches = [[*made, *composition.gradients], composition.gradients or made[-1:], made[-1:], random.sample(made, min(len(made), 2))]
    try:
        expected = _run(composition, ol.Executor(interpret=True, check=True), fetches[0])
    except (ol.KernelError, ol.ShapeError):
        return "refused"
    for fetch in fetches:
        for what, executor in executors.items():
            try:
                values = _run(composition, executor, fetch)
            except ol.OarlockError as error:
                if executor.passes and isinstance(error, ol.KernelError) and error.op in _not_run(composition, fetches[0]):
                    return "refused early"
                raise DisagreementError("error", f"{what}, of {fetch[:4]}: {type(error).__name__}: {error}") from error
            for name, value in values.items():
                _require_alike(f'"{name}" {what}, of {len(fetch)}', value, expected[name])
    assert program.main.ops
    return "agree"


def _not_run(composition: Composition, fetch: list[str]) -> set[str]:
    """The types of ops in loops and branches of which the interpreter runs none: what they hold, no row and no step reaches."""
    ran: set[int] = set()
    programs: list[ol.Program] = []
    run_op = Interpreter._run_op

    def record(interpreter: Interpreter, op: Op, *arguments: Any) -> None:
        ran.add(id(op))
        programs.extend([op.block.program] if op.block.program not in programs else [])
        run_op(interpreter, op, *arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Interpreter, "_run_op", record)
        _run(composition, ol.Executor(interpret=True), fetch)
    return {op.type for program in programs for op in walk(program.main) if op.block is not program.main and id(op) not in ran}


def _run(composition: Composition, executor: ol.Executor, fetch: list[str]) -> dict[str, numpy.ndarray]:
    feed = {name: numpy.array(value) for name, value in composition.feed.items()}
    values = executor.eval(composition.program, list(fetch), feed, scope=ol.init(composition.program, ol.Scope()), training=False)
    for name, value in composition.feed.items():
        if feed[name].tobytes() != value.tobytes():
            raise DisagreementError("written over", f'"{name}" is not what was fed')
    return dict(zip(fetch, map(numpy.asarray, values), strict=True))


def _require_alike(what: str, value: numpy.ndarray, expected: numpy.ndarray) -> None:
    if (value.dtype, value.shape) != (expected.dtype, expected.shape):
        raise DisagreementError("type", f"{what} is {value.dtype}{list(value.shape)}, not {expected.dtype}{list(expected.shape)}")
    if value.dtype.kind == "f":
        relative, absolute = GENERATED_GRADIENTS
        if not numpy.allclose(value, expected, rtol=relative, atol=absolute, equal_nan=True):
            raise DisagreementError("values", f"{what} is\n{value!r}\nnot\n{expected!r}")
    elif value.tobytes() != expected.tobytes():
        raise DisagreementError("values", f"{what} is\n{value!r}\nnot\n{expected!r}")


def operators_of(program: ol.Program) -> Counter[str]:
    """How often each operator stands in a program, in all its blocks."""
    return Counter(op.type for op in walk(program.main))
