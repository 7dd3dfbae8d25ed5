"""Layers on the sequences of a ragged value; its row splits are found by the symbol of its first dimension."""

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op import sequence as operators
from oarlock.op import sequence_layout as layout
from oarlock.registry.creator import block_for, require_type

__all__ = [
    "sequence_concat",
    "sequence_expand",
    "sequence_lengths",
    "sequence_pad",
    "sequence_pool",
    "sequence_softmax",
    "sequence_unpad",
    "splits_of",
]

_POOLS = {
    "sum": operators.sequence_sum,
    "mean": operators.sequence_mean,
    "max": operators.sequence_max,
    "first": operators.sequence_first,
    "last": operators.sequence_last,
}


def sequence_pool(x: Var, pool: str, *, name: str | None = None) -> Var:
    """Reduce each sequence of a ragged `x` to its "sum", "mean", "max", "first" or "last" element: float[t ...d] -> float[n ...d].

    An empty sequence yields 0, with zero gradient. With nested sequences, the inner level is pooled. Raises ArgumentError.

        y = ol.layer.sequence_pool(words, "mean")
    """
    if pool not in _POOLS:
        raise ArgumentError(f"sequence_pool: pool must be one of {', '.join(_POOLS)}, not {pool!r:.60}", location=here())
    return _POOLS[pool](x, splits_of(x, "sequence_pool: x"), name=name)


def sequence_lengths(x: Var, *, name: str | None = None) -> Var:
    """Return the number of elements of each sequence of a ragged `x`: int64[n]. Raises ArgumentError.

    y = ol.layer.sequence_lengths(words)
    """
    return operators.sequence_lengths(splits_of(x, "sequence_lengths: x"), name=name)


def sequence_expand(x: Var, like: Var, *, name: str | None = None) -> Var:
    """Repeat row i of `x`, T[n ...d], for every element of sequence i of the ragged `like`: T[t ...d]. Raises ArgumentError or ShapeError.

    y = ol.layer.sequence_expand(rows, words)
    """
    x, like = require_type(x, "sequence_expand: x"), require_type(like, "sequence_expand: like")
    return operators.sequence_expand(x, splits_of(like, "sequence_expand: like"), like, name=name)


def sequence_softmax(x: Var, *, name: str | None = None) -> Var:
    """Apply softmax over each sequence of a ragged `x`; the shape is unchanged. Raises ArgumentError.

    y = ol.layer.sequence_softmax(ol.layer.fc(words, 1))
    """
    return operators.sequence_softmax(x, splits_of(x, "sequence_softmax: x"), name=name)


def sequence_concat(*xs: Var, name: str | None = None) -> Var:
    """Concatenate ragged values row by row: sequence i of the ragged result is sequence i of each of `xs` in order.

    Raises ArgumentError, or ShapeError if their numbers of sequences differ.

        y = ol.layer.sequence_concat(words, words)
    """
    splits = [splits_of(x, f"sequence_concat: argument {number}") for number, x in enumerate(xs)]
    y, y_splits = layout.sequence_concat(xs, splits, name=name)
    y_splits.row_splits_of = y.shape[0]
    y.block.program.changed()
    return y


def sequence_pad(x: Var, *, fill: float = 0.0, name: str | None = None) -> Var:
    """Pad the sequences of a ragged `x` with `fill` to the length of the longest: T[t ...d] -> T[n longest ...d]. Raises ArgumentError.

    y = ol.layer.sequence_pad(words)
    """
    return layout.sequence_pad(x, splits_of(x, "sequence_pad: x"), fill=fill, name=name)


def sequence_unpad(padded: Var, like: Var, *, name: str | None = None) -> Var:
    """Remove padding, with the lengths of the ragged `like`: T[n longest ...d] -> T[t ...d], ragged. Raises ArgumentError.

    y = ol.layer.sequence_unpad(ol.op.tanh(ol.layer.sequence_pad(words)), words)
    """
    padded, like = require_type(padded, "sequence_unpad: padded"), require_type(like, "sequence_unpad: like")
    return layout.sequence_unpad(padded, splits_of(like, "sequence_unpad: like"), like, name=name)


def splits_of(x: Var, what: str) -> Var:
    """Return the row splits of the first dimension of `x`. Raises ArgumentError if it has none."""
    x = require_type(x, what)
    splits = block_for([x], what.partition(":")[0]).splits_of(x.shape[0]) if x.shape else None
    if splits is None:
        raise ArgumentError(
            f'{what} is not ragged: the sequences of "{x.name}" have no row splits',
            location=here(),
            contract="row splits partition the first dimension of a ragged value",
            given=[x.describe()],
            hint='declare a ragged input: ol.layer.data("words", [], dtype="int64", ragged=1) is int64[words.t] with row splits',
        )
    return splits
