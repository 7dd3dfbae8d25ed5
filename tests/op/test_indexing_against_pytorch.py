"""Indexing, rearranging, sorting and Einstein's sums against PyTorch's functions and its autograd, in float64."""

import pytest
import torch
from op.against_pytorch import Row, require_same

import oarlock as ol

op = ol.op


def ids(*values: object) -> torch.Tensor:
    return torch.tensor(values)


MASK = torch.tensor([[True, False, True], [False, False, True]])
SPREAD = torch.tensor([[2, 0, 0, 2], [1, 1, 1, 1], [0, 2, 1, 0]])


def scattered(reduction: str) -> Row:
    theirs = {"add": "sum", "multiply": "prod", "maximum": "amax", "minimum": "amin"}[reduction]
    return (
        lambda x, i, v: op.scatter_along_axis(x, i, v, axis=1, reduction=reduction),
        lambda x, i, v: torch.scatter_reduce(x, 1, i, v, theirs),
        [(3, 5), SPREAD, (3, 4)],
    )


ROWS: dict[str, Row] = {
    "gather": (lambda x, i: op.take_along_axis(x, i, axis=1), lambda x, i: torch.gather(x, 1, i), [(3, 5), SPREAD]),
    "gather, fewer rows": (lambda x, i: op.take_along_axis(x, i, axis=-1), lambda x, i: torch.gather(x, -1, i), [(4, 5), SPREAD]),
    "scatter": (
        lambda x, i, v: op.scatter_along_axis(x, i, v, axis=0),
        lambda x, i, v: torch.scatter(x, 0, i, v),
        [(3, 4), ids([2, 0, 1, 0], [1, 2, 0, 2]), (2, 4)],
    ),
    **{f"scatter_reduce, {name}": scattered(name) for name in ("add", "multiply", "maximum", "minimum")},
    "index": (lambda x, i: op.index(x, [i], axes=(1,)), lambda x, i: x[:, i], [(3, 4, 2), ids([1, -1], [0, 3])]),
    "index, two": (lambda x, i, j: op.index(x, [i, j], axes=(0, 1)), lambda x, i, j: x[i, j], [(3, 4, 2), ids(2, 0, 2), ids([1], [-2])]),
    "index, apart": (lambda x, i, j: op.index(x, [i, j], axes=(0, 2)), lambda x, i, j: x[i, :, j], [(3, 4, 2), ids(2, 0, 2), ids(1, 0, 1)]),
    "index_put": (
        lambda x, v, i, j: op.index_put(x, v, [i, j], axes=(0, 1)),
        lambda x, v, i, j: x.index_put((i, j), v),
        [(3, 4, 2), (3, 2), ids(2, 0, 1), ids(1, -1, 0)],
    ),
    "index_put, one row for all": (
        lambda x, v, i: op.index_put(x, v, [i], axes=(0,), accumulate=True),
        lambda x, v, i: x.index_put((i,), v, accumulate=True),
        [(3, 4), (4,), ids(2, 0, 2)],
    ),
    "x[1]": (lambda x: x[1], lambda x: x[1], [(3, 4)]),
    "x[-2, ..., 0]": (lambda x: x[-2, ..., 0], lambda x: x[-2, ..., 0], [(3, 4, 2)]),
    "x[:, 1:-1]": (lambda x: x[:, 1:-1], lambda x: x[:, 1:-1], [(3, 4)]),
    "x[::2, -3:]": (lambda x: x[::2, -3:], lambda x: x[::2, -3:], [(5, 4)]),
    "x[None, :, None]": (lambda x: x[None, :, None], lambda x: x[None, :, None], [(3, 4)]),
    "x[i, 1:]": (lambda x, i: x[i, 1:], lambda x, i: x[i, 1:], [(3, 4), ids(0, -1)]),
    "x[:, i, j]": (lambda x, i, j: x[:, i, j], lambda x, i, j: x[:, i, j], [(3, 4, 5), ids([0], [-1]), ids(1, 2)]),
    "x[0, :, i]": (lambda x, i: x[0, :, i], lambda x, i: x[0, :, i], [(3, 4, 5), ids(1, 2)]),
    "x[mask]": (lambda x, m: x[m], lambda x, m: x[m], [(2, 3, 4), MASK]),
    "x[mask of rows, 1]": (lambda x, m: x[m, 1], lambda x, m: x[m, 1], [(2, 3), torch.tensor([False, True])]),
    "gather_nd": (op.gather_nd, lambda x, i: x[i[..., 0], i[..., 1]], [(3, 4, 2), ids([[0, 1], [2, -1]], [[1, 1], [0, 0]])]),
    "gather_nd, batch": (
        lambda x, i: op.gather_nd(x, i, batch=1),
        lambda x, i: torch.stack([row[at[:, 0]] for row, at in zip(x, i, strict=True)]),
        [(2, 4, 3), ids([[0], [3]], [[1], [1]])],
    ),
    "scatter_nd": (op.scatter_nd, lambda x, i, v: x.index_put((i[:, 0], i[:, 1]), v), [(3, 4, 2), ids([0, 1], [2, -1]), (2, 2)]),
    "flip": (lambda x: op.flip(x, axes=(0, -1)), lambda x: x.flip(0, -1), [(2, 3, 4)]),
    "roll": (lambda x: op.roll(x, shifts=(1, -5), axes=(0, 2)), lambda x: x.roll((1, -5), (0, 2)), [(2, 3, 4)]),
    "tile": (lambda x: op.tile(x, repeats=(2, 1, 3)), lambda x: x.tile(2, 1, 3), [(2, 3)]),
    "repeat_interleave": (lambda x: op.repeat_interleave(x, repeats=3, axis=1), lambda x: x.repeat_interleave(3, 1), [(2, 3, 2)]),
    "unfold": (lambda x: op.windows(x, axis=1, size=3, step=2), lambda x: x.unfold(1, 3, 2), [(2, 8, 3)]),
    "diagonal": (lambda x: op.diagonal(x, offset=1, axes=(0, 2)), lambda x: x.diagonal(1, 0, 2), [(3, 2, 3)]),
    "tril": (lambda x: op.tril(x, diagonal=-1), lambda x: x.tril(-1), [(2, 3, 4)]),
    "triu": (lambda x: op.triu(x, diagonal=1), lambda x: x.triu(1), [(3, 4)]),
    "sort": (lambda x: op.sort(x, axis=1, descending=True), lambda x: torch.sort(x, 1, True), [(3, 5)]),
    "argsort": (lambda x: op.argsort(x, axis=0), lambda x: torch.argsort(x, 0), [(3, 5)]),
    "topk": (lambda x: op.top_k(x, 2, axis=0), lambda x: torch.topk(x, 2, 0), [(4, 3)]),
    "topk, smallest": (
        lambda x: op.top_k(x, 2, axis=-1, largest=False),
        lambda x: torch.topk(x, 2, -1, largest=False),
        [(4, 3)],
    ),
    "searchsorted": (
        lambda s, x: op.searchsorted(op.sort(s)[0], x, right=True),
        lambda s, x: torch.searchsorted(s.sort()[0], x, right=True),
        [(2, 5), (2, 3)],
    ),
    "unique": (op.unique, lambda x: torch.unique(x, return_inverse=True, return_counts=True), [SPREAD]),
    "bincount": (lambda x: op.bincount(x, least=5), lambda x: torch.bincount(x.flatten(), minlength=5), [SPREAD]),
    "argwhere": (op.nonzero, torch.argwhere, [MASK]),
    "index_select": (lambda x, i: op.gather(x, i, axis=1), lambda x, i: x.index_select(1, i), [(3, 4, 2), ids(2, 0, 2)]),
    "eye": (
        lambda x: op.eye(x, rows=x.shape[0], columns=x.shape[1], offset=1, dtype="float64") * x,
        lambda x: torch.ones(3, 4, dtype=torch.float64).triu(1).tril(1) * x,
        [(3, 4)],
    ),
    "einsum, matrices": (lambda x, y: op.einsum("ij,jk", x, y), lambda x, y: torch.einsum("ij,jk", x, y), [(2, 3), (3, 4)]),
    "einsum, heads": (
        lambda q, k: op.einsum("bthd,bshd->bhts", q, k),
        lambda q, k: torch.einsum("bthd,bshd->bhts", q, k),
        [(2, 3, 4, 5), (2, 6, 4, 5)],
    ),
    "einsum, broadcast": (
        lambda x, y: op.einsum("...ij,...jk->...ik", x, y),
        lambda x, y: torch.einsum("...ij,...jk->...ik", x, y),
        [(2, 1, 3, 4), (5, 4, 6)],
    ),
    "einsum, three": (
        lambda x, y, z: op.einsum("bn,anm,bm->ba", x, y, z),
        lambda x, y, z: torch.einsum("bn,anm,bm->ba", x, y, z),
        [(2, 3), (5, 3, 4), (2, 4)],
    ),
    "einsum, diagonal": (lambda x: op.einsum("iij->j", x), lambda x: torch.einsum("iij->j", x), [(3, 3, 4)]),
    "einsum, outer": (lambda x, y: op.einsum("i,j->ji", x, y), lambda x, y: torch.einsum("i,j->ji", x, y), [(3,), (4,)]),
    "einsum, number": (lambda x, y: op.einsum("ij,ij->", x, y), lambda x, y: torch.einsum("ij,ij->", x, y), [(3, 4), (3, 4)]),
}


@pytest.mark.parametrize("name", ROWS)
def test_values_and_gradients_are_those_of_pytorch(name: str):
    require_same(ROWS[name], symbols="_nd" not in name)  # how many numbers a row has must be known


@pytest.mark.parametrize("key", [slice(None, None, -1), slice(-1, None, -2), slice(1, 100), slice(5, 2), slice(-100, 2), slice(3, 0, -1)])
def test_slices_of_a_known_size_are_those_of_python(key: slice):
    x = torch.arange(8.0, dtype=torch.float64).reshape(4, 2)
    require_same((lambda x: x[key], lambda x: x[torch.arange(4)[list(range(*key.indices(4)))]], [x]), symbols=False)


def test_what_is_no_index_is_refused():
    with ol.Program() as program:
        x = ol.layer.data("x", [4])
        for key, message in {
            4: "index 4 is out of range for an axis of the size 4",
            (0, 0, 0): "3 axes are indexed, but",
            (..., ...): "... occurs twice, but",
        }.items():
            with pytest.raises(ol.ShapeError) as refused:
                x[(slice(None), key) if isinstance(key, int) else key]
            assert message in refused.value.message
        for key in ("a", 1.0, True, {0: 1}):
            with pytest.raises(ol.ArgumentError, match="takes numbers, slices"):
                x[key]
        for key in ([0, True], ["a"], [0.5], [[0, 1], [2, 3]]):
            with pytest.raises(ol.ArgumentError, match="a list must contain integers, not "):
                x[key]
        with pytest.raises(TypeError, match="not iterable"):
            list(x)
    assert program.main.ops == []


def test_no_equation_is_refused():
    with ol.Program() as program:
        x = ol.layer.data("x", [4])
        for equation in ("ij,jk->ik", "i1->i", "ij->ijj", "ij->k"):
            with pytest.raises(ol.ArgumentError):
                op.einsum(equation, x)
        for equation in ("i->i", "ijk->i", "i...jk->i"):
            with pytest.raises(ol.ShapeError):
                op.einsum(equation, x)
    assert program.main.ops == []


def test_a_factor_of_zero_has_the_product_of_the_others_for_gradient():
    index, values = ids([0, 0, 1, 1, 2]), torch.tensor([[0.0, 3.0, 0.0, 0.0, 2.0]], dtype=torch.float64)

    def theirs(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[0, 0] * v[0, 0] * v[0, 1], x[0, 1] * v[0, 2] * v[0, 3], x[0, 2] * v[0, 4]])[None]

    def ours(x: ol.Var, v: ol.Var) -> ol.Var:
        i = op.cast(op.full(shape=(1, 5), value=0.0, dtype="float64"), dtype="int64")
        i = op.add(i, op.cast(op.floor_divide(op.arange([], stop=(5,)), op.full(shape=(), value=2.0, dtype="int64")), dtype="int64"))
        return op.scatter_along_axis(x, i, v, axis=1, reduction="multiply") + 1.0

    assert index.tolist() == [[0, 0, 1, 1, 2]]
    require_same((ours, lambda x, v: theirs(x, v) + 1.0, [torch.tensor([[2.0, 5.0, 0.0]], dtype=torch.float64), values]), symbols=False)
