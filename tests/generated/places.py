"""Programs whose parameters lie at places drawn at random, beside the same at one place: what is moved changes no value.

PYTHONPATH=src:tests python -m generated.places --seed 20 --count 300
"""

import sys
from collections.abc import Sequence
from random import Random

import numpy
from tolerances import GENERATED_GRADIENTS

import oarlock as ol
from generated.counting import count_checks, numbered
from generated.making import Case
from generated.running import Arrays, feed_of, require_close, scope_of
from generated.training import trained
from oarlock.passes.places import write_moves
from oarlock.registry.catalogue import standard

__all__ = ["check_places"]

STEPS = 2
WAYS = ({}, {"passes": ()}, {"interpret": True}, {"poison": True})


def check_places(case: Case, random: Random, count: int = 3) -> int:
    """Run a program and its updates at `count` places at the processor; return how many moves that took, as the program is written.

    Raises DisagreementError where a value is another than at one place: by a bit, interpreted; a plan lays results of loops in other
    memory, where some kernels round otherwise.
    """
    program, names = trained(case, random)
    divided = program.clone()
    for var in divided.persistables():
        var.place = random.randrange(count)
    divided.changed()
    feed = feed_of(program, case.arrays)
    for way in WAYS:
        whole, found = (
            _steps(each, case, names, feed, ol.Executor(places, **way))
            for each, places in ((program, ol.CPUPlace()), (divided, [ol.CPUPlace()] * count))
        )
        for name, value in whole.items():
            require_close(
                "places", f'"{name}", {way or "a plan"},', found[name], value, (0, 0) if "interpret" in way else GENERATED_GRADIENTS
            )
    moved = divided.clone()
    write_moves(moved, standard)
    return sum(op.type == "move" for op in moved.main.ops)


def _steps(program: ol.Program, case: Case, names: Sequence[str], feed: Arrays, executor: ol.Executor) -> dict[str, numpy.ndarray]:
    """The values fetched in each step, and what is kept after the last."""
    scope = scope_of(program, case.arrays)
    values = [executor.run(program, feed, names, scope=scope) for _ in range(STEPS)]
    fetched = {f"{name} in step {step}": value for step, each in enumerate(values) for name, value in zip(names, each, strict=True)}
    return fetched | {var.name: scope[var.name].numpy() for var in program.persistables()}


def main() -> int:
    arguments = numbered("generated.places", "Lay the parameters of random programs at places.").parse_args()
    return count_checks(arguments, check_places, "of which something is moved in")


if __name__ == "__main__":
    sys.exit(main())
