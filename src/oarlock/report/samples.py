"""The sample rows of a run, with the predictions for them; images as thumbnails."""

import base64
import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy

from oarlock.plotting.axis import format_number
from oarlock.report.markup import table, text
from oarlock.report.prediction import Sample

__all__ = ["as_pixels", "draw_sample", "picture_of"]

_LARGEST, _SMALLEST, _DRAWN = 512, 4, 128  # pixels per side: the limits for images, and the size to draw


def as_pixels(rows: numpy.ndarray) -> numpy.ndarray | None:
    """Return the rows of an array as images, uint8[n h w] or uint8[n h w 3], or None if they do not look like images.

    Rows must be [h w], [1 h w], [3 h w], [h w 1] or [h w 3], with 4 to 512 pixels per side. Values from 0 to 1 or 0 to 255 are not
    rescaled, others are scaled from the minimum to the maximum of all rows; non-finite values are black.
    """
    if rows.dtype.kind not in "biuf" or rows.ndim not in (3, 4) or not len(rows):
        return None
    values = rows
    if values.ndim == 4:
        if values.shape[1] in (1, 3) and values.shape[3] not in (1, 3):
            values = numpy.moveaxis(values, 1, 3)
        if values.shape[3] not in (1, 3):
            return None
        values = values[..., 0] if values.shape[3] == 1 else values
    if not all(_SMALLEST <= side <= _LARGEST for side in values.shape[1:3]):
        return None
    values = values[:, :: -(-values.shape[1] // _DRAWN), :: -(-values.shape[2] // _DRAWN)].astype("float64")
    finite = values[numpy.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low >= 0 and high <= 255 and (high > 20 or rows.dtype.kind == "u"):
        low, high = 0.0, 255.0
    with numpy.errstate(all="ignore"):
        scaled = (values - low) / (high - low or 1.0)
    return (numpy.nan_to_num(scaled, nan=0.0, posinf=1.0, neginf=0.0).clip(0, 1) * 255).round().astype("uint8")


def picture_of(pixels: numpy.ndarray, alt: str) -> str:
    """Return pixels, uint8[h w] or uint8[h w 3], as an HTML image with the alternative text `alt`, which must be escaped."""
    height, width = pixels.shape[:2]
    return f'<img class="pixels" width="{width}" height="{height}" alt="{alt}" src="{_png(pixels)}">'


def _png(pixels: numpy.ndarray) -> str:
    """Encode pixels as the data URL of a PNG (ISO 15948)."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")):
        data += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}"


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
