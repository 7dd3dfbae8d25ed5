"""Programs whose sizes are only maybe equal, on many sizes: each step by NumPy's rules of broadcasting, or a ShapeError.

PYTHONPATH=src:tests python -m generated.sizes --seed 20 --count 300

Each program is run on several sets of numbers for its symbols, among which are batches of 0 and 1: by the interpreter, by plans with passes
and without, by an executor with limits, and by prepared steps that are fed one set after the other. An evaluator of its own tells what
PyTorch computes, with the gradients, or that PyTorch refuses the sizes. A result is what the evaluator has; an error is a ShapeError, the
same by every executor, and only where two sizes differ that an op needs to be equal.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

import numpy
import torch
from tolerances import GENERATED_GRADIENTS

import oarlock as ol
from generated.counting import count_checks, numbered
from generated.evaluator import REFUSALS, Evaluated, evaluate
from generated.making import Case, make, resized
from generated.running import DisagreementError, differentiate, feed_of, require_close, scope_of
from oarlock.ir.size import evaluate as number_of

__all__ = ["SETS", "check_sizes"]

SETS = 6  # of numbers for the symbols
EXECUTORS = {
    "the interpreter": {"interpret": True},
    "a plan": {},
    "a plan without passes": {"passes": ()},
    "an executor with limits": {"limits": ol.RunLimits(seconds=600.0)},
}
STEPS = ("a plan", "a plan without passes", "the interpreter")


@dataclass
class _Expected:
    """The values and gradients of one set of numbers; None where PyTorch refuses the sizes."""

    case: Case
    reference: Evaluated | None

    @property
    def fits(self) -> bool:
        """Whether every two sizes are equal that an op needs to be."""
        sizes = self.case.sizes
        return all(number_of(one, sizes) == number_of(other, sizes) for one, other in self.case.pairs)

    def require(self, who: str, values: Sequence[numpy.ndarray] | ol.OarlockError, names: Sequence[str], gradients: Sequence[str]) -> None:
        """Raise DisagreementError unless `values` are those expected, or an error that is allowed."""
        if isinstance(values, ol.OarlockError):
            if self.fits and self.reference is not None:
                raise DisagreementError("sizes", f"{who} refuses {self.case.sizes}, which fit: {values}")
            if not isinstance(values, ol.ShapeError):
                raise DisagreementError("sizes", f"{who} raises no ShapeError of {self.case.sizes}: {values}")
            return
        if self.reference is None:
            raise DisagreementError("sizes", f"{who} runs {self.case.sizes}, which PyTorch refuses")
        for name, value in zip(names, values, strict=False):
            require_close("sizes", f'"{name}" by {who}', value, self.reference.values[name].numpy(force=True), GENERATED_GRADIENTS)
        for name, value in zip(gradients, values[len(names) :], strict=True):
            found = self.reference.gradients[name]
            expected = numpy.zeros(value.shape) if found is None else found.numpy(force=True)
            require_close("sizes", f'the gradient of "{name}" by {who}', value, expected, GENERATED_GRADIENTS)


def check_sizes(case: Case, random: Random) -> set[str]:
    """Run a program on several sets of numbers for its symbols; return what happened. Raises DisagreementError."""
    case = _without_weights(case)
    program, found = differentiate(case.program, case)
    names = [name for name, _ in case.targets]
    derived = [(name, var) for name, var in zip(case.wanted, found, strict=True) if var is not None]
    fetch, gradients = [*names, *(var.name for _, var in derived)], [name for name, _ in derived]
    sets = [_expected(each, names) for each in _cases(case, random)]
    for expected in sets:
        if expected.case.program.to_bytes(source=False) != case.program.to_bytes(source=False):
            raise DisagreementError("sizes", "other numbers make another program")
    outcomes: set[str] = set()
    for number, expected in enumerate(sets):
        ended = {}
        for who, options in EXECUTORS.items():
            values = _attempt(partial(_run, ol.Executor(**options), program, expected.case, fetch))  # type: ignore[arg-type]
            expected.require(f"{who}, of set {number}", values, names, gradients)
            ended[who] = type(values).__name__
        unread = expected.reference is not None and expected.reference.refused  # an op in a block that plans leave out
        if len(set(ended.values())) > 1 and not unread:
            raise DisagreementError("sizes", f"executors end differently on {expected.case.sizes}: {ended}")
        outcomes.add("refused" if "ShapeError" in ended.values() else "fits" if expected.fits else "broadcast")
    for who in STEPS:
        scope = scope_of(program, case.arrays)
        step = ol.Executor(**EXECUTORS[who]).prepare(program, fetch, scope=scope, training=False)  # type: ignore[arg-type]
        for expected in (*sets, *sets[:2]):
            values = _attempt(partial(step, feed_of(program, expected.case.arrays)))
            expected.require(f"a prepared step of {who}", values, names, gradients)
    return outcomes


def _without_weights(case: Case) -> Case:
    """The case whose targets are summed as they are: a weight has a shape of its own."""
    case.targets = [(name, None) for name, _ in case.targets]
    return case


def _cases(case: Case, random: Random) -> list[Case]:
    """The case on other numbers: as it is, all alike, of 1 and of 0, and some at random."""
    symbols = list(case.sizes)
    sets: list[Mapping[str, int]] = [case.sizes, *(dict.fromkeys(symbols, number) for number in (3, 1, 0))]
    sets += [{symbol: random.choice((0, 1, 1, 2, 2, 3, 4)) for symbol in symbols} for _ in range(SETS - len(sets))]
    return [_without_weights(resized(case, sizes)) for sizes in sets]


def _expected(case: Case, names: Sequence[str]) -> _Expected:
    data = case.program.to_bytes(source=False)
    try:
        first = evaluate(data, case.arrays, refusing=True)
        weights = {name: numpy.ones(tuple(first.values[name].shape)) for name in names}
        return _Expected(case, evaluate(data, case.arrays, weights, case.wanted, refusing=True))
    except REFUSALS:
        return _Expected(case, None)


def _run(executor: ol.Executor, program: ol.Program, case: Case, fetch: Sequence[str]) -> Sequence[numpy.ndarray]:
    return executor.run(program, feed_of(program, case.arrays), fetch, scope=scope_of(program, case.arrays), training=False)  # type: ignore[return-value]


def _attempt(function: "partial[Sequence[numpy.ndarray]]") -> Sequence[numpy.ndarray] | ol.OarlockError:
    try:
        return function()
    except ol.OarlockError as error:
        return error


def main() -> int:
    torch.set_num_threads(1)
    arguments = numbered("generated.sizes", "Run random programs on sizes that are only maybe equal.").parse_args()
    make_case = partial(make, maybe_equal=True)
    return count_checks(arguments, check_sizes, "of which some sizes were tried in", make=make_case)


if __name__ == "__main__":
    sys.exit(main())
