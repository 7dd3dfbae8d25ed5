"""Means over rows that labels do not ignore: workers that have different numbers of such rows compute what one worker does of all."""

import numpy
import pytest
from worker_models import batches_of
from worker_steps import require_equal

import oarlock as ol
from oarlock.passes import data_parallel

SIZES = ([3, 3], [4, 1], [0, 5], [2, 0], [5, 4])


def of_ignored(ignore_index: int, shape: tuple[int, ...] = ()):
    """Makes rows of which half are not counted, and in some batches all rows of a worker."""

    def make(random: numpy.random.Generator, rows: int) -> dict:
        y = random.integers(0, 3, size=(rows, *shape))
        share = random.choice([0.4, 1.0], p=[0.7, 0.3])
        return {"x": random.normal(size=(rows, 8)), "y": numpy.where(random.random(y.shape) < share, ignore_index, y)}

    return make


def program_of(cost_of, shape: tuple[int, ...] = ()):
    def build() -> ol.Program:
        with ol.Program(seed=0) as program:
            x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", list(shape), dtype="int64")
            logits = ol.layer.fc(x, 3 * int(numpy.prod(shape, initial=1)))
            logits = ol.op.reshape(logits, shape=("n", *shape, 3)) if shape else logits
            cost = cost_of(logits, y)
            ol.optimizer.SGD(0.1).minimize(cost)
            program.targets = {"loss": cost}
        return program

    return build


COSTS = {
    "cross_entropy": ol.layer.cross_entropy,
    "of class 1": lambda x, y: ol.layer.cross_entropy(x, y, ignore_index=1),
    "smoothed": lambda x, y: ol.layer.cross_entropy(x, y, label_smoothing=0.2),
    "weighted": lambda x, y: ol.layer.cross_entropy(x, y, ol.op.arange([], stop=(3,), dtype="float64")),
    "nll_loss": lambda x, y: ol.op.nll_loss(ol.op.log_softmax(x), y, axis=-1),
    "not 0 where ignored": lambda x, y: ol.op.valid_mean(ol.op.square(ol.op.reduce_sum(x, axis=-1)), y),
    "other losses": lambda x, y: ol.op.valid_mean(ol.op.softmax_with_cross_entropy(x, ol.op.abs(y) % 3), y),
}


@pytest.mark.parametrize("shape", [(), (2,)], ids=["rows", "sequences"])
@pytest.mark.parametrize("cost", list(COSTS))
def test_workers_divide_by_the_rows_of_all_that_count(cost, shape):
    ignored = 1 if cost == "of class 1" else -100
    batches = batches_of(of_ignored(ignored, shape), SIZES)
    batches[0][0]["y"][:1], batches[1][1]["y"][:1], batches[2][1]["y"][:1], batches[3][0]["y"][:1] = 0, 0, 0, 2  # one counts in each
    require_equal(program_of(COSTS[cost], shape), batches)


def test_a_mean_of_workers_where_no_row_counts_is_nan_and_no_parameter_changes():
    batches = batches_of(of_ignored(-100), [[2, 3]])
    for feed in batches[0]:
        feed["y"][:] = -100
    require_equal(program_of(ol.layer.cross_entropy), batches)


def test_workers_exchange_one_number_for_the_rows_that_count():
    program = program_of(ol.layer.cross_entropy)()
    data_parallel(program)
    exchanged = [op for op in program.main.ops if op.type == "all_reduce"]
    gradients = [var for op in exchanged for var in op.inputs["xs"] if "@GRAD" in var.name]
    assert [len(op.reads) for op in exchanged] == [1, 1, 2]
    assert len(gradients) == 2
    assert not any(op.type in ("all_gather", "where") for op in program.main.ops)


@pytest.mark.parametrize("accuracy", [ol.layer.accuracy, ol.metric.accuracy], ids=["layer", "metric"])
def test_rows_that_are_ignored_do_not_count_in_an_accuracy_of_workers(accuracy):
    def build() -> ol.Program:
        with ol.Program(seed=0) as program:
            x, y = ol.layer.data("x", [3], dtype="float64"), ol.layer.data("y", [], dtype="int64")
            program.targets = {"accuracy": accuracy(x, y)}
        return program

    def make(random: numpy.random.Generator, rows: int) -> dict:
        return {"x": random.normal(size=(rows, 3)), "y": random.choice([-100, 0, 1, 2], size=rows)}

    require_equal(build, batches_of(make, [[30, 20], [1, 40], [0, 30]]))
