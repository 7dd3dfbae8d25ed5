"""The feed of a batch: what a user's function makes of it, as the inputs of a program take it."""

from collections.abc import Mapping

import numpy

from oarlock.data.program_inputs import Feed, ProgramInputs
from oarlock.data.source import Source
from oarlock.errors import FeedError
from oarlock.runtime import random
from oarlock.runtime.value import describe_value

__all__ = ["feed_of"]


def feed_of(
    batch: object,
    source: Source,
    inputs: ProgramInputs,
    seed: int,
    epoch: int,
    number: int,
    *,
    rows: numpy.ndarray | None = None,
    rounds: bool = False,
) -> Feed:
    """The feed of batch `number` of an epoch. Raises FeedError where the transform makes something else than columns by name.

    A transform of two arguments gets a generator of random numbers whose seed is a function of `seed`, that of the program, the epoch and
    the batch.
    """
    if source.transform is not None:
        batch = dict(batch) if isinstance(batch, Mapping) else batch
        generator = [numpy.random.default_rng(random.key_of(seed, "transform", epoch, number))] if source.draws else []
        batch = source.transform(batch, *generator)
        if not isinstance(batch, Mapping):
            raise FeedError(f"transform returned {describe_value(batch)}, not a dict of columns by the names of the inputs")
    return inputs.feed(batch, rows, rounds=rounds)
