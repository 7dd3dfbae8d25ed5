"""Ragged values in a feed: each is replaced by the elements and row splits that the program declares."""

from collections.abc import Mapping

import numpy
import torch

from oarlock.errors import ArgumentError, FeedError, OarlockError
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.runtime.ragged import Ragged, flatten
from oarlock.runtime.value import read_as, to_numpy, to_tensor
from oarlock.tensor.dtype import to_torch

__all__ = ["as_ragged", "spread_ragged"]


def spread_ragged(program: Program, feed: Mapping[str, object]) -> dict[str, object]:
    """Return `feed` with each ragged value replaced by its elements and row splits. Raises FeedError.

    Plain arrays are unchanged, and so is an input that is fed together with all its row splits.
    """
    spread = dict(feed)
    levels_of = program.ragged_inputs()
    cut_by: dict[str, str] = {}
    for var in program.main.inputs:
        value, levels = feed.get(var.name), levels_of.get(var, [])
        if isinstance(value, Ragged) and not levels:
            raise FeedError(
                f'"{var.name}" is not a ragged input, but a Ragged is fed',
                location=var.location,
                given=[f'"{var.name}" fed as {value!r}'],
                hint=f'declare a ragged input by ol.layer.data("{var.name}", ..., ragged=1)',
            )
        apart = all(splits.name in feed for splits in levels)
        if not isinstance(value, Ragged) and (apart or not _is_rows(value)):
            continue
        ragged = as_ragged(var, value, len(levels))
        spread[var.name] = ragged.values
        for splits, cut in zip(levels, ragged.splits, strict=True):
            if splits.name in spread and not numpy.array_equal(to_numpy(to_tensor(spread[splits.name])), cut):
                other = f'"{cut_by[splits.name]}"' if splits.name in cut_by else f'"{splits.name}", also fed,'
                lengths = numpy.diff(cut), numpy.diff(to_numpy(to_tensor(spread[splits.name])))
                raise FeedError(
                    f'"{var.name}" and {other} have different row lengths',
                    location=var.location,
                    given=["rows of lengths {} and {}".format(*(f"{item.tolist()!r:.60}" for item in lengths))],
                )
            spread[splits.name] = cut
            cut_by.setdefault(splits.name, var.name)
    return spread


def as_ragged(var: Var, value: object, levels: int) -> Ragged:
    """Return `value` as a Ragged for the ragged input `var`. Raises FeedError.

    Accepts a Ragged; a list of rows, each a list or an array; or a pair of elements and row lengths, or of padded rows and row lengths,
    which differ in rank. Python numbers take the dtype of `var`.
    """
    try:
        ragged = (
            value
            if isinstance(value, Ragged)
            else _of_pair(var, value, levels)
            if isinstance(value, tuple)
            else _of_lists(var, value, levels)
        )
    except OarlockError as error:
        raise FeedError(f'"{var.name}": {error.message}', location=var.location, hint=_hint(var, levels)) from None
    if ragged.levels != levels:
        raise FeedError(
            f'"{var.name}" has {levels} level{"s" if levels > 1 else ""} of rows, but the fed value has {ragged.levels}',
            location=var.location,
            given=[f'"{var.name}" fed as {ragged!r}'],
            hint=_hint(var, levels),
        )
    return ragged


def _is_rows(value: object) -> bool:
    """Return whether `value` consists of rows, not of elements only."""
    return isinstance(value, list | tuple) or (isinstance(value, numpy.ndarray) and value.dtype == object)


def _of_lists(var: Var, value: object, levels: int) -> Ragged:
    elements, splits = flatten(value, levels)  # type: ignore[arg-type]
    if isinstance(elements, numpy.ndarray):
        return Ragged(elements, tuple(splits))
    if not elements:
        elements = torch.zeros([0, *(size if isinstance(size, int) else 0 for size in (var.shape or ())[1:])], dtype=to_torch(var.dtype))
    return Ragged(to_numpy(read_as(elements, var.dtype)), tuple(splits))


def _of_pair(var: Var, value: tuple, levels: int) -> Ragged:
    rank = len(var.shape or ())
    if levels == 1 and len(value) == 2 and _is_lengths(value[1]):
        dimensions = getattr(value[0], "ndim", None)
        if dimensions in (rank, rank + 1):
            return (Ragged.from_lengths if dimensions == rank else Ragged.from_padded)(*value)
    raise ArgumentError("a tuple must be (elements, lengths) or (padded rows, lengths)")


def _is_lengths(value: object) -> bool:
    """Return whether `value` may be row lengths: an array of one dimension, or a list of integers."""
    if isinstance(value, list | tuple):
        return all(isinstance(item, int | numpy.integer) and not isinstance(item, bool) for item in value)
    return getattr(value, "ndim", None) == 1


def _hint(var: Var, levels: int) -> str:
    return f'feed={{"{var.name}": ol.Ragged.from_lists(rows{f", levels={levels}" if levels > 1 else ""})}} is unambiguous'
