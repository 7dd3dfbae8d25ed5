"""Training: what plans make of a program and its updates, after each pass, in memory that is used again and spoilt where it is free."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations
from random import Random

import numpy
from rounding import rounded_by_place
from tolerances import PASSES_DIFFER

import oarlock as ol
from generated.making import Case
from generated.rewriting import Rewritings, State
from generated.running import Arrays, feed_of, require_close, require_planned, scope_of
from oarlock.passes.pipeline import PASSES

__all__ = ["ALONE", "FIRED", "check_training", "trained"]

FIRED = "pass: "
"""The beginning of a feature that names a pass which did something among all of them."""

ALONE = "pass alone: "
"""The same, for a pass that did something without the others."""

EXACT = {"inline", "canonicalize", "constant_folding", "cse", "licm", "hoist_transposes", "multi_tensor_updates"}
"""Passes that round nothing otherwise; a zero may lose its sign."""

STEPS = 2
SUBSETS = 4  # random ones of the passes
OPTIMIZERS = (
    lambda: ol.optimizer.SGD(0.05),
    lambda: ol.optimizer.Momentum(0.05, mu=0.5),
    lambda: ol.optimizer.Momentum(0.05, nesterov=True),
    lambda: ol.optimizer.Adam(0.05, epsilon=0.1),
)

Combination = tuple[str, ...]


def check_training(case: Case, random: Random, *, passes: bool = False, pairs: bool = False) -> set[str]:
    """Train a program by the interpreter and by plans; return which passes did something.

    By a plan without passes the bits are the same, but of what depends on an op that rounds by place. With all of them, with some alone
    or two at a time - all that there are with `passes` and with `pairs` - and with random subsets, values may be rounded otherwise, unless
    the passes say that they round nothing. What combinations of passes make of the program is found without plans; what is the same is run
    once.
    """
    program, names = trained(case, random)
    expected = _run(program, case, names, ol.Executor(interpret=True))
    for executor in (ol.Executor(passes=()), ol.Executor(passes=(), poison=True)):
        for number, (step, values) in enumerate(zip(expected, _run(program, case, names, executor), strict=True)):
            require_planned(program, f"after step {number} of training by a plan", values, step)
    executor = ol.Executor(poison=True)
    _require_near("in training after all passes", _run(program, case, names, executor), expected)
    features = {FIRED + name for name, count in executor.plan(program, names).applied.items() if count}
    rewritings = Rewritings(program, names)
    exact_values = {name for values in expected for name in values} - rounded_by_place(program)
    labels = list(rewritings.start.program.targets)
    for state, sequences in _states(rewritings, _combinations(random, passes=passes, pairs=pairs)).items():
        found = _run(program, case, labels, ol.Executor(passes=(), poison=True), state.program)
        values = [dict(zip(names, step.values(), strict=True)) for step in found[:-1]]
        exact = any(EXACT.issuperset(combination) for combination in sequences)
        what = f"in training after {' and '.join(sequences[0])}"
        _require_near(what, [*values, found[-1]], expected, exact=exact_values if exact else ())
    rewritings.check()
    return features | {ALONE + name for name in PASSES if rewritings.start.counts.get(name)}


def _combinations(random: Random, *, passes: bool, pairs: bool) -> Iterator[Combination]:
    alone = [(name,) for name in PASSES]
    both = list(combinations(PASSES, 2))
    yield from alone if passes else random.sample(alone, 2)
    yield from both if pairs else random.sample(both, 1)
    for _ in range(SUBSETS if passes else 1):
        yield tuple(name for name in PASSES if random.random() < 0.5)


def _states(rewritings: Rewritings, tried: Iterable[Combination]) -> dict[State, list[Combination]]:
    """The states that passes make of a program, and the combinations of passes that lead to each; but for the unchanged program."""
    found: dict[State, list[Combination]] = {}
    for combination in tried:
        state, _ = rewritings.after(combination)
        if state is not rewritings.start:
            found.setdefault(state, []).append(combination)
    return found


def trained(case: Case, random: Random) -> tuple[ol.Program, list[str]]:
    """A copy of the program with a cost and, where that depends on parameters, a step; and what is fetched of it."""
    program = case.program.clone()
    with program:
        parts = [ol.op.reduce_sum(_squared(program, name, random)) for name, _ in case.targets]
        cost = ol.op.multiply(ol.op.sum(parts), ol.op.full(shape=(), value=0.05, dtype="float64"))
    wanted = [var for var in program.parameters() if var.trainable]
    found = [(var, gradient) for var, gradient in zip(wanted, ol.gradients([cost], wanted), strict=True) if gradient is not None]
    names = [cost.name, *(name for name, _ in random.sample(case.targets, 1))]
    if found:
        random.choice(OPTIMIZERS)().apply(found)
        names += [gradient.name for _, gradient in random.sample(found, 1)] if random.random() < 0.3 else []
        names += [var.name for var, _ in random.sample(found, 1)] if random.random() < 0.3 else []
    return program, list(dict.fromkeys(names))


def _squared(program: ol.Program, name: str, random: Random) -> ol.Var:
    var = program.main.var(name)
    return random.choice((ol.op.square, lambda x: ol.op.multiply(x, x), lambda x: ol.op.multiply(ol.op.tanh(x), x)))(var)


def _run(
    program: ol.Program, case: Case, names: Sequence[str], executor: ol.Executor, rewritten: ol.Program | None = None
) -> list[dict[str, numpy.ndarray]]:
    """The fetched values of each step, and the values of the scope in the end; of the `rewritten` program, where that is given."""
    scope = scope_of(program, case.arrays)
    step = executor.prepare(rewritten or program, names, scope=scope)
    feed = feed_of(program, case.arrays)
    steps = [dict(zip(names, step(feed), strict=True)) for _ in range(STEPS)]
    return [*steps, {name: scope[name].numpy().copy() for name in scope}]  # type: ignore[attr-defined]


def _require_near(what: str, found: Iterable[Arrays], expected: Collection[Arrays], exact: Collection[str] = ()) -> None:
    """That values are those expected but for rounding; of the names in `exact` the same numbers."""
    for values, others in zip(found, expected, strict=True):
        for name, value in values.items():
            if value.size or others[name].size:  # of what has no elements, nothing may tell the sizes
                require_close("passes", f'"{name}" {what}', value, others[name], (0.0, 0.0) if name in exact else PASSES_DIFFER)
