"""The sample rows of a run, with the predictions for them."""

from collections.abc import Sequence
from itertools import pairwise

import numpy

from oarlock.plotting.axis import format_number
from oarlock.report.markup import table, text
from oarlock.report.picture import as_pixels, picture_of
from oarlock.report.prediction import Sample

__all__ = ["draw_sample"]

_SHOWN = 12  # numbers of a row
_ROWS = 64  # rows of a table, because an untrusted file may have many


def draw_sample(sample: Sample) -> str:
    """Draw the rows as thumbnails with predictions if they are images with one class each, otherwise as a table."""
    given = {name: column for name, column in sample.columns.items() if name != sample.true_name} or sample.columns
    counts = [len(column) for column in sample.columns.values() if column.ndim]
    if not counts:
        return ""
    where = f"rows of the {text(sample.part)} data"
    if sample.fault is not None:
        note = f'<p class="note">The {where} have no predictions: {text(sample.fault)}.</p>'
        return note + _table(sample, given)
    note = f'<p class="note">{where.capitalize()}, and the prediction after step {sample.step:,}.</p>'
    images = [pixels for column in given.values() if (pixels := as_pixels(column)) is not None]
    if len(given) == 1 and images and sample.classes is not None and sample.classes.ndim == 1 and len(images[0]) == len(sample.classes):
        return note + _cards(sample, images[0])
    return note + _table(sample, given)


def _cards(sample: Sample, images: numpy.ndarray) -> str:
    assert sample.classes is not None
    assert sample.true is not None
    assert sample.certainty is not None
    cards = []
    for pixels, predicted, true, certainty in list(zip(images, sample.classes, sample.true, sample.certainty, strict=True))[:_ROWS]:
        is_right = predicted == true
        mark = '<span class="right">✓</span>' if is_right else f'<span class="wrong">✗ is {int(true)}</span>'
        caption = f"{int(predicted)} <small>{_share(certainty)}</small> {mark}"
        cards.append(f"<figure>{picture_of(pixels, f'class {int(true)}')}<figcaption>{caption}</figcaption></figure>")
    return f'<div class="cards">{"".join(cards)}</div>'


def _table(sample: Sample, given: dict[str, numpy.ndarray]) -> str:
    splits = {name: sample.columns[f"{name}.splits"] for name in given if f"{name}.splits" in sample.columns}
    rows_of = {name: _rows(column, splits.get(name)) for name, column in given.items() if not name.endswith(".splits") and column.ndim}
    predicted = sample.classes if sample.classes is not None else sample.values
    cut = next(iter(splits.values()), None)
    answers: dict[str, list[str]] = {}
    if predicted is not None and sample.true is not None and predicted.ndim and sample.true.ndim:
        if sample.true_name not in given:
            answers["true"] = _rows(sample.true, cut if len(sample.true) != _count(rows_of) else None)
        answers["predicted"] = _rows(predicted, cut if len(predicted) != _count(rows_of) else None)
        if sample.classes is not None and sample.classes.ndim == 1 and sample.certainty is not None and len(predicted) == _count(rows_of):
            marks = ['<span class="right">✓</span>' if same else '<span class="wrong">✗</span>' for same in predicted == sample.true]
            answers["certainty"] = [f"{_share(share)} {mark}" for share, mark in zip(sample.certainty, marks, strict=True)]
    columns = {name: cells for name, cells in (rows_of | answers).items() if len(cells) == _count(rows_of)}
    if not columns:
        return ""
    head = list(columns)
    return table(
        head,
        zip(*columns.values(), strict=True),
        numbers=[place for place, name in enumerate(head) if name in answers and "<img" not in columns[name][0]],
    )


def _count(rows_of: dict[str, list[str]]) -> int:
    return max((len(cells) for cells in rows_of.values()), default=0)


def _rows(column: numpy.ndarray, splits: numpy.ndarray | None) -> list[str]:
    """Return the rows of a column as cells: images or numbers."""
    if splits is not None:
        if splits.ndim != 1 or splits.dtype.kind != "i" or not len(splits) or splits.min() < 0 or splits.max() > len(column):
            return []
        return [_numbers(column[first:last]) for first, last in pairwise(splits[: _ROWS + 1].tolist())]
    pixels = as_pixels(column[:_ROWS])
    if pixels is not None:
        return [picture_of(row, "image") for row in pixels]
    return [_numbers(row) for row in column[:_ROWS]]


def _numbers(row: numpy.ndarray) -> str:
    """Format the first numbers of a row, and their count."""
    values = row.reshape(-1)
    shown = ", ".join(_number(value) for value in values[:_SHOWN].tolist())
    return f"{text(shown)}{f' … <small>{len(values):,} numbers</small>' if len(values) > _SHOWN else ''}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else format_number(value)


def _share(share: Sequence[float] | float) -> str:
    return f"{float(share) * 100:.0f} %"  # type: ignore[arg-type]
