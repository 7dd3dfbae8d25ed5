"""From a seed and a number to a file."""

from random import Random
from typing import NamedTuple

from fuzz.files import DRAFT_MUTATORS, FILE_MUTATORS
from fuzz.programs import MUTATORS
from fuzz.seeds import SEEDS, draft_of

__all__ = ["Made", "make"]


class Made(NamedTuple):
    """A file, and what was done to it."""

    number: int
    seed_program: str
    mutators: tuple[str, ...]
    data: bytes


def make(seed: int, number: int) -> Made:
    """The file that `seed` and `number` stand for: a good one, spoiled once to three times."""
    random = Random(f"{seed} {number}")
    name = random.choice(sorted(SEEDS))
    draft = draft_of(name)
    done = []
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        kind = random.random()
        if kind < 0.7:
            chosen = random.choice(sorted(MUTATORS))
            MUTATORS[chosen](random, draft.program.program)
        elif kind < 0.93:
            chosen = random.choice(sorted(DRAFT_MUTATORS))
            DRAFT_MUTATORS[chosen](random, draft)
        else:
            chosen = random.choice(sorted(FILE_MUTATORS))
        done.append(chosen)
    data = draft.to_bytes()
    for chosen in done:
        if chosen in FILE_MUTATORS:
            data = FILE_MUTATORS[chosen](random, data)
            if not data:
                break
    return Made(number, name, tuple(done), data)
