"""A program of its own for each seed and number, with values to run it on and what to differentiate."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy

import generated.branches
import generated.loops  # noqa: F401  each file adds its constructs
import oarlock as ol
from generated.blocks import write_statements
from generated.choices import Choices
from generated.writing import NUMBERS, OTHER, SPLIT, Writing
from oarlock.ir.size import Size
from oarlock.ir.traversal import walk

__all__ = ["Case", "from_choices", "make", "resized"]


@dataclass
class Case:
    """A forward program to be checked.

    `arrays` are its inputs and parameters by name. `targets` are pairs: a variable, and an input that weighs it or None. `wanted` are
    the variables whose gradients are compared, with `second` those of the sum of their gradients too. `features` is what the
    histogram counts, `choices` what made it. `sizes` are the numbers of symbols, `pairs` the sizes that ops need to be equal or broadcast,
    and that names do not prove.
    """

    program: ol.Program
    arrays: dict[str, numpy.ndarray]
    targets: list[tuple[str, str | None]]
    wanted: list[str]
    second: bool = False
    features: set[str] = field(default_factory=set)
    choices: list[int] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    pairs: list[tuple[Size, Size]] = field(default_factory=list)


def make(seed: int, number: int, *, maybe_equal: bool = False) -> Case:
    """The case that follows from these alone; with sizes that are only `maybe_equal`."""
    return _make(Choices(Random(f"{seed} {number}")), maybe_equal)


def from_choices(made: Sequence[int], *, maybe_equal: bool = False) -> Case:
    """The case that these choices make, and zeros after them."""
    return _make(Choices(replayed=made), maybe_equal)


def resized(case: Case, sizes: Mapping[str, int]) -> Case:
    """The case that has the same program, on other numbers for its symbols. Its parameters are the same."""
    first = _FIRST_SIZE
    chosen = [NUMBERS.index(sizes.get(symbol, number)) for symbol, number in case.sizes.items() if symbol in _CHOSEN]
    other = from_choices([*case.choices[:first], *chosen, *case.choices[first + len(chosen) :]], maybe_equal=OTHER in case.sizes)
    parameters = {var.name for var in case.program.persistables()}
    other.arrays |= {name: array for name, array in case.arrays.items() if name in parameters}
    return other


_FIRST_SIZE = 4  # the choices before those of sizes, which `Writing` makes first
_CHOSEN = ("t", "n", SPLIT, OTHER)


def _make(choices: Choices, maybe_equal: bool) -> Case:
    w = Writing(choices, maybe_equal=maybe_equal)
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
    pairs = [(one, w.chosen_by.get(other, other)) for one, other in w.pairs]
    return Case(w.program, w.arrays, targets, wanted, second, w.features, choices.made, w.sizes, pairs)


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
    times = Counter({var: sum(read is var for read in op.reads) for op in walk(w.program.main) for var in op.reads})
    found = {f"{min(len(targets), 3)} targets", "control flow" if w.kinds or len(w.program.blocks) > 1 else "straight line"}
    found |= {"used 3 times or more"} if any(count >= 3 for count in reads.values()) else set()
    found |= {"twice in one op"} if any(count >= 2 for count in times.values()) else set()
    found |= {f"{symbol} is {size}" for symbol, size in w.sizes.items() if size < 2 and symbol in "tn"}
    return found
