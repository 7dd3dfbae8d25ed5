"""Embeddings: rows of a trained table, looked up by id."""

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
    """Look up ids in a trained table: int64[*b] -> float[*b d]. `size` is (v, d), the number of rows and their length.

    The parameter is `<name>.w` [v, d] of `dtype`, normal with variance 1 by default (see `initializer`); `weight` accepts
    `ParameterOptions`. `params` gives its name, and layers that use the same name share it. An id outside 0 to v - 1 makes the run raise
    KernelError. The id `padding_index` yields zeros and has no gradient. A row whose norm exceeds `max_norm` is rescaled to it in the
    output.

    `shard` is the axis along which workers divide the table, as in `fc`: with "rows", each worker looks up the ids in its share, and the
    results are summed; with "columns", each has some columns of every row. With `sparse`, optimizers receive the gradient by rows, provided
    that only lookups read the table: see `RowGradient`.

    Raises ArgumentError if `size` is not two numbers or `params` not one name; DTypeError if the ids are not int64 or `dtype` is not a
    float; ShapeError if a shared parameter has another shape.

        y = ol.layer.embedding(ids, (100, 16), padding_index=0)
    """
    ids = require_type(ids, "embedding: ids")
    if ids.dtype is not DType.INT64:
        raise DTypeError(
            f"embedding: ids are int64, not {ids.dtype}",
            location=here(),
            given=[ids.describe()],
            hint='convert them: ol.op.cast(x, dtype="int64")',
        )
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise ArgumentError(
            f"embedding: size is the number of rows and their length, not {size!r:.60}", location=here(), hint="size=(10_000, 64)"
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
        raise ArgumentError(f"embedding: params must name 1 parameter, not {len(names)}", location=here(), hint='params=["words"]')
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
            rows = _limit_norms(rows, max_norm, name=result if padding_index is None else None)
        if padding_index is None:
            return rows
        padding = unsqueeze(equal(ids, full_like(ids, value=float(padding_index), dtype=DType.INT64)), -1)
        return where(padding, constant_like(0.0, rows), rows, name=result)


def _limit_norms(rows: Var, most: float, *, name: str | None) -> Var:
    """Rescale rows whose norm exceeds `most` to that norm."""
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
    """Reduce the embeddings of each bag of ids to their mean, "sum" or "max": int64[*b k] -> float[*b d].

    A bag is the last dimension of the ids. For ragged ids of one dimension, int64[t] of n sequences, each sequence is a bag: float[n d].
    For ragged ids of more dimensions, int64[t k], each element is a bag, and the result is ragged too: float[t d]. `weights`, of the shape
    of `ids`, multiply the rows and require ``mode="sum"``. The id `padding_index` is ignored; a bag that contains nothing else yields
    zeros. The other arguments are as in `embedding`. Raises ArgumentError, DTypeError and ShapeError.

        y = ol.layer.embedding_bag(ids, (100, 16), mode="sum")
    """
    ids = require_type(ids, "embedding_bag: ids")
    program = ids.block.program
    ragged = len(ids.shape or ()) == 1 and block_for([ids], "embedding_bag").splits_of(ids.shape[0]) is not None  # type: ignore[index]
    if mode not in ("mean", "sum", "max") or (weights is not None and mode != "sum"):
        raise ArgumentError(
            f"embedding_bag: mode must be 'mean', 'sum' or 'max', and 'sum' with weights, not {mode!r:.60}", location=here()
        )
    if ragged and padding_index is not None:
        raise ArgumentError(
            "embedding_bag: ragged bags have no padding, so padding_index cannot be used", location=here(), given=[ids.describe()]
        )
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
