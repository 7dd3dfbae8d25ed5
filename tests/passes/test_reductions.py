"""Products that are only added up are added up as they are made."""

import numpy
import pytest
from rewritten import require_same_values, rewritten

import oarlock as ol

FEED = {"x": numpy.linspace(-1.0, 1.0, 6).reshape(2, 3), "y": numpy.linspace(2.0, 3.0, 6).reshape(2, 3)}


def data(name: str = "x") -> ol.Var:
    return ol.layer.data(name, shape=[3], dtype="float64")


@pytest.mark.parametrize(
    ("write", "product"),
    [
        (lambda x, y: ol.layer.mean(ol.op.square(x)), "dot(x=x, y=x, mean=true)"),
        (lambda x, y: ol.op.reduce_sum(ol.op.square(y)), "dot(x=y, y=y, mean=false)"),
        (lambda x, y: ol.op.reduce_sum(x * y), "dot(x=x, y=y, mean=false)"),
    ],
)
def test_a_reduction_of_products_is_one_op(write, product):
    with ol.Program() as program:
        cost = write(data(), data("y"))
    lines, applied = rewritten(program, [cost], "fuse_reductions")
    assert applied == {"fuse_reductions": 1}
    assert [line.partition(" = ")[2] for line in lines] == [product]
    require_same_values(program, FEED, [cost], "fuse_reductions", tolerance=1e-14)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: ol.op.reduce_sum(ol.op.square(x), axis=0),
        lambda x, y: ol.op.reduce_sum(ol.op.square(x), keepdim=True),
        lambda x, y: ol.op.reduce_sum(x * 2.0),
        lambda x, y: ol.op.reduce_sum(x * ol.op.reduce_sum(y, axis=0)),
        lambda x, y: ol.layer.mean(ol.op.tanh(x)),
    ],
)
def test_other_reductions_stay(write):
    with ol.Program() as program:
        cost = write(data(), data("y"))
    assert rewritten(program, [cost], "fuse_reductions")[1] == {"fuse_reductions": 0}


def test_products_that_are_read_elsewhere_are_made():
    with ol.Program() as program:
        squares = ol.op.square(data())
        cost = ol.layer.mean(squares) + ol.layer.mean(ol.op.exp(squares))
    assert rewritten(program, [cost], "fuse_reductions")[1] == {"fuse_reductions": 0}


def test_a_training_step_is_the_same_after_the_passes():
    with ol.Program(seed=1) as program:
        x, y = data(), data("y")
        cost = ol.layer.mse(ol.layer.fc(ol.op.tanh(ol.layer.fc(x, 4)), 3), y)
        program.targets["cost"] = cost
        gradients = [gradient for _, gradient in ol.append_backward(cost)]
    _, applied = rewritten(program, [cost, *gradients], "canonicalize", "constant_folding", "cse", "splat_propagation", "fuse_reductions")
    assert (applied["splat_propagation"], applied["fuse_reductions"]) == (2, 1)
    require_same_values(
        program,
        FEED,
        [cost, *gradients],
        "canonicalize",
        "constant_folding",
        "cse",
        "splat_propagation",
        "fuse_reductions",
        tolerance=1e-12,
    )


def classifier(total):
    """Rows of three classes, the total of their losses, and its gradient."""
    with ol.Program() as program:
        x, label = data(), ol.layer.data("label", shape=[], dtype="int64")
        loss = ol.op.softmax_with_cross_entropy(x, label)
        cost = total(loss, label)
        program.targets |= {"cost": cost, "softmax": loss.op.outputs["softmax"][0]}
        ol.append_backward(cost, parameters=[x])
        program.targets["slope"] = program.main.var("x@GRAD")
    return program


TOTALS = {
    "mean": lambda loss, label: ol.layer.mean(loss),
    "sum": lambda loss, label: ol.op.reduce_sum(loss),
    "valid": ol.op.valid_mean,
}
BEFORE = ("canonicalize", "constant_folding", "cse", "splat_propagation")


@pytest.mark.parametrize("label", [[2, 0], [-100, 1], [-100, -100]], ids=["all", "one ignored", "none"])
@pytest.mark.parametrize("total", list(TOTALS))
def test_the_total_of_losses_and_its_gradient_are_one_op_each(total, label):
    program = classifier(TOTALS[total])
    wanted = [program.targets[name] for name in ("cost", "slope")]
    lines, applied = rewritten(program, wanted, *BEFORE, "fuse_reductions")
    assert applied["fuse_reductions"] == 2
    attributes = f"{'count_ignored=false, ' if total == 'valid' else ''}ignore_index=-100, mean={str(total != 'sum').lower()}"
    forward, _, backward = [line.partition(" = ")[2] for line in lines]
    assert forward == f"cross_entropy_loss(logits=x, label=label, {attributes})"
    assert backward.startswith("cross_entropy_loss_grad(")
    assert "valid_count=" in backward
    assert backward.endswith(f"{attributes})")
    feed = {"x": FEED["x"], "label": numpy.array(label)}
    require_same_values(program, feed, [*wanted, program.targets["softmax"]], *BEFORE, "fuse_reductions", tolerance=1e-14)


def test_losses_that_are_read_elsewhere_are_made_one_by_one():
    program = classifier(lambda loss, _: ol.layer.mean(loss) + ol.op.reduce_sum(ol.op.square(loss)))
    lines, _ = rewritten(program, [program.targets["cost"]], *BEFORE, "fuse_reductions")
    assert not any("cross_entropy_loss" in line for line in lines)


@pytest.mark.parametrize(("label", "ignore_index"), [("other", -100), ("label", 2)])
def test_a_mean_that_ignores_other_rows_than_the_losses_is_taken_of_them(label, ignore_index):
    with ol.Program() as program:
        x, labels = data(), {name: ol.layer.data(name, [], dtype="int64") for name in ("label", "other")}
        cost = ol.op.valid_mean(ol.op.softmax_with_cross_entropy(x, labels["label"]), labels[label], ignore_index=ignore_index)
        ol.append_backward(cost, parameters=[x])
    wanted = [cost, program.main.var("x@GRAD")]
    assert rewritten(program, wanted, *BEFORE, "fuse_reductions")[1]["fuse_reductions"] == 0
    feed = {"x": FEED["x"], "label": numpy.array([2, 0]), "other": numpy.array([-100, 0])}
    require_same_values(program, feed, wanted, *BEFORE, "fuse_reductions", tolerance=1e-14)


def test_losses_of_few_digits_are_added_up_as_they_were():
    with ol.Program() as program:
        x = ol.op.cast(data(), dtype="float16")
        cost = ol.layer.mean(ol.op.softmax_with_cross_entropy(x, ol.layer.data("label", shape=[], dtype="int64")))
    assert rewritten(program, [cost], *BEFORE, "fuse_reductions")[1]["fuse_reductions"] == 0
