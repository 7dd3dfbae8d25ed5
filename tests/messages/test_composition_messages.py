"""Compositions that are given what they cannot take: what they say, and that nothing is left of what they wrote."""

from collections.abc import Callable

import pytest

import oarlock as ol

REFUSED: dict[str, tuple[Callable[[ol.Var, ol.Var], object], type[ol.OarlockError], str, str | None]] = {
    "celu": (lambda x, y: ol.op.celu(x, alpha=0.0), ol.ArgumentError, "celu: alpha must not be 0, since x is divided by it", None),
    "softshrink": (
        lambda x, y: ol.op.softshrink(x, bound=-0.5),
        ol.ArgumentError,
        "softshrink: bound must be at least 0, not -0.5",
        None,
    ),
    "prelu": (
        lambda x, y: ol.op.prelu(x, y),
        ol.ShapeError,
        'prelu: the slopes "y" must be one number, or one for each channel of "x"',
        None,
    ),
    "prelu of other channels": (
        lambda x, y: ol.op.prelu(x, ol.op.full(shape=(2,), value=0.5)),
        ol.ShapeError,
        "multiply: x [2] and y [n, 3] do not broadcast: 2 and 3 are different sizes",
        None,
    ),
    "glu": (lambda x, y: ol.op.glu(x), ol.ShapeError, "split: axis 1 has the size 3, which is not 2 equal parts", None),
    "a reduction": (
        lambda x, y: ol.op.mse_loss(x, y, reduction="means"),
        ol.ArgumentError,
        "no reduction is called 'means'",
        'did you mean "mean"?',
    ),
    "batchmean elsewhere": (
        lambda x, y: ol.op.l1_loss(x, y, reduction="batchmean"),
        ol.ArgumentError,
        "no reduction is called 'batchmean'",
        'did you mean "mean"?',
    ),
    "huber_loss": (lambda x, y: ol.op.huber_loss(x, y, delta=0.0), ol.ArgumentError, "huber_loss: delta must be above 0, not 0.0", None),
    "smooth_l1_loss": (
        lambda x, y: ol.op.smooth_l1_loss(x, y, beta=-1.0),
        ol.ArgumentError,
        "smooth_l1_loss: beta must be at least 0, not -1.0",
        None,
    ),
    "nll_loss": (lambda x, y: ol.op.nll_loss(x, y, axis=2), ol.ShapeError, "axis 2 is not an axis of x, which has 2 dimensions", None),
    "a reduction of margins": (
        lambda x, y: ol.op.hinge_loss(x, y, reduction="batchmean"),
        ol.ArgumentError,
        "no reduction is called 'batchmean'",
        'did you mean "mean"?',
    ),
    "multi_margin_loss": (
        lambda x, y: ol.op.multi_margin_loss(x, y),
        ol.DTypeError,
        "negative_log_likelihood: label must be int64, not float32",
        None,
    ),
    "dice_loss": (
        lambda x, y: ol.op.dice_loss(ol.op.full(shape=(3,), value=0.5), x),
        ol.ShapeError,
        "dice_loss: full_0 has no axis after its examples",
        "axis=0",
    ),
    "vector_norm": (
        lambda x, y: ol.op.vector_norm(x, axis=(0, -2)),
        ol.ShapeError,
        "reduce_sum: axis (0, -2) names one axis twice; None stands for all of them",
        None,
    ),
    "no variable": (lambda x, y: ol.op.normalize(3.0), ol.OarlockError, "", None),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_composition_cannot_take_is_said_and_leaves_nothing_behind(what: str):
    write, error, message, hint = REFUSED[what]
    with ol.Program() as program:
        x, y = ol.layer.data("x", shape=[3]), ol.layer.data("y", shape=[3])
        before = len(program.main.vars)
        with pytest.raises(error) as caught:
            write(x, y)
        if message:
            assert (caught.value.message, caught.value.hint) == (message, hint)
        assert [op.type for op in program.main.ops if op.type != "full"] == []
        assert len(program.main.vars) <= before + 1  # the slopes that were given


def test_numbers_stand_for_inputs_as_everywhere():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        found = [ol.op.maximum(x, 0.0), ol.op.power(x, 2.0), ol.op.where(x > 0.0, x, -1.0)]
    values = ol.Executor().run(program, {"x": [[-2.0, 3.0]]}, found, scope=ol.Scope())
    assert [value.tolist() for value in values] == [[[0.0, 3.0]], [[4.0, 9.0]], [[-1.0, 3.0]]]
