"""Rows looked up by number in a table of parameters."""

import math
from collections.abc import Sequence
from typing import Literal

from oarlock.errors import ArgumentError, DTypeError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.python_number import as_python
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.dense import sharded_axis
from oarlock.layer.initializer import Rule, normal
from oarlock.layer.parameter import layer_name, new_parameter, output_name
from oarlock.layer.parameter_options import Given
from oarlock.layer.sequences import sequence_pool
from oarlock.op.choice import where
from oarlock.op.comparison import equal, greater, not_equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.norms import vector_norm
from oarlock.op.composed.shape import unsqueeze
from oarlock.op.creation import full_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import clip, divide, multiply
from oarlock.op.extremes import amax
from oarlock.op.indexing import gather
from oarlock.op.reduction import mean, reduce_sum
from oarlock.registry.creator import block_for, require_type
from oarlock.registry.range_check import require_count

__all__ = ["embedding", "embedding_bag"]


def embedding(
    ids: Var,
    size: tuple[int, int],
    *,
    dtype: DType | str = DType.FLOAT32,
    initializer: Rule | None = None,
    weight: Given | None = None,
    padding_index: int | None = None,
    max_norm: float | None = None,
    sparse: bool = False,
    params: Sequence[str] | None = None,
    shard: Literal["columns", "rows"] | None = None,
    name: str | None = None,
) -> Var:
    """A row of a trained table for each id: int64[*b] -> float[*b d], where `size` is (v, d), how many rows and how long.

    Parameter `<name>.w` [v, d] of `dtype`, normal of variance 1 unless `initializer` says otherwise; or `params` says
    what it is called, and `weight` takes `ParameterOptions`. Layers that call it alike share it. An id that is not one of 0 to v - 1 makes
    the run raise KernelError. The id `padding_index` gives zeros, and no gradient. A row longer than `max_norm` comes out shortened to it.
    `shard` says along which axis workers divide the table, as in `fc`: by "rows", each looks up the ids that it has, and the workers add up
    what they find; by "columns", each has some columns of every row. With `sparse`, optimizers are given the gradient as rows, where
    nothing but lookups reads the table: see `RowGradient`.
    Raises ArgumentError where `size` is not two numbers, or `params` not one name; DTypeError for ids that are not int64
    and for a dtype that is no float; ShapeError for a shared parameter of another shape.

        y = ol.layer.embedding(ids, (100, 16), padding_index=0)
    """
    ids = require_type(ids, "embedding: ids")
    if ids.dtype is not DType.INT64:
        raise DTypeError(
            f"embedding: ids are int64, not {ids.dtype}",
            location=here(),
            given=[ids.describe()],
            hint='ol.op.cast(x, dtype="int64") makes them so',
        )
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise ArgumentError(
            f"embedding: size is two numbers, rows and their length, not {size!r:.60}", location=here(), hint="size=(10_000, 64)"
        )
    shape = (require_count("embedding: the number of rows", size[0]), require_count("embedding: the length of a row", size[1]))
    kind = DType.of(dtype)
    axis = sharded_axis("embedding", shard)
    if not kind.is_floating:
        raise DTypeError(f"embedding: dtype is a float, not {kind}", location=here())
    program = ids.block.program
    name = layer_name(program, name, "embedding")
    names = [f"{name}.w"] if params is None else [require_user_name(item) for item in params]
    if len(names) != 1:
        raise ArgumentError(f"embedding: params names 1 parameter, not {len(names)}", location=here(), hint='params=["words"]')
    padding_index = as_python(padding_index)  # type: ignore[assignment]
    if padding_index is not None and not (isinstance(padding_index, int) and 0 <= padding_index < shape[0]):
        raise ArgumentError(f"embedding: padding_index is an id from 0 to {shape[0] - 1}, not {padding_index!r:.60}", location=here())
    longest = as_python(max_norm)
    if longest is not None and not (isinstance(longest, int | float) and longest > 0.0):
        raise ArgumentError(f"embedding: max_norm is a number above 0, not {max_norm!r:.60}", location=here())
    with undone_on_error(program):
        w = new_parameter(ids.block, names[0], shape, kind, initializer or normal(), weight, shard=axis)
        result = output_name(program, name)
        if padding_index is None and max_norm is None:
            return gather(w, ids, sparse=sparse, name=result)
        rows = gather(w, ids, sparse=sparse)
        if max_norm is not None:
            rows = _shortened(rows, max_norm, name=result if padding_index is None else None)
        if padding_index is None:
            return rows
        padding = unsqueeze(equal(ids, full_like(ids, value=float(padding_index), dtype=DType.INT64)), -1)
        return where(padding, constant_like(0.0, rows), rows, name=result)


def _shortened(rows: Var, most: float, *, name: str | None) -> Var:
    """Rows that are longer than `most`, shortened to that."""
    lengths = vector_norm(rows, axis=-1, keepdim=True)
    longest = constant_like(float(most), rows)
    return multiply(rows, where(greater(lengths, longest), divide(longest, lengths), constant_like(1.0, rows)), name=name)


def embedding_bag(
    ids: Var,
    size: tuple[int, int],
    weights: Var | None = None,
    *,
    mode: str = "mean",
    dtype: DType | str = DType.FLOAT32,
    weight: Given | None = None,
    padding_index: int | None = None,
    max_norm: float | None = None,
    sparse: bool = False,
    name: str | None = None,
) -> Var:
    """The mean of the rows of a trained table, or their "sum" or "max", over each bag of ids: int64[*b k] -> float[*b d].

    A bag is the last axis of the ids. Ragged ids of one dimension, int64[t] of n sequences, have a bag in each sequence: float[n d]. Ragged
    ids of more dimensions, int64[t k], have one in each element, and the result is ragged like them: float[t d]. With `weights`, of the
    shape of `ids`, the sum has each row as many times as its weight says. The id `padding_index` does not count; a bag of nothing else is
    zeros. All else is as in `embedding`. Raises ArgumentError, DTypeError and ShapeError.

        y = ol.layer.embedding_bag(ids, (100, 16), mode="sum")
    """
    ids = require_type(ids, "embedding_bag: ids")
    program = ids.block.program
    ragged = len(ids.shape or ()) == 1 and block_for([ids], "embedding_bag").splits_of(ids.shape[0]) is not None  # type: ignore[index]
    if mode not in ("mean", "sum", "max") or (weights is not None and mode != "sum"):
        raise ArgumentError(
            f"embedding_bag: mode is 'mean', 'sum' or 'max', and 'sum' where there are weights, not {mode!r:.60}", location=here()
        )
    if ragged and padding_index is not None:
        raise ArgumentError("embedding_bag: a ragged bag has no padding", location=here(), given=[ids.describe()])
    if not ids.shape:
        raise ShapeError("embedding_bag: ids are int64[*b k], or ragged", location=here(), given=[ids.describe()])
    with undone_on_error(program):
        name = layer_name(program, name, "embedding_bag")
        options = {"padding_index": padding_index, "max_norm": max_norm, "sparse": sparse}
        rows = embedding(ids, size, dtype=dtype, weight=weight, name=name, **options)  # type: ignore[arg-type]
        if weights is not None:
            rows = multiply(rows, unsqueeze(require_type(weights, "embedding_bag: weights"), -1))
        if ragged:
            return sequence_pool(rows, mode)
        if mode == "sum" or (mode == "mean" and padding_index is None):
            return (reduce_sum if mode == "sum" else mean)(rows, axis=-2)
        if padding_index is None:
            return amax(rows, axis=-2)
        counts = unsqueeze(not_equal(ids, full_like(ids, value=float(padding_index), dtype=DType.INT64)), -1)
        total = reduce_sum(cast(counts, dtype=rows.dtype), axis=-2)
        one, zero = constant_like(1.0, rows), constant_like(0.0, rows)
        if mode == "mean":
            return divide(reduce_sum(rows, axis=-2), clip(total, one))
        return where(greater(total, zero), amax(where(counts, rows, constant_like(-math.inf, rows)), axis=-2), zero)
