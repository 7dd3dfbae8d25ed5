"""Compositions refuse what does not fit when they are called, name it, and leave nothing behind."""

from itertools import count

import pytest
import torch
from tolerances import VALUES

import oarlock as ol

op = ol.op
WINDOWS = ("hann", "hamming", "blackman")
_NUMBERS = count()


def var(*shape, dtype="float32"):
    return ol.layer.data(f"x{next(_NUMBERS)}", list(shape), dtype, batch=None)


def places(*shape):
    return var(*shape, dtype="int64")


REFUSED = [
    (lambda: op.take(3, 4), "take: x must be a variable of a program, not int 3"),
    (lambda: op.unbind(var(2), dim=0), "unbind: no argument dim"),
    (lambda: op.index_select(var(2)), "index_select: index and axis are missing"),
    (lambda: op.hstack(), "hstack: no variable is given"),
    (lambda: op.hstack(var(2, 3), var(3, 3)), "concat: sizes on axes other than 1 differ: [2, 3] and [3, 3]"),
    (lambda: op.index_select(var(2, 3), places(4), axis=2), "index_select: axis 2 is not an axis of x, which has 2 dimensions"),
    (lambda: op.index_select(var(2, 3), places(4, 1), axis=0), "index_select: indices must be a row"),
    (lambda: op.index_add(var(2, 3), places(4), var(4, 2), axis=0), "index_add: values are [4, 2], but must be [4, 3]"),
    (lambda: op.scatter_reduce(var(2), places(2), var(2), axis=0, reduction="max"), "scatter_reduce: no reduction is called 'max'"),
    (lambda: op.masked_fill(var(2, 3), var(2), 0.0), "masked_fill: the mask must be bool, not float32"),
    (lambda: op.masked_fill(var(2, 3), var(2, dtype="bool"), 0.0), "masked_fill: [2] and [2, 3] do not broadcast"),
    (lambda: op.select_scatter(var(2, 3), var(2), axis=1, index=3), "select_scatter: index 3 is out of range for an axis of the size 3"),
    (lambda: op.slice_scatter(var(4), var(3), stop=2), "slice_scatter: values do not fill the slice, [2]"),
    (lambda: op.diagonal_scatter(var(3, 3), var(3), offset=1), "diagonal_scatter: values do not fill the diagonal, [2]"),
    (lambda: op.diag(var(2, 2, 2)), "diag: x must be a row or a matrix, but has 3 axes"),
    (lambda: op.diag_embed(var(2), axes=(0, 0)), "diag_embed: axes (0, 0) are not two of the 2 axes of the result"),
    (lambda: op.unbind(var("n", 2)), "unbind: axis 0 has the size n, which must be known"),
    (lambda: op.chunk(var(4), 0), "chunk: chunks must be at least 1, not 0"),
    (lambda: op.hsplit(var(3, 4), 3), "hsplit: axis 1 has the size 4, which is not 3 equal parts"),
    (lambda: op.vsplit(var(3), 3), "vsplit: x has 1 axes, but 2 are needed"),
    (lambda: op.moveaxis(var(2, 3), (0, 0), (0, 1)), "moveaxis: axes (0, 0) contain the same axis twice"),
    (lambda: op.rot90(var(2, 3), axes=(0, 2)), "rot90: axis 2 is not an axis of x, which has 2 dimensions"),
    (lambda: op.unflatten(var(2, 6), axis=1, sizes=(4, -1)), "unflatten: axis 1 has the size 6, which is not the product of [4, -1]"),
    (lambda: op.pixel_shuffle(var(1, 3, 2, 2), factor=2), "pixel_shuffle: 3 is not a multiple of 4"),
    (lambda: op.channel_shuffle(var(1, 3, 2), groups=2), "channel_shuffle: 3 is not a multiple of 2"),
    (lambda: op.broadcast_tensors(var(2), var(3)), "broadcast_tensors: [2] and [3] do not broadcast: 2 and 3 are different sizes"),
    (lambda: op.meshgrid(var(2), indexing="yx"), "meshgrid: indexing is 'ij' or 'xy', not 'yx'"),
    (lambda: op.combinations(var("n")), "combinations of 2 need one axis of known size"),
    (lambda: op.tensordot(var(2, 3), var(2, 3), axes=3), "tensordot: the inputs do not both have 3 axes"),
    (lambda: op.outer(var(2, 3), var(2)), "outer: both inputs must have one axis"),
    (lambda: op.cross(var(4, 2), var(4, 2)), "cross: axis -1 must have the size 3, not 2"),
    (lambda: op.quantile(var(4), 1.5), "quantile: q must be from 0 to 1, not 1.5"),
    (lambda: op.quantile(var(4), 0.5, interpolation="cubic"), "quantile: no interpolation is called 'cubic'"),
    (lambda: op.cov(var(2, 3), weights=var(2)), "cov: there must be one weight for each observation"),
    (lambda: op.cov(var(2, 3), frequencies=var(3)), "cov: frequencies must be integers, not float32"),
    (lambda: op.tensor_split(var(3), "abc"), "tensor_split: sections must be a number or a list of indices, not"),
    (lambda: op.max_unpool(var(1, 1, 2), places(1, 1, 3), size=(4,)), "max_unpool: index must have the shape of x"),
    (lambda: op.max_unpool(var(1, 1, 2), places(1, 1, 2), size=(4, 4)), "max_unpool: size must have 1 numbers of at least 0, not (4, 4)"),
    (lambda: op.max_pool_with_indices(var(2, 3), size=(2,)), "max_pool_with_indices: x must have images, channels, and one to three axes"),
    (lambda: op.lp_pool(var(1, 1, 4), order=0.0, size=(2,)), "lp_pool: order must be above 0, not 0.0"),
    (lambda: op.pdist(var("n", 2)), "pdist: x must have a known number of rows"),
    (lambda: op.cdist(var(2), var(2)), "cdist: both inputs must have rows"),
    (lambda: op.linspace(0.0, 1.0, -1), "linspace: count must be at least 0, not -1"),
    (lambda: op.hann_window(-1), "hann_window: count must be at least 0, not -1"),
    (lambda: var(3)[["a"]], "x[...]: a list must contain integers, not"),
    (lambda: op.diff(var(3), n=-1), "diff: n must be at least 0, not -1"),
    (lambda: op.multigammaln(var(3), dimensions=0), "multigammaln: dimensions must be at least 1, not 0"),
    (lambda: op.isclose(var(3), var(3), rtol=-1.0), "isclose: rtol and atol must be at least 0, not -1.0 and 1e-08"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), [pytest.param(*each, id=each[1].partition(":")[0]) for each in REFUSED])
def test_what_does_not_fit_is_refused_when_it_is_written(call, message):
    with ol.Program() as program, pytest.raises(ol.OarlockError) as refusal:
        call()
    assert refusal.value.message.startswith(message), refusal.value.message
    assert refusal.value.location.line > 0
    assert program.main.ops == []


def test_ranges_and_windows_are_those_of_pytorch():
    with ol.Program() as program:
        ours = [
            op.linspace(-1.0, 2.5, 7, dtype="float64"),
            op.linspace(3.0, 1.0, 4),
            op.linspace(3.0, 1.0, 1),
            op.logspace(0.0, 3.0, 4, base=2.0, dtype="float64"),
            *(
                window(8, periodic=periodic)
                for window in (op.hann_window, op.hamming_window, op.blackman_window)
                for periodic in (True, False)
            ),
        ]
    theirs = [
        torch.linspace(-1.0, 2.5, 7, dtype=torch.float64),
        torch.linspace(3.0, 1.0, 4),
        torch.linspace(3.0, 1.0, 1),
        torch.logspace(0.0, 3.0, 4, base=2.0, dtype=torch.float64),
        *(getattr(torch, f"{name}_window")(8, periodic) for name in WINDOWS for periodic in (True, False)),
    ]
    found = ol.Executor().run(program, {}, ours, scope=ol.Scope(), return_numpy=False)
    for one, other in zip(found, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=VALUES[one.dtype][0], atol=VALUES[one.dtype][1])


def test_places_that_are_none_are_refused_when_the_program_runs():
    for call in (
        lambda x, i: op.take(x, i),
        lambda x, i: op.index_select(x, i, axis=0),
        lambda x, i: op.index_fill(x, i, 0.0, axis=0),
        lambda x, i: op.masked_scatter(op.tile(x, repeats=(3, 1)), op.equal(op.full(shape=(6, 2), value=0.0), 0.0), x),
    ):
        with ol.Program() as program:
            y = call(var(2, 2), places(1))
        feed = {var.name: [[1.0, 2.0], [3.0, 4.0]] if var.dtype.is_floating else [4] for var in program.main.inputs}
        with pytest.raises(ol.KernelError, match="is out of range for axis 0 of size"):
            ol.Executor().run(program, feed, [y], scope=ol.Scope())
