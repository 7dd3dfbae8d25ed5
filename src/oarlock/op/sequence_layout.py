"""Layouts of variable-length sequences: joined and split, padded to one length and unpadded, selected."""

import torch

from oarlock.errors import ArgumentError
from oarlock.ir.shape_rules import require_at_most, require_equal_numbers, require_numbered, require_same
from oarlock.ir.size import Shape, add, multiply, sum_of
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.registry.signature import TensorType
from oarlock.registry.value_sizes import predict_size
from oarlock.tensor.sequences import (
    cells_of,
    join,
    joined_places,
    lengths_in,
    longest_of,
    require_counted,
    require_cut,
    require_splits,
    sequences_in,
)

__all__ = ["sequence_concat", "sequence_elements", "sequence_pad", "sequence_split", "sequence_splits", "sequence_unpad"]


def _require_pairs(xs: list[TensorType], splits: list[TensorType]) -> None:
    if not xs or len(xs) != len(splits):
        raise ArgumentError(f"{len(xs)} values and {len(splits)} splits are given; each value has its own row splits")
    for each in zip(xs, splits, strict=True):
        require_cut(*each)


@operator(
    "*xs: T[k_i ...d], *splits: int64[s] -> y: T[q ...d], y_splits: int64[s]",
    checks_values=True,
    cases=[
        Case(xs=([1, 2, 3], [4, 5, 6]), splits=([0, 2, 2, 3], [0, 1, 3, 3]), y=[1, 2, 4, 5, 6, 3], y_splits=[0, 3, 5, 6]),
        Case(xs=([[1.0, 2.0]],), splits=([0, 1],), y=[[1.0, 2.0]], y_splits=[0, 1]),
        Case(xs=([], []), splits=([0, 0], [0, 0]), y=[], y_splits=[0, 0]),
        Case(xs=([], []), splits=([0], [0]), y=[], y_splits=[0]),
        GradCheck(xs=[(3, 2), (4, 2)], splits=[[0, 2, 2, 3], [0, 0, 3, 4]]),
        GradCheck(xs=[(0,), (2,)], splits=[[0, 0], [0, 2]]),
        Rejects("1 values and 2 splits are given; each value has its own row splits", xs=[(3,)], splits=[[0, 3], [0, 1]]),
    ],
)
def sequence_concat(xs, splits):
    """Sequence i of the result is the concatenation of sequence i of all ``xs``; ``y_splits`` are its row splits."""
    return join(xs, splits), torch.stack(splits).sum(0)


@predict_size(sequence_concat, bounded=True)
def sequence_concat_joined(xs, splits):
    return sum(map(len, xs))


@sequence_concat.infer_shape
def sequence_concat_shapes(xs, splits):
    _require_pairs(xs, splits)
    return ("?joined", *xs[0].shape[1:]), splits[0].shape


sequence_concat.gradient_programs(xs=lambda xs_shape, splits, dy: sequence_split(dy, splits, xs_shape))


def _require_parts(shape: Shape, parts: list[TensorType], splits: list[TensorType]) -> None:
    _require_pairs(parts, splits)
    count = sum_of((item.shape or (0,))[0] for item in parts)  # type: ignore[index]
    require_equal_numbers(shape[0], count, "y has {} elements, but the sequences have {}", shape[0], count)


@operator(
    "y: T[q ...d], *splits: int64[s], *like: shape[k_i ...e] -> *xs: T[k_i ...d]",
    checks_values=True,
    cases=[
        Case(y=[1.0, 2.0, 4.0, 3.0], splits=([0, 2, 2, 3], [0, 1, 1, 1]), like=([0.0] * 3, [0.0]), xs=([1.0, 2.0, 3.0], [4.0])),
        Case(y=[], splits=([0], [0]), like=([], []), xs=([], [])),
        GradCheck(y=(7, 2), splits=[[0, 2, 2, 3], [0, 0, 3, 4]], like=[(3, 1), (4, 1)]),
        GradCheck(y=(2,), splits=[[0, 0], [0, 2]], like=[(0,), (2,)]),
        Rejects("2 values and 1 splits are given", y=(2,), splits=[[0, 1]], like=[(1,), (1,)]),
        Rejects("y has 3 elements, but the sequences have 2", y=(3,), splits=[[0, 2]], like=[(2,)]),
    ],
)
def sequence_split(y, splits, like):
    """Split the result of ``sequence_concat`` by the row splits of its parts; ``like`` has a row per element of each part."""
    places = joined_places(splits, [shape[0] for shape in like])
    _require_count(y.shape, places)
    return [y.index_select(0, place) for place in places]


@sequence_split.infer_shape
def sequence_split_shapes(y, splits, like):
    _require_parts(y.shape or (), like, splits)
    return [(item.shape[0], *y.shape[1:]) for item in like]


@sequence_split.gradient("y")
def sequence_split_dy(splits, dxs, y_shape):
    _require_count(y_shape, dxs)
    return join(dxs, splits)


@sequence_split_dy.check_shapes
def require_elements_of_parts(splits, dxs, y_shape):
    _require_parts(y_shape.shape, dxs, splits)


sequence_split_dy.gradient_programs(dxs=lambda splits, dxs_shape, ddy: sequence_split(ddy, splits, dxs_shape))


def _require_count(shape: torch.Size, parts: list[torch.Tensor]) -> None:
    count = sum(map(len, parts))
    require_same(shape[0], count, "y has {} elements, but the sequences have {}", shape[0], count)


# Padding


@operator(
    "x: T[t ...d], splits: int64[k] -> y: T[m w ...d]",
    checks_values=True,
    cases=[
        Case(x=[1.0, 2.0, 3.0], splits=[0, 2, 2, 3], y=[[1.0, 2.0], [0.0, 0.0], [3.0, 0.0]]),
        Case(x=[[1, 2], [3, 4]], splits=[0, 0, 2], fill=-1.0, y=[[[-1, -1], [-1, -1]], [[1, 2], [3, 4]]]),
        Case(x=[True], splits=[0, 1, 1], fill=1.0, y=[[True], [True]]),
        Case(x=[], splits=[0, 0], y=[[]]),
        GradCheck(x=(4, 2), splits=[0, 1, 1, 4], fill=0.5),
        GradCheck(x=(0, 2), splits=[0, 0]),
        Rejects("fill 0.5 cannot be represented in int64", x=[1], splits=[0, 1], fill=0.5),
    ],
)
def sequence_pad(x, splits, *, fill: float = 0.0):
    """Each sequence as a row, padded to the longest one with ``fill``."""
    row, column = cells_of(splits, len(x))
    y = x.new_full((len(splits) - 1, longest_of(splits), *x.shape[1:]), fill if x.is_floating_point() else int(fill))
    return y.index_put((row, column), x)


@predict_size(sequence_pad)
def sequence_pad_longest(x, splits, *, fill):
    require_splits(splits, len(x))
    return longest_of(splits)


@sequence_pad.infer_shape
def sequence_pad_shape(x, splits, *, fill):
    if not x.dtype.holds(fill):
        raise ArgumentError(f"fill {fill} cannot be represented in {x.dtype}")
    require_cut(x, splits)
    return (sequences_in(splits), "?longest", *x.shape[1:])


sequence_pad.gradient_programs(x=lambda x_shape, splits, dy: sequence_unpad(dy, splits, x_shape))


@operator(
    "padded: T[m w ...d], splits: int64[k], like: shape[t ...e] -> y: T[t ...d]",
    checks_values=True,
    cases=[
        Case(padded=[[1.0, 2.0], [7.0, 7.0], [3.0, 7.0]], splits=[0, 2, 2, 3], like=[0.0, 0.0, 0.0], y=[1.0, 2.0, 3.0]),
        Case(padded=[[[1, 2]]], splits=[0, 1], like=[[0]], y=[[1, 2]]),
        Case(padded=[[]], splits=[0, 0], like=[], y=[]),
        GradCheck(padded=(3, 3, 2), splits=[0, 1, 1, 4], like=(4,)),
        GradCheck(padded=(1, 3, 2), splits=[0, 2], like=(2,)),
        GradCheck(padded=(1, 0), splits=[0, 0], like=(0,)),
        Rejects("a sequence of 3 does not fit rows of 2", padded=(2, 2), splits=[0, 3, 3], like=(3,)),
        Rejects("3 elements do not fit 1 rows of 2", padded=(1, 2), splits=[0, 3], like=(3,)),
        Rejects("padded has 2 rows, but splits has 1 sequences", padded=(2, 3), splits=[0, 3], like=(3,)),
    ],
)
def sequence_unpad(padded, splits, like):
    """The elements of padded rows, without the padding; ``like`` has a row per element. The inverse of ``sequence_pad``."""
    row, column = cells_of(splits, like[0])
    _require_rows(padded.shape, splits)
    return padded[row, column]


@sequence_unpad.infer_shape
def sequence_unpad_shape(padded, splits, like):
    _require_padded(padded.shape, splits, like)
    return (like.shape[0], *padded.shape[2:])


@sequence_unpad.gradient("padded")
def sequence_unpad_dpadded(splits, dy, padded_shape):
    row, column = cells_of(splits, len(dy))
    _require_rows(padded_shape, splits)
    return dy.new_zeros(padded_shape).index_put((row, column), dy)


@sequence_unpad_dpadded.infer_shape
def sequence_unpad_dpadded_shape(splits, dy, padded_shape):
    _require_padded(padded_shape.shape, splits, dy)
    return padded_shape.shape


sequence_unpad_dpadded.gradient_programs(dy=lambda splits, ddpadded, dy_shape: sequence_unpad(ddpadded, splits, dy_shape))


def _require_padded(shape: Shape, splits: TensorType, elements: TensorType) -> None:
    require_cut(elements, splits)
    require_counted("padded", shape[0], sequences_in(splits))
    count = elements.shape[0]  # type: ignore[index]
    require_at_most(count, multiply(*shape[:2]), "{} elements do not fit {} rows of {}", count, shape[0], shape[1])


def _require_rows(shape: torch.Size, splits: torch.Tensor) -> None:
    require_counted("padded", shape[0], len(splits) - 1)
    if longest_of(splits) > shape[1]:
        raise ValueError(f"a sequence of {longest_of(splits)} does not fit rows of {shape[1]}")


@operator(
    "splits: int64[s], rows: int64[k], like: shape[n ...d] -> elements: int64[?], own_splits: int64[k+1]",
    checks_values=True,
    cases=[
        Case(splits=[0, 2, 2, 5], rows=[2, 0, 1], like=[0.0] * 3, elements=[2, 3, 4, 0, 1], own_splits=[0, 3, 5, 5]),
        Case(splits=[0, 2, 2, 5], rows=[], like=[[0]] * 3, elements=[], own_splits=[0]),
        Case(splits=[0], rows=[], like=[], elements=[], own_splits=[0]),
        Rejects("row 3 is out of range: there are 3", splits=[0, 1, 2, 3], rows=[3], like=[0.0] * 3),
        Rejects("like has 2 rows, but splits has 3 sequences", splits=[0, 1, 2, 3], rows=[1], like=(2,)),
        Rejects(
            "row splits of 1 elements must begin with 0, never decrease and end at 1, unlike [0, 2, 1]",
            splits=[0, 2, 1],
            rows=[0],
            like=(2,),
        ),
        Rejects("4611686018427387904 elements exceed int64", splits=[0, 2**62], rows=[0, 0, 0, 0], like=(1,)),
    ],
)
def sequence_elements(splits, rows, like):
    """The indices of all elements of the selected sequences, in order, for ``gather``, and the row splits of the selection.

    ``rows`` are row indices of ``like``, which has one row per sequence.
    """
    lengths, own_splits = _own_splits(splits, rows, like)
    total = int(own_splits[-1])
    first = splits[:-1].index_select(0, rows) - own_splits[:-1]
    own = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), lengths, output_size=total)
    return torch.arange(total, device=rows.device) + first.index_select(0, own), own_splits


def _own_splits(splits: torch.Tensor, rows: torch.Tensor, like: torch.Size) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the lengths of the selected sequences and their row splits. Raises ValueError for a row out of range."""
    count = len(splits) - 1
    require_counted("like", like[0], count)
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < count:
        wrong = int(rows.max()) if int(rows.max()) >= count else int(rows.min())
        raise ValueError(f"row {wrong} is out of range: there are {count}")
    lengths = lengths_in(splits, int(splits[-1])).index_select(0, rows)
    own_splits = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    if bool((own_splits[1:] < own_splits[:-1]).any()):  # the sum has wrapped around
        raise ValueError(f"{len(rows)} sequences of up to {int(lengths.max())} elements exceed int64")
    return lengths, own_splits


@predict_size(sequence_elements)
def sequence_elements_total(splits, rows, like):
    return int(_own_splits(splits, rows, like)[1][-1])


@sequence_elements.infer_shape
def sequence_elements_shapes(splits, rows, like):
    require_counted("like", like.shape[0], sequences_in(splits))
    require_numbered(rows.shape, like.shape[0], "like has 0 rows")
    return ("?elements",), (add(rows.shape[0], 1),)


@operator(
    "splits: int64[s], elements: int64[k] -> own_splits: int64[s]",
    cases=[
        Case(splits=[0, 2, 2, 5], elements=[1, 2, 4], own_splits=[0, 1, 1, 3]),
        Case(splits=[0, 2, 2, 5], elements=[], own_splits=[0, 0, 0, 0]),
        Case(splits=[0, 3], elements=[0, 1, 2], own_splits=[0, 3]),
        Case(splits=[0], elements=[], own_splits=[0]),
    ],
)
def sequence_splits(splits, elements):
    """The row splits of sequences that keep only some ``elements``, given as ascending indices."""
    return torch.searchsorted(elements.contiguous(), splits.contiguous())
