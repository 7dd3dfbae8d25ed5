"""A few rows of predictions as text, for `oarlock infer`."""

import numpy

from oarlock.plotting.axis import format_number

__all__ = ["format_rows"]

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
