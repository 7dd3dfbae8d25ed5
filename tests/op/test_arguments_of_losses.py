"""Losses whose arguments do not belong together are refused where they are written, as PyTorch refuses them when they run."""

import numpy
import pytest

import oarlock as ol

op = ol.op


def given(shape: list[int] | None, dtype: str = "float32", name: str = "", size: int = 0) -> ol.Var:
    """Rows of a shape, or a vector of a size."""
    name = name or f"{dtype}.{size}"
    return ol.layer.data(name, [size] if shape is None else shape, dtype=dtype, batch=None if shape is None else "n")


@pytest.fixture
def x():
    with ol.Program():
        yield ol.layer.data("x", [3])


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda x: op.cross_entropy(x, given([], "int64"), given([4])),
         "cross_entropy: weight is float32[n, 4], but must have one number for each of 3 classes"),
        (lambda x: op.cross_entropy(x, given([], "int64"), given(None, size=2)),
         "cross_entropy: weight is float32[2], but must have one number for each of 3 classes"),
        (lambda x: op.nll_loss(x, given([], "int64"), given(None, size=1)),
         "nll_loss: weight is float32[1], but must have one number for each of 3 classes"),
        (lambda x: ol.layer.cross_entropy(x, given([3]), weight=given(None, size=4)),
         "cross_entropy: weight is float32[4], but must have one number for each of 3 classes"),
        (lambda x: op.cross_entropy(x, given([1])),
         "cross_entropy: the target is float32[n, 1], but x is float32[n, 3]; their shapes must be equal"),
        (lambda x: op.binary_cross_entropy_with_logits(x[:, :1], given([])),
         "binary_cross_entropy_with_logits: the target is float32[n], but x is float32[n, 1]; their shapes must be equal"),
        (lambda x: op.sigmoid_focal_loss(x, given([1])),
         "sigmoid_focal_loss: the target is float32[n, 1], but x is float32[n, 3]; their shapes must be equal"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_belong_together(x, write, message):
    with pytest.raises(ol.ShapeError) as raised:
        write(x)
    assert raised.value.message == message


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (
            lambda x: op.cross_entropy(x, given([], "int64"), label_smoothing=1.5),
            "cross_entropy: label_smoothing must be from 0 to 1, not 1.5",
        ),
        (
            lambda x: op.cross_entropy(x, given([], "int64"), label_smoothing="a"),
            "cross_entropy: label_smoothing must be from 0 to 1, not 'a'",
        ),
        (lambda x: op.huber_loss(x, x, delta="1"), "huber_loss: delta must be above 0, not '1'"),
        (lambda x: op.smooth_l1_loss(x, x, beta=-1), "smooth_l1_loss: beta must be at least 0, not -1"),
        (lambda x: ol.layer.embedding(given([], "int64"), (5, 2), max_norm="a"), "embedding: max_norm is a number above 0, not 'a'"),
    ],
)
def test_numbers_out_of_range(x, write, message):
    with pytest.raises(ol.ArgumentError) as raised:
        write(x)
    assert raised.value.message == message


@pytest.mark.parametrize("write", [ol.layer.mse, op.mse_loss, op.l1_loss, op.huber_loss, op.smooth_l1_loss])
def test_a_column_beside_a_row_is_warned_of(x, write):
    with pytest.warns(UserWarning, match=r'is float32\[n, 1\] and "y" float32\[n\], so that they are broadcast') as warned:
        write(x[:, :1], ol.layer.data("y", []))
    assert warned[0].filename == __file__ or "checked_call" not in warned[0].filename
    write(x, 0.0)
    write(x, op.full(shape=(), value=0.0, dtype="float32"))


def test_lengths_of_sequences_are_integers_of_any_width():
    with ol.Program() as program:
        x = ol.op.log_softmax(ol.layer.data("x", [4, 3]))
        label = ol.layer.data("label", [2], dtype="int64")
        losses = [
            ol.layer.ctc_loss(x, label, lengths=given([], dtype, f"a.{dtype}"), label_lengths=given([], dtype, f"b.{dtype}"))
            for dtype in ("int64", "int32")
        ]
        with pytest.raises(ol.DTypeError) as raised:
            ol.layer.ctc_loss(x, label, lengths=given([], "float32"))
    assert raised.value.message == "ctc_loss: log_p: lengths must be integers, not float32"
    feed = {"x": numpy.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32"), "label": numpy.array([[1, 2], [2, 0]])}
    for dtype in ("int64", "int32"):
        feed |= {f"a.{dtype}": numpy.array([4, 3], dtype), f"b.{dtype}": numpy.array([2, 1], dtype)}
    one, other = ol.Executor().run(program, feed, losses, scope=ol.Scope())
    assert one == other
