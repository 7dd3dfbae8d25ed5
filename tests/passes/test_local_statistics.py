"""Batch normalization by the rows of each worker alone."""

import numpy
import pytest
import torch
from thread_workers import run_together

import oarlock as ol
from oarlock.passes import data_parallel

RATE, MOMENTUM = 0.1, 0.3


def network() -> ol.Program:
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [3], dtype="float64"), ol.layer.data("y", [2], dtype="float64")
        normalized = ol.layer.batch_norm(ol.layer.fc(x, 4, bias=False, name="low"), momentum=MOMENTUM, name="norm")
        cost = ol.layer.mean(ol.op.square(ol.layer.fc(ol.op.tanh(normalized), 2, name="high") - y))
        ol.optimizer.SGD(RATE).minimize(cost)
        program.targets = {"loss": cost}
    return program


def fed(sizes: list[int]) -> list[dict]:
    random = numpy.random.default_rng(1)
    return [{"x": random.normal(size=(rows, 3)), "y": random.normal(size=(rows, 2))} for rows in sizes]


def together(batches: list[list[dict]], **options) -> list[dict]:
    """The state of each worker after a step on each of the batches."""

    def work(workers):
        program = network()
        data_parallel(program, **options)
        scope, executor = ol.init(program, ol.Scope()), ol.Executor(workers=workers)
        for feeds in batches:
            executor.run(program, feeds[workers.index], ["loss"], scope=scope)
        return {var.name: numpy.asarray(scope[var.name]) for var in program.persistables()}

    return run_together(len(batches[0]), work)


def by_pytorch(batches: list[list[dict]]) -> dict:
    """The state that workers with the batch normalization of PyTorch come to, one after another; running statistics are averaged."""
    scope = ol.init(network(), ol.Scope())
    held = {name: torch.tensor(numpy.asarray(scope[name])) for name in ("low.w", "norm.scale", "norm.bias", "high.w", "high.b")}
    running = [torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)]
    for feeds in batches:
        leaves = {name: value.clone().requires_grad_() for name, value in held.items()}
        total, moved, elements = torch.zeros((), dtype=torch.float64), [], sum(feed["y"].size for feed in feeds)
        for feed in feeds:
            if not len(feed["x"]):
                continue
            own = [value.clone() for value in running]
            low = torch.tensor(feed["x"]) @ leaves["low.w"]
            normalized = torch.nn.functional.batch_norm(low, *own, leaves["norm.scale"], leaves["norm.bias"], True, MOMENTUM)
            out = torch.tanh(normalized) @ leaves["high.w"] + leaves["high.b"]
            total = total + ((out - torch.tensor(feed["y"])) ** 2).sum() / elements
            moved.append(own)
        total.backward()
        held = {name: (leaf - RATE * leaf.grad).detach() for name, leaf in leaves.items()}
        running = [torch.stack(each).mean(0) for each in zip(*moved, strict=True)]
    return held | {"norm.mean": running[0], "norm.variance": running[1]}


@pytest.mark.parametrize("sizes", [[[3, 3], [4, 2], [2, 5]], [[4, 0], [3, 3]], [[2, 3, 4], [0, 5, 2]]], ids=["two", "one empty", "three"])
def test_each_worker_normalizes_its_rows_as_pytorch_does(sizes):
    batches = [fed(each) for each in sizes]
    states, expected = together(batches, sync_batch_norm=False), by_pytorch(batches)
    for state in states:
        assert set(expected) <= set(state)
        for name, value in expected.items():
            numpy.testing.assert_allclose(state[name], value.numpy(), rtol=1e-11, atol=1e-12, err_msg=name)
    for name in states[0]:
        assert all(numpy.array_equal(state[name], states[0][name]) for state in states), f"{name}: all workers have the same bits"


def test_no_rows_leave_the_running_statistics():
    (first, *_) = together([fed([3, 3]), fed([0, 0])], sync_batch_norm=False)
    (before, *_) = together([fed([3, 3])], sync_batch_norm=False)
    for name in ("norm.mean", "norm.variance"):
        numpy.testing.assert_array_equal(first[name], before[name])


def test_one_exchange_for_each_layer_and_nothing_else_is_waited_for():
    program = network()
    data_parallel(program, sync_batch_norm=False)
    types = [op.type for op in program.main.ops]
    assert not any(type.startswith("sync") for type in types)
    assert types.count("all_reduce") == 4, "rows, the running statistics, the loss, the gradients"


def test_what_takes_the_statistics_for_those_of_all_is_refused():
    with ol.Program(seed=0) as program:
        x = ol.layer.data("x", [3], dtype="float64")
        x.stop_gradient = False
        (slope,) = ol.gradients(ol.layer.mean(ol.op.square(ol.layer.batch_norm(x, name="norm"))), [x])
        ol.optimizer.SGD(RATE).minimize(ol.layer.mean(ol.op.square(slope)))
    with pytest.raises(ol.ProgramError, match="reads the statistics of a batch normalization, of which each worker would have its own"):
        data_parallel(program, sync_batch_norm=False)
