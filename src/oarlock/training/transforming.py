"""A user's function of a batch."""

import inspect
from collections.abc import Mapping

import numpy

from oarlock.data.source import Transform
from oarlock.errors import FeedError
from oarlock.runtime import random
from oarlock.runtime.value import describe_value

__all__ = ["transformed"]


def transformed(transform: Transform, batch: object, seed: int, epoch: int, number: int) -> Mapping[str, object]:
    """Batch `number` of an epoch as `transform` leaves it: columns by name. Raises FeedError where that returns something else.

    One of two arguments gets a generator of random numbers whose seed is a function of the seed of the program, the epoch and the batch.
    """
    given = dict(batch) if isinstance(batch, Mapping) else batch
    if _takes_generator(transform):
        made = transform(given, numpy.random.default_rng(random.key_of(seed, "transform", epoch, number)))
    else:
        made = transform(given)
    if not isinstance(made, Mapping):
        raise FeedError(f"transform returned {describe_value(made)}, not a dict of columns by the names of the inputs")
    return made


def _takes_generator(transform: Transform) -> bool:
    try:
        parameters = inspect.signature(transform).parameters.values()
    except (TypeError, ValueError):
        return False
    return sum(item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD) and item.default is item.empty for item in parameters) == 2
