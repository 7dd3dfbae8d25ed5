"""The feed of a batch: the result of the user's transform, converted to the inputs of a program."""

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
    """Return the feed of batch `number` of an epoch. Raises FeedError if the transform returns anything but columns by name.

    A transform of two arguments gets a random generator, seeded by the program's `seed`, the epoch and the batch.
    """
    if source.transform is not None:
        batch = dict(batch) if isinstance(batch, Mapping) else batch
        generator = [numpy.random.default_rng(random.key_of(seed, "transform", epoch, number))] if source.draws else []
        batch = source.transform(batch, *generator)
        if not isinstance(batch, Mapping):
            raise FeedError(f"transform returned {describe_value(batch)}, not a dict of input names and columns")
    return inputs.feed(batch, rows, rounds=rounds)
