"""Special functions, order, places, shapes and products beside the function of PyTorch that each is."""

import torch
from op.pytorch_twins import Twin, named, twin
from torch.nn import functional as F

import oarlock as ol

__all__ = ["BREADTH", "WHOLE"]

op = ol.op
_HOLES = [[1.0, float("nan"), 3.0, 0.5], [2.0, 0.25, -1.0, 4.0]]
_MASK = [[True, False, True], [False, False, True]]


def _of_several(name: str, theirs, *inputs, **attributes: object) -> Twin:
    """A function that gives several variables, which are joined into one row, each weighed otherwise."""
    called = getattr(op, name.partition(" ")[0])

    def ours(*values: ol.Var) -> ol.Var:
        parts = [op.reshape(each, shape=(-1,)) * (number + 1.0) for number, each in enumerate(called(*values, **attributes))]
        return op.concat(parts)

    def joined(*values: torch.Tensor) -> torch.Tensor:
        return torch.cat([each.reshape(-1) * (number + 1.0) for number, each in enumerate(theirs(*values))])

    return Twin(name, ours, joined, inputs)


SPECIAL = [
    *named("erfc deg2rad rad2deg sinc frac i0"),
    *named("lgamma digamma", low=0.5, high=3.0),
    *(Twin(name, getattr(op, name), getattr(torch.special, name)) for name in ("i0e", "i1", "i1e", "erfcx", "ndtr", "log_ndtr")),
    twin("erfinv", torch.erfinv, low=-0.9, high=0.9),
    twin("ndtri", torch.special.ndtri, low=0.1, high=0.9),
    twin("entr", torch.special.entr, low=0.2, high=2.0),
    twin("polygamma", lambda x: torch.polygamma(2, x), low=0.5, high=3.0, order=2),
    twin("multigammaln", lambda x: torch.mvlgamma(x, 3), low=1.5, high=4.0, dimensions=3),
    twin("logit", lambda x: torch.logit(x, 0.1), low=0.2, high=0.8, epsilon=0.1, bends=(0.05, 0.95)),
    twin("nan_to_num", lambda x: torch.nan_to_num(x, 0.5, neginf=-2.0), [1.0, float("nan"), torch.inf, -torch.inf], nan=0.5, neginf=-2.0),
    twin("around", lambda x: torch.round(x, decimals=1), decimals=1),
    twin("hypot", torch.hypot, (3, 4), (4,)),
    twin("copysign", torch.copysign, (3, 4), [0.5, -0.5, 0.0, -0.0]),
    twin("logaddexp", torch.logaddexp, (3, 4), (4,)),
    twin("logaddexp2", torch.logaddexp2, (3, 4), (3, 1)),
    twin("xlogy", torch.xlogy, [0.0, 1.5, 2.0, 0.5], [0.0, 0.5, 2.0, 1.0], orders=1),
    twin("xlog1py", torch.special.xlog1py, [0.0, 1.5, 2.0], [-1.0, 0.5, 2.0], orders=1),
    twin("fmax", torch.fmax, [1.0, float("nan"), 2.0, 3.0], [2.0, 1.0, float("nan"), 3.0]),
    twin("fmin", torch.fmin, [1.0, float("nan"), 2.0, 3.0], [2.0, 1.0, float("nan"), 3.0]),
    twin("heaviside", lambda x, y: torch.heaviside(x.detach(), y.detach()), [-1.0, 0.0, 2.0], [0.5, 0.5, 0.5]),
    twin("ldexp", torch.ldexp, (3, 4), (4,)),
    twin("addcdiv", lambda x, y, z: torch.addcdiv(x, y, z, value=0.5), (3, 4), (4,), (3, 1), low=0.5, value=0.5),
    Twin("clip by variables", op.clip, torch.clamp, ([-1.0, 0.0, 0.5, 2.0, 0.25], [-0.5, 0.5, 0.5, 0.0, 1.0], [1.0, 1.0, 0.5, 1.0, 0.0])),
    Twin("clip from below", lambda x, y: op.clip(x, y), lambda x, y: torch.clamp(x, min=y), ((3, 4), (4,))),
    Twin("clip from above", lambda x, y: op.clip(x, upper=y), lambda x, y: torch.clamp(x, max=y), ((3, 4), (4,))),
]

ORDER = [
    Twin("cummax", lambda x: op.cummax(x, axis=1)[0], lambda x: torch.cummax(x, 1).values, ((2, 4),)),
    Twin("cummin", lambda x: op.cummin(x, axis=0)[0], lambda x: torch.cummin(x, 0).values, ((4, 2),)),
    Twin("median", lambda x: op.median(x, axis=1)[0], lambda x: torch.median(x, 1).values, (_HOLES,)),
    Twin("nanmedian", lambda x: op.nanmedian(x)[0], torch.nanmedian, (_HOLES,)),
    Twin("kthvalue", lambda x: op.kthvalue(x, k=2, axis=0, keepdim=True)[0], lambda x: torch.kthvalue(x, 2, 0, True).values, ((3, 4),)),
    Twin("mode", lambda x: op.mode(x)[0], lambda x: torch.mode(x).values, ([[1.0, 2.0, 2.0], [3.0, 1.0, 2.0]],)),
    twin("logcumsumexp", lambda x: torch.logcumsumexp(x, 1), (2, 4), axis=1),
    twin("nansum", lambda x: torch.nansum(x, 1), _HOLES, axis=1),
    twin("nanmean", lambda x: torch.nanmean(x, 0, True), _HOLES, axis=0, keepdim=True),
    *(
        twin(f"quantile {way}", lambda x, way=way: torch.quantile(x.double(), 0.3, 1, True, interpolation=way).to(x.dtype), (3, 5),
              q=0.3, axis=1, keepdim=True, interpolation=way)
        for way in ("linear", "lower", "higher", "midpoint", "nearest")
    ),
    twin("quantile of several", lambda x: torch.quantile(x.double(), torch.tensor([0.1, 1.0], dtype=torch.float64)).to(x.dtype),
         (3, 5), q=(0.1, 1.0)),
    twin("nanquantile", lambda x: torch.nanquantile(x.double(), 0.3, 1).to(x.dtype), _HOLES, q=0.3, axis=1),
    _of_several("aminmax", lambda x: torch.aminmax(x, dim=1), (3, 4), axis=1),
    twin("cov", torch.cov, (3, 5)),
    Twin("cov of weights", lambda x, w: op.cov(x, correction=0.0, weights=w), lambda x, w: torch.cov(x, correction=0, aweights=w),
         ((3, 4), [0.5, 1.0, 2.0, 0.25]), still=1),
    twin("corrcoef", torch.corrcoef, (3, 5)),
    Twin("diff", lambda x, y: op.diff(x, n=2, axis=0, prepend=y), lambda x, y: torch.diff(x, 2, 0, prepend=y), ((4, 3), (1, 3))),
    twin("trapezoid", torch.trapezoid, (3, 4), (4,)),
    twin("trapezoid of even steps", lambda x: torch.trapezoid(x, dx=0.5, dim=0), (3, 4), dx=0.5, axis=0),
    twin("cumulative_trapezoid", lambda y, x: torch.cumulative_trapezoid(y, x, dim=0), (4, 3), (4,), axis=0),
]  # fmt: skip

_PLACES = [2, 0, -1]
_TAKEN = [2, 0, 2]
PLACES = [
    twin("index_select", lambda x, i: torch.index_select(x, 1, i), (2, 3), _TAKEN, axis=1),
    Twin("index_add", lambda x, i, v: op.index_add(x, i, v, axis=1, alpha=0.5), lambda x, i, v: torch.index_add(x, 1, i, v, alpha=0.5),
         ((2, 3), _TAKEN, (2, 3))),
    Twin("index_copy", lambda x, i, v: op.index_copy(x, i, v, axis=-1),
         lambda x, i, v: torch.index_copy(x, 1, i, v), ((2, 3), [2, 0], (2, 2))),
    Twin("index_fill", lambda x, i, v: op.index_fill(x, i, v, axis=0),
         lambda x, i, v: torch.index_fill(x, 0, i, v), ((3, 2), [2, 0], ())),
    *(
        Twin(f"scatter_reduce {how} {own}",
             lambda x, i, v, how=how, own=own: op.scatter_reduce(x, i, v, axis=1, reduction=how, include_self=own),
             lambda x, i, v, how=how, own=own: torch.scatter_reduce(x, 1, i, v, how, include_self=own),
             ([[1.0, 2.0, 0.5], [2.5, -1.0, 2.0]], [[0, 1, 0], [2, 2, 0]], [[0.5, 3.0, 2.0], [1.0, 4.0, 3.0]]), orders=1)
        for how in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)
    ),
    Twin("index_reduce", lambda x, i, v: op.index_reduce(x, i, v, axis=0, reduction="amax"),
         lambda x, i, v: torch.index_reduce(x, 0, i, v, "amax"), ((3, 2), _TAKEN, (3, 2)), orders=1),
    twin("take", torch.take, (2, 3), [[5, 0], [-1, 2]]),
    twin("put", lambda x, i, v: torch.Tensor.put(x, i, v, True), (2, 3), [5, 0, 5], (3,), accumulate=True),
    Twin("masked_fill", lambda x, m, v: op.masked_fill(x, m, v), torch.masked_fill, ((2, 3), _MASK, ())),
    Twin("masked_scatter", op.masked_scatter, torch.masked_scatter, ((2, 3), _MASK, (4,))),
    Twin("select_scatter", lambda x, v: op.select_scatter(x, v, axis=1, index=-1),
         lambda x, v: torch.select_scatter(x, v, 1, -1), ((2, 3), (2,))),
    Twin("slice_scatter", lambda x, v: op.slice_scatter(x, v, axis=1, start=1),
         lambda x, v: torch.slice_scatter(x, v, 1, 1), ((2, 4), (2, 3))),
    Twin("slice_scatter of every other", lambda x, v: op.slice_scatter(x, v, axis=1, step=2),
         lambda x, v: torch.slice_scatter(x, v, 1, step=2), ((2, 4), (2, 2))),
    Twin("diagonal_scatter", lambda x, v: op.diagonal_scatter(x, v, offset=1),
         lambda x, v: torch.diagonal_scatter(x, v, 1), ((3, 4), (3,))),
    Twin("diagonal_scatter below", lambda x, v: op.diagonal_scatter(x, v, offset=-1, axes=(2, 0)),
         lambda x, v: torch.diagonal_scatter(x, v, -1, 2, 0), ((3, 2, 4), (2, 3))),
]  # fmt: skip

SHAPES = [
    twin("moveaxis", lambda x: torch.movedim(x, (0, 1), (2, 0)), (2, 3, 4), source=(0, 1), destination=(2, 0)),
    twin("swapaxes", lambda x: torch.swapaxes(x, 0, -1), (2, 3, 4), first=0, second=-1),
    *(twin(f"rot90 {k}", lambda x, k=k: torch.rot90(x, k, (1, 2)), (2, 3, 4), k=k, axes=(1, 2)) for k in (-1, 0, 1, 2)),
    twin("unflatten", lambda x: torch.unflatten(x, 1, (2, -1)), (2, 6), axis=1, sizes=(2, -1)),
    twin("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), (2, 8, 2, 3), factor=2),
    twin("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), (2, 2, 4, 6), factor=2),
    twin("channel_shuffle", lambda x: F.channel_shuffle(x, 2), (2, 4, 3), groups=2),
    twin("diag", lambda x: torch.diag(x, 1), (3,), offset=1),
    twin("diag of a matrix", lambda x: torch.diag(x, -1), (3, 4), offset=-1),
    twin("diagflat", torch.diagflat, (2, 2)),
    twin("diag_embed", lambda x: torch.diag_embed(x, -2, 0, 2), (2, 3), offset=-2, axes=(0, 2)),
    twin("trace", torch.trace, (3, 4)),
    twin("hstack", lambda *xs: torch.hstack(xs), (2, 3), (2, 1)),
    twin("hstack of rows", lambda *xs: torch.hstack(xs), (3,), ()),
    twin("vstack", lambda *xs: torch.vstack(xs), (2, 3), (3,)),
    twin("dstack", lambda *xs: torch.dstack(xs), (2, 3), (2, 3, 2)),
    twin("column_stack", lambda *xs: torch.column_stack(xs), (3,), (3, 2)),
    twin("block_diag", lambda *xs: torch.block_diag(*xs), (2, 3), (2,), (3, 1)),
    twin("cartesian_prod", torch.cartesian_prod, (2,), (3,)),
    twin("combinations", lambda x: torch.combinations(x, 2, True), (3,), with_replacement=True),
    Twin("max_unpool", lambda x: op.max_unpool(*op.max_pool_with_indices(x, size=(2, 2)), size=(4, 5)),
         lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(4, 5)), ((2, 2, 4, 5),)),
    Twin("adaptive_max_pool_with_indices", lambda x: op.max_unpool(*op.adaptive_max_pool_with_indices(x, size=(2,)), size=(7,)),
         lambda x: F.max_unpool1d(*F.adaptive_max_pool1d(x, 2, return_indices=True), 3, output_size=(7,)), ((2, 2, 7),)),
    twin("lp_pool", lambda x: F.lp_pool2d(x, 3.0, (2, 2), 1), (2, 2, 3, 3), low=0.2, order=3.0, size=(2, 2), stride=(1, 1)),
    Twin("x[lists]", lambda x: x[:, [2, 0, -1]], lambda x: x[:, [2, 0, -1]], ((2, 3, 2),)),
    _of_several("meshgrid", lambda *xs: torch.meshgrid(*xs, indexing="xy"), (2,), (3,), (), indexing="xy"),
    _of_several("broadcast_tensors", torch.broadcast_tensors, (2, 1), (3,)),
    _of_several("unbind", lambda x: torch.unbind(x, 1), (2, 3), axis=1),
    _of_several("chunk", lambda x: torch.chunk(x, 3, 1), (2, 7), chunks=3, axis=1),
    _of_several("tensor_split", lambda x: torch.tensor_split(x, 3, 1), (2, 7), sections=3, axis=1),
    _of_several("tensor_split at places", lambda x: torch.tensor_split(x, (1, 5, 3), 1), (2, 7), sections=(1, 5, 3), axis=1),
    _of_several("hsplit", lambda x: torch.hsplit(x, 2), (2, 4), sections=2),
    _of_several("vsplit", lambda x: torch.vsplit(x, [1]), (2, 4), sections=[1]),
    _of_several("dsplit", lambda x: torch.dsplit(x, 2), (1, 2, 4), sections=2),
    twin("unfold", lambda x: F.unfold(x, (2, 3), (1, 2), (1, 0), (2, 1)), (2, 2, 4, 5), size=(2, 3), dilation=(1, 2), padding=(1, 0),
          stride=(2, 1)),
    twin("fold", lambda x: F.fold(x, (3, 4), (2, 2)), (2, 8, 6), shape=(3, 4), size=(2, 2)),
]  # fmt: skip

PRODUCTS = [
    twin("cdist", lambda x, y: torch.cdist(x.double(), y.double(), 3.0).to(x.dtype), (2, 3, 2), (4, 2), order=3.0, orders=1),
    twin("pdist", lambda x: torch.pdist(x.double()).to(x.dtype), (4, 3), orders=1),
    twin("outer", torch.outer, (2,), (3,)),
    twin("inner", torch.inner, (2, 3), (4, 3)),
    twin("vecdot", lambda x, y: torch.linalg.vecdot(x, y, dim=0), (3, 2), (3, 1), axis=0),
    twin("tensordot", lambda x, y: torch.tensordot(x, y, 2), (2, 3, 4), (3, 4, 2)),
    twin("tensordot over axes", lambda x, y: torch.tensordot(x, y, ([0], [-1])), (2, 3), (4, 2), axes=([0], [-1])),
    twin("kron", torch.kron, (2, 3), (2,)),
    twin("cross", lambda x, y: torch.linalg.cross(x, y, dim=0), (3, 2), (3, 1), axis=0),
]

BREADTH = [*SPECIAL, *ORDER, *PLACES, *SHAPES, *PRODUCTS]

_NUMBERS, _OTHERS = [[7, 3, 0, 2], [1, 5, 4, 6]], [3, 1, 2, 5]
WHOLE = [
    twin("gcd", torch.gcd, _NUMBERS, _OTHERS),
    twin("lcm", torch.lcm, _NUMBERS, _OTHERS),
    twin("heaviside", torch.heaviside, _NUMBERS, _OTHERS),
    twin("isin", torch.isin, _NUMBERS, _OTHERS),
    twin("count_nonzero", lambda x: torch.count_nonzero(x, 1), _NUMBERS, axis=1),
    twin("signbit", torch.signbit, _NUMBERS),
    Twin("median", lambda x: op.median(x, axis=1)[0], lambda x: torch.median(x, 1).values, (_NUMBERS,)),
    Twin("places of cummax", lambda x: op.cummax(x, axis=1)[1], lambda x: torch.cummax(x, 1).indices, (_NUMBERS,)),
    twin("diff", torch.diff, _NUMBERS),
    twin("rot90", torch.rot90, _NUMBERS),
]
