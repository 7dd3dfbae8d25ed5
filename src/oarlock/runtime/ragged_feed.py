"""Ragged values among what is fed: one value becomes the elements and the row splits that the program declares."""

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
    """`feed`, each ragged value in it replaced by its elements and its row splits. Raises FeedError.

    A plain array stays what it is, and so does whatever is fed together with all its row splits.
    """
    spread = dict(feed)
    levels_of = program.ragged_inputs()
    cut_by: dict[str, str] = {}
    for var in program.main.inputs:
        value, levels = feed.get(var.name), levels_of.get(var, [])
        if isinstance(value, Ragged) and not levels:
            raise FeedError(
                f'"{var.name}" is not ragged, yet a Ragged is fed',
                location=var.location,
                given=[f'"{var.name}" fed as {value!r}'],
                hint=f'ol.layer.data("{var.name}", ..., ragged=1) declares one that is',
            )
        apart = all(splits.name in feed for splits in levels)
        if not isinstance(value, Ragged) and (apart or not _is_rows(value)):
            continue
        ragged = as_ragged(var, value, len(levels))
        spread[var.name] = ragged.values
        for splits, cut in zip(levels, ragged.splits, strict=True):
            if splits.name in spread and not numpy.array_equal(to_numpy(to_tensor(spread[splits.name])), cut):
                other = f'"{cut_by[splits.name]}"' if splits.name in cut_by else f'"{splits.name}", which is fed too,'
                lengths = numpy.diff(cut), numpy.diff(to_numpy(to_tensor(spread[splits.name])))
                raise FeedError(
                    f'"{var.name}" and {other} are cut into rows in different ways',
                    location=var.location,
                    given=["rows of {}, where rows of {} are fed".format(*(f"{item.tolist()!r:.60}" for item in lengths))],
                )
            spread[splits.name] = cut
            cut_by.setdefault(splits.name, var.name)
    return spread


def as_ragged(var: Var, value: object, levels: int) -> Ragged:
    """`value` as the rows of the ragged input `var`. Raises FeedError.

    A Ragged; a list of rows, each a list or an array; or a pair, an array of elements and the lengths of the rows, or
    padded rows and their lengths, which the number of dimensions tells apart. Python's numbers take the dtype of `var`.
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
            f'"{var.name}" has {levels} level{"s" if levels > 1 else ""} of rows, yet what is fed has {ragged.levels}',
            location=var.location,
            given=[f'"{var.name}" fed as {ragged!r}'],
            hint=_hint(var, levels),
        )
    return ragged


def _is_rows(value: object) -> bool:
    """Whether `value` is rows, not elements alone."""
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
    raise ArgumentError("a tuple is an array of elements and lengths, or of padded rows and lengths, of which this is neither")


def _is_lengths(value: object) -> bool:
    """Whether `value` may be the lengths of rows: an array of one dimension, or a list of whole numbers."""
    if isinstance(value, list | tuple):
        return all(isinstance(item, int | numpy.integer) and not isinstance(item, bool) for item in value)
    return getattr(value, "ndim", None) == 1


def _hint(var: Var, levels: int) -> str:
    return f'feed={{"{var.name}": ol.Ragged.from_lists(rows{f", levels={levels}" if levels > 1 else ""})}} says which it is'
