"""The operators that are tried, and what trials of them reached."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from op.arguments import DERIVED, FORWARD

import oarlock as ol
from oarlock.registry import Operator
from row_law.giving import axes_of
from row_law.law import BrokenLawError, NoTrialError, hold_to_workers, keep_row_law
from row_law.trials import layouts_with_rows, make

__all__ = ["OPERATORS", "Outcome", "read_unreached", "targets_of", "try_operator"]

Target = tuple[Operator, str, int]
"""An operator, a slot of it, and an axis of the arguments there."""


def _is_for_workers(operator: Operator) -> bool:
    """Whether it is written by rewrites for several workers: `data_parallel` refuses a program that has it already."""
    return operator.effects == "collective" or operator.on_workers is not None or "workers" in operator.attributes


OPERATORS = [operator for operator in (*FORWARD, *DERIVED) if not _is_for_workers(operator)]


@dataclass
class Outcome:
    """The comparisons of some trials, the targets that they reached, those whose other sizes were refused, and the failures."""

    compared: Counter[str] = field(default_factory=Counter)
    reached: set[tuple[str, str, int]] = field(default_factory=set)
    refused: set[tuple[str, str, int]] = field(default_factory=set)
    trials: int = 0
    failures: list[str] = field(default_factory=list)


def read_unreached() -> dict[str, str]:
    """The slots and axes that no trial can reach, `operator.slot.axis`, each with the reason: `unreached.txt`."""
    found, reason = {}, ""
    for line in Path(__file__).with_name("unreached.txt").read_text(encoding="utf-8").splitlines()[1:]:
        reason = line.removesuffix(":") if not line.startswith(" ") else reason
        found |= dict.fromkeys(line.split(), reason) if line.startswith(" ") else {}
    return found


def targets_of(operator: Operator) -> list[Target]:
    """Every slot of an operator that its cases give, with every axis of the arguments there."""
    return [(operator, slot, axis) for slot, axis in axes_of(operator)]


def try_operator(target: Target, number: int, outcome: Outcome, *, attempts: int = 4) -> bool:
    """Try a target once, with what `number` draws; return whether there was a trial. An attempt that the operator refuses is repeated."""
    operator, slot, axis = target
    if not layouts_with_rows(operator, slot, axis):
        return False
    for attempt in range(attempts):
        random = Random(f"{operator.type} {slot} {axis} {number} {attempt}")
        trial = make(operator, random, (slot, axis))
        if trial is None:
            continue
        try:
            assert trial.program
        except ol.OarlockError:
            outcome.refused.add((operator.type, slot, axis))
            continue
        try:
            compared = keep_row_law(trial)
            compared |= hold_to_workers(trial, interpret=random.random() < 0.9)
        except NoTrialError:
            outcome.refused.add((operator.type, slot, axis))
            continue
        except Exception as error:
            outcome.trials += 1
            kind = "" if isinstance(error, BrokenLawError) else f"{type(error).__name__}: "
            outcome.failures.append(f"{operator.type}.{slot}.{axis} {number}: {kind}{str(error).splitlines()[0]}\n    {trial.describe()}")
            return True
        outcome.trials += 1
        outcome.compared.update(compared)
        outcome.reached.add((operator.type, slot, axis))
        return True
    return False
