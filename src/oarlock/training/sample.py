"""A few rows of the data, stored in the run folder so that the predictions for them can be shown later."""

from collections.abc import Mapping

import numpy
import safetensors.torch
import torch

from oarlock.data.program_inputs import Feed, ProgramInputs
from oarlock.ir.program import Program
from oarlock.runtime.ragged import Ragged

__all__ = ["sample_of"]

_LARGEST = 4 * 2**20  # bytes of all rows; fewer rows are kept to stay below


def sample_of(program: Program, feed: Feed, rows: int, count: int) -> bytes | None:
    """Return up to `count` of the `rows` rows of a feed, evenly spaced, as a safetensors file; None if there are none or they do not fit.

    Columns are named by their inputs, and row splits by the names of theirs.
    """
    count = min(count, rows) if feed else 0
    while count:
        tensors = _taken(program, feed, numpy.linspace(0, rows - 1, count).round().astype("int64"))
        if sum(tensor.nbytes for tensor in tensors.values()) <= _LARGEST:
            return safetensors.torch.save(tensors)
        count //= 2
    return None


def _taken(program: Program, feed: Mapping[str, "numpy.ndarray | Ragged"], chosen: numpy.ndarray) -> dict[str, torch.Tensor]:
    splits, found = ProgramInputs.of(program).splits, {}
    for name, column in feed.items():
        taken = column[chosen] if isinstance(column, Ragged) or column.ndim else column  # a scalar belongs to all rows
        if isinstance(taken, Ragged):
            found |= dict(zip([name, *splits[name]], [taken.values, *taken.splits], strict=True))
        else:
            found[name] = taken
    return {name: torch.from_numpy(numpy.array(value, order="C")) for name, value in found.items()}
