"""Predictions as text, for `oarlock infer`: a few rows, and small images."""

import numpy
from rich.columns import Columns
from rich.console import Console
from rich.text import Text

from oarlock.plotting.axis import format_number

__all__ = ["draw_predictions", "format_rows"]


_ROWS, _COLUMNS = 20, 10  # the largest table to print


def format_rows(name: str, predicted: numpy.ndarray, labels: object) -> str | None:
    """Format predictions as a table, one line per row, with `labels` if they match.

    Rows of class probabilities give the class and its certainty, others their values. Returns None if there are no rows or too many.
    """
    if predicted.ndim not in (1, 2) or not 0 < len(predicted) <= _ROWS or predicted.shape[1:] == (0,):
        return None
    columns = {"row": [str(row) for row in range(len(predicted))]}
    if isinstance(labels, numpy.ndarray) and labels.shape == predicted.shape[:1]:
        columns["label"] = [str(label) for label in labels]
    if _are_shares(predicted):
        columns["class"] = [str(found) for found in predicted.argmax(1)]
        columns["certainty"] = [f"{share * 100:.1f} %" for share in predicted.max(1).astype("float64")]
    elif predicted.ndim == 1:
        columns[name] = _numbers(predicted)
    elif predicted.shape[1] <= _COLUMNS:
        columns |= {f"{name}_{number}": _numbers(predicted[:, number]) for number in range(predicted.shape[1])}
    else:
        return None
    widths = [max(map(len, (title, *cells))) for title, cells in columns.items()]
    lines = [tuple(columns), *zip(*columns.values(), strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def _are_shares(predicted: numpy.ndarray) -> bool:
    """Return whether each row holds the probabilities of several classes, as softmax computes them."""
    if predicted.ndim != 2 or predicted.shape[1] < 2 or not numpy.issubdtype(predicted.dtype, numpy.floating):
        return False
    rows = predicted.astype("float64")
    return bool((rows >= 0).all() and (abs(rows.sum(1) - 1) < 1e-2).all())


def _numbers(values: numpy.ndarray) -> list[str]:
    is_real = numpy.issubdtype(values.dtype, numpy.floating)
    return [format_number(float(value)) if is_real else str(value) for value in values]


_SHADES = " .:-=+*#%@"


def draw_predictions(
    console: Console, images: numpy.ndarray, labels: numpy.ndarray, read: numpy.ndarray, confidence: numpy.ndarray
) -> None:
    """Draw a few images with their predicted labels: one per label, and one misclassified image last, if there is one.

    images: float[n, c, h, w] from 0 to 1; labels, read: int64[n]; confidence: float[n] from 0 to 1.
    """
    wrong = numpy.flatnonzero(labels != read)[:1]
    right = numpy.flatnonzero(labels == read)
    one_each = [index for label in numpy.unique(labels) for index in right[labels[right] == label][:1]]
    room = max(2, min(8, console.width // (2 * images.shape[-1] + 4)))
    chosen = [*one_each[: room - len(wrong)], *wrong]
    console.print(
        Columns(
            [_draw(images[index, 0], int(labels[index]), int(read[index]), float(confidence[index])) for index in chosen], padding=(0, 3)
        )
    )
    console.print()


def _draw(image: numpy.ndarray, label: int, read: int, confidence: float) -> Text:
    levels = numpy.clip((image * (len(_SHADES) - 1)).round().astype(int), 0, len(_SHADES) - 1)
    lines = ["".join(_SHADES[level] * 2 for level in row) for row in levels]
    text = Text("\n".join(lines) + "\n")
    text.append(f"read {read} ({confidence:.0%})", style="green" if read == label else "red")
    text.append("" if read == label else f", is {label}", style="red")
    return text
