"""A program of its own for each seed and number, with values to run it on and what to differentiate."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import numpy

import generated.branches
import generated.loops  # noqa: F401  each file adds its constructs
import oarlock as ol
from generated.blocks import write_statements
from generated.choices import Choices
from generated.writing import Writing
from oarlock.ir.traversal import walk

__all__ = ["Case", "from_choices", "make"]


@dataclass
class Case:
    """A forward program to be checked.

    `arrays` are its inputs and parameters by name. `targets` are pairs: a variable, and an input that weighs it or None. `wanted` are
    the variables whose gradients are compared, with `second` those of the sum of their gradients too. `features` is what the
    histogram counts, `choices` what made it.
    """

    program: ol.Program
    arrays: dict[str, numpy.ndarray]
    targets: list[tuple[str, str | None]]
    wanted: list[str]
    second: bool = False
    features: set[str] = field(default_factory=set)
    choices: list[int] = field(default_factory=list)


def make(seed: int, number: int) -> Case:
    """The case that follows from these two alone."""
    return _make(Choices(Random(f"{seed} {number}")))


def from_choices(made: Sequence[int]) -> Case:
    """The case that these choices make, and zeros after them."""
    return _make(Choices(replayed=made))


def _make(choices: Choices) -> Case:
    w = Writing(choices)
    with w.program:
        write_statements(w, w.statements, nested=choices.pick((0, 45, 45)))
        targets = _choose_targets(w)
        between = [var.name for var in w.visible() if var.op is not None and not var.stop_gradient and var.name not in dict(targets)]
    w.features |= _features(w, targets)
    wanted = [var.name for var in (*w.program.main.inputs, *w.program.parameters()) if var.dtype.is_floating]
    wanted = [name for name in wanted if name not in dict(targets).values()]
    if between and choices.chance(25):
        wanted.append(choices.pick(between))
        w.features.add("gradient of a value on the way")
    second = choices.chance(30) and "attention" not in w.features  # whose gradient has none
    w.features |= {"gradients of gradients"} if second else set()
    return Case(w.program, w.arrays, targets, wanted, second, w.features, choices.made)


def _choose_targets(w: Writing) -> list[tuple[str, str | None]]:
    found = w.visible(lambda var: var.op is not None) or w.visible()
    chosen = [found[min(w.choices.below(len(found)), w.choices.below(len(found)))] for _ in range(w.choices.pick((1, 1, 2, 3)))]
    chosen += w.visible(lambda var: var.parameter)[:1] if w.choices.chance(3) else []
    chosen += w.visible(w.ends.__contains__)[:1] if w.choices.chance(60) else []
    targets: list[tuple[str, str | None]] = []
    for var in dict.fromkeys(chosen):
        weight = None
        if w.choices.chance(30) and all(w.is_fed(size) for size in var.shape):
            weight = w.weight(var.shape)
            w.features.add("weighed target")
        targets.append((var.name, weight))
    return targets


def _features(w: Writing, targets: Sequence[object]) -> set[str]:
    """The features that can be seen of a program when it is whole."""
    reads = Counter(var for op in walk(w.program.main) for var in dict.fromkeys(op.reads) if var.dtype.is_floating)
    times = Counter({var: op.reads.count(var) for op in walk(w.program.main) for var in op.reads})
    found = {f"{min(len(targets), 3)} targets", "control flow" if w.kinds or len(w.program.blocks) > 1 else "straight line"}
    found |= {"used 3 times or more"} if any(count >= 3 for count in reads.values()) else set()
    found |= {"twice in one op"} if any(count >= 2 for count in times.values()) else set()
    found |= {f"{symbol} is {size}" for symbol, size in w.sizes.items() if size < 2 and symbol in "tn"}
    return found
