"""Runs of several workers: the parameters of one, a folder that one of them keeps, and what happens when one ends."""

import os
import socket
from pathlib import Path

import numpy
import pytest
import torch
from processes import end_of, fork, run_script
from thread_workers import run_together, train_together
from worker_failures.jobs import steps_in

import oarlock as ol
from oarlock.training import trainer
from oarlock.training.batches import Batches, part_of
from oarlock.training.checkpoint import find_checkpoints
from oarlock.training.run_folder import load_run
from oarlock.training.together import require_one_start

SCRIPT = Path(__file__).parent / "together_script.py"


def start(folder: Path, count: int, *options: str, fatal_step: int = 0) -> list[int]:
    """Run the script by so many workers, or by a process alone where none are counted; return how each ended."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = str(listening.getsockname()[1])
    common = os.environ | {"OMP_NUM_THREADS": "1"}
    workers = common | {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    environments = [workers | {"RANK": str(rank)} for rank in range(count)] or [common]
    printed = [folder.with_suffix(f".{rank}.printed") for rank in range(len(environments))]
    given = [str(folder), str(fatal_step), *options]
    processes = [fork(run_script, SCRIPT, given, each, path) for each, path in zip(environments, printed, strict=True)]
    ended = end_of(processes)
    for status, path in zip(ended, printed, strict=True):
        if status and not fatal_step:
            pytest.fail(path.read_text())
    return ended


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("together") / "unbroken"
    assert start(folder, 2) == [0, 0]
    return folder


@pytest.fixture(scope="module")
def unbroken_in_shares(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("together") / "in_shares"
    assert start(folder, 2, "shard_optimizer") == [0, 0]
    return folder


def values_of(folder: Path) -> dict[str, numpy.ndarray]:
    scope = load_run(folder).scope
    return {name: scope[name].numpy() for name in scope}


def test_two_workers_have_the_parameters_and_the_history_of_one(unbroken, tmp_path):
    assert start(tmp_path / "alone", 0) == [0]
    alone, together = values_of(tmp_path / "alone"), values_of(unbroken)
    assert alone.keys() == together.keys()
    for name, value in alone.items():
        numpy.testing.assert_allclose(together[name], value, rtol=1e-3, atol=1e-4, err_msg=name)
    for one, other in zip(steps_in(tmp_path / "alone"), steps_in(unbroken), strict=True):
        assert one.get("step") == other.get("step")
        assert one.get("loss", 0.0) == pytest.approx(other.get("loss", 0.0), abs=1e-4)


def test_a_run_whose_worker_is_killed_goes_on_to_the_same_bits(unbroken, tmp_path):
    folder = tmp_path / "killed"
    first = start(folder, 2, fatal_step=11)
    assert first[1] == -9
    assert first[0] != 0, "the other one went on alone"
    assert start(folder, 2) == [0, 0]
    expected, found = values_of(unbroken), values_of(folder)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        assert value.tobytes() == found[name].tobytes(), name
    assert steps_in(folder) == steps_in(unbroken)


def test_workers_end_after_the_same_step_where_one_is_interrupted(unbroken_in_shares, tmp_path):
    """And what each has then is whole, and goes on to the same bits."""
    folder = tmp_path / "interrupted"
    assert start(folder, 2, "shard_optimizer", "interrupt", fatal_step=7) == [130, 130]
    first, second = sorted(tmp_path.glob("*.safetensors"))
    assert [first.name, second.name] == ["interrupted.0.7.safetensors", "interrupted.1.7.safetensors"]
    assert first.read_bytes() == second.read_bytes()
    assert max(find_checkpoints(folder / "checkpoints")) == 7
    assert start(folder, 2, "shard_optimizer") == [0, 0]
    expected, found = values_of(unbroken_in_shares), values_of(folder)
    assert all(value.tobytes() == found[name].tobytes() for name, value in expected.items())


def test_the_parts_of_a_minibatch_are_all_of_its_rows():
    for rows in range(9):
        for count in (1, 2, 3, 4):
            parts = [part_of(rows, (index, count)) for index in range(count)]
            assert [row for part in parts for row in range(rows)[part]] == list(range(rows))
            sizes = [part.stop - part.start for part in parts]
            assert max(sizes) - min(sizes) <= 1


def test_each_worker_is_fed_its_part_and_counts_the_rows_of_all():
    with ol.Program() as program:
        ol.layer.data("x", [2])
    data = {"x": numpy.arange(14.0, dtype="float32").reshape(7, 2)}
    alone = Batches.of(data, program, 5)
    parts = [Batches.of(data, program, 5, worker=(index, 2)) for index in range(2)]
    for whole, *own in zip(*(batches.after(0) for batches in (alone, *parts)), strict=False):
        assert [batch.rows for batch in own] == [whole.rows] * 2
        numpy.testing.assert_array_equal(numpy.concatenate([batch.feed["x"] for batch in own]), whole.feed["x"])
        if whole.epoch == 2:
            break


def test_a_measurement_exchanges_what_it_measures_and_no_gradient():
    def work(_) -> tuple[list, list]:
        with ol.Program(seed=0):
            x, y = ol.layer.data("x", [4]), ol.layer.data("y", [], dtype="int64")
            logits = ol.layer.fc(ol.layer.fc(x, 5, act="tanh"), 3)
            cost, shown = ol.layer.cross_entropy(logits, y), {"accuracy": ol.metric.accuracy(logits, y)}
        rows = {"x": numpy.ones((8, 4), "float32"), "y": numpy.zeros(8, "int64")}
        workers, after = trainer.connect(), []
        options = {"epochs": 1, "batch_size": 8, "validate": rows, "on_step": lambda *_: after.append(len(workers.log))}
        ol.train(cost, rows, show=shown, optimizer=ol.optimizer.SGD(0.1), **options)
        return workers.log[: after[0]], workers.log[after[0] :]

    for training, measuring in train_together(2, work):
        matrices = [[dims for what, dims in log if what == "all_reduce" and 2 in dims] for log in (training, measuring)]
        assert len(matrices[0]) == 1, "the gradients, in one bucket"
        assert matrices[1] == []
        assert any(what == "all_reduce" and 0 in dims for what, dims in measuring), "the sums of the loss"


def program_of(size: int) -> ol.Program:
    with ol.Program(seed=0) as program:
        ol.layer.mean(ol.layer.fc(ol.layer.data("x", [2]), size))
    return program


def test_workers_of_different_programs_do_not_begin():
    with pytest.raises(ol.WorkerError, match="the workers were given different programs") as raised:
        run_together(2, lambda workers: require_one_start(workers, program_of(3 + workers.index), 0))
    assert "fc_0" in str(raised.value)


def test_workers_of_different_steps_do_not_begin():
    with pytest.raises(ol.WorkerError, match="the workers would resume after different steps, from 4 to 8"):
        run_together(2, lambda workers: require_one_start(workers, program_of(3), 4 + 4 * workers.index))
    assert run_together(2, lambda workers: require_one_start(workers, program_of(3), 4)) == [None, None]


def test_one_worker_alone_compares_nothing():
    assert torch.distributed.is_initialized() is False
    require_one_start(ol.Executor().workers, program_of(3), 0)


def test_batch_norm_takes_the_rows_of_each_worker_where_that_is_asked_for():
    random = numpy.random.default_rng(0)
    data = {"x": random.normal(size=(40, 5)), "y": random.integers(0, 3, size=40)}

    def trained(**options) -> dict[str, numpy.ndarray]:
        with ol.Program(seed=0):
            x, y = ol.layer.data("x", [5], dtype="float64"), ol.layer.data("y", [], dtype="int64")
            hidden = ol.layer.batch_norm(ol.layer.fc(x, 6, bias=False))
            cost = ol.layer.cross_entropy(ol.layer.fc(ol.op.tanh(hidden), 3), y)
        result = ol.train(cost, data, optimizer=ol.optimizer.SGD(0.1), epochs=2, batch_size=10, progress=False, tune=False, **options)
        return {var.name: numpy.asarray(result.parameters[var.name]) for var in result.program.persistables()}

    alone = trained()
    for found in train_together(2, lambda index: trained()):
        for name, value in alone.items():
            numpy.testing.assert_allclose(found[name], value, rtol=1e-10, atol=1e-12, err_msg=name)
    first, second = train_together(2, lambda index: trained(sync_batch_norm=False))
    assert all(numpy.array_equal(first[name], second[name]) for name in first), "all workers have the same bits"
    assert numpy.abs(first["batch_norm_0.variance"] - alone["batch_norm_0.variance"]).max() > 1e-3
