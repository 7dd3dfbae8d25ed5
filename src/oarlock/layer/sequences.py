"""Layers on the sequences of a ragged value. Its row splits are found by the symbol of its first dimension."""

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
    """One element of each sequence of a ragged `x`, float[t ...d] -> float[n ...d]: its "sum", "mean", "max", "first" or "last".

    Of an empty sequence it is 0, and so is the gradient. Rows of rows become rows. Raises ArgumentError.

        y = ol.layer.sequence_pool(words, "mean")
    """
    if pool not in _POOLS:
        raise ArgumentError(f"sequence_pool: {pool!r:.60} is none of {', '.join(_POOLS)}", location=here())
    return _POOLS[pool](x, splits_of(x, "sequence_pool: x"), name=name)


def sequence_lengths(x: Var, *, name: str | None = None) -> Var:
    """How many elements each sequence of a ragged `x` has: int64[n]. Raises ArgumentError.

    y = ol.layer.sequence_lengths(words)
    """
    return operators.sequence_lengths(splits_of(x, "sequence_lengths: x"), name=name)


def sequence_expand(x: Var, like: Var, *, name: str | None = None) -> Var:
    """Row i of `x`, T[n ...d], for every element of sequence i of the ragged `like`: T[t ...d]. Raises ArgumentError or ShapeError.

    y = ol.layer.sequence_expand(rows, words)
    """
    x, like = require_type(x, "sequence_expand: x"), require_type(like, "sequence_expand: like")
    return operators.sequence_expand(x, splits_of(like, "sequence_expand: like"), like, name=name)


def sequence_softmax(x: Var, *, name: str | None = None) -> Var:
    """The softmax over each sequence of a ragged `x`, of the same shape. Raises ArgumentError.

    y = ol.layer.sequence_softmax(ol.layer.fc(words, 1))
    """
    return operators.sequence_softmax(x, splits_of(x, "sequence_softmax: x"), name=name)


def sequence_concat(*xs: Var, name: str | None = None) -> Var:
    """Ragged values joined row by row: sequence i is sequence i of each of `xs`, one after another. It is ragged too.

    Raises ArgumentError, or ShapeError where they have different numbers of sequences.

        y = ol.layer.sequence_concat(words, words)
    """
    splits = [splits_of(x, f"sequence_concat: argument {number}") for number, x in enumerate(xs)]
    y, y_splits = layout.sequence_concat(xs, splits, name=name)
    y_splits.row_splits_of = y.shape[0]
    y.block.program.changed()
    return y


def sequence_pad(x: Var, *, fill: float = 0.0, name: str | None = None) -> Var:
    """The sequences of a ragged `x` as rows of one length, T[t ...d] -> T[n longest ...d], filled up. Raises ArgumentError.

    y = ol.layer.sequence_pad(words)
    """
    return layout.sequence_pad(x, splits_of(x, "sequence_pad: x"), fill=fill, name=name)


def sequence_unpad(padded: Var, like: Var, *, name: str | None = None) -> Var:
    """Padded rows cut to the lengths of the ragged `like`: T[n longest ...d] -> T[t ...d], ragged too. Raises ArgumentError.

    y = ol.layer.sequence_unpad(ol.op.tanh(ol.layer.sequence_pad(words)), words)
    """
    padded, like = require_type(padded, "sequence_unpad: padded"), require_type(like, "sequence_unpad: like")
    return layout.sequence_unpad(padded, splits_of(like, "sequence_unpad: like"), like, name=name)


def splits_of(x: Var, what: str) -> Var:
    """The row splits by which the first dimension of `x` is cut. Raises ArgumentError where it is not."""
    x = require_type(x, what)
    splits = block_for([x], what.partition(":")[0]).splits_of(x.shape[0]) if x.shape else None
    if splits is None:
        raise ArgumentError(
            f'{what} is not ragged: nothing says where the sequences of "{x.name}" end',
            location=here(),
            contract="row splits partition the size that a ragged value's shape begins with",
            given=[x.describe()],
            hint='ol.layer.data("words", [], dtype="int64", ragged=1) declares an input with row splits, words: int64[words.t]',
        )
    return splits
