"""Workers that are processes, which gloo connects."""

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import numpy
import pytest
import torch
from processes import end_of, fork, run_script
from torch.distributed import HashStore

import oarlock as ol
from oarlock.runtime.workers import Workers, _store_of_this_start, connect, current_workers

SCRIPT = Path(__file__).parent / "joined_worker.py"


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def results_of(folder: Path, count: int, *arguments: str) -> list[dict[str, numpy.ndarray]]:
    """The results that so many workers leave in a folder; those of one process alone where none are counted."""
    common = os.environ | {"OMP_NUM_THREADS": "1"}
    if count:
        common |= {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    environments = [common | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)] or [common]
    printed = [folder / f"{rank}.printed" for rank in range(len(environments))]
    given = [str(folder), *arguments]
    processes = [fork(run_script, SCRIPT, given, each, path) for each, path in zip(environments, printed, strict=True)]
    for status, path in zip(end_of(processes), printed, strict=True):
        assert status == 0, path.read_text()
    return [dict(numpy.load(folder / f"{rank}.npz")) for rank in range(len(processes))]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> list[dict[str, numpy.ndarray]]:
    folder = tmp_path_factory.mktemp("workers")
    return results_of(folder, 2)


def test_workers_that_are_started_again_find_nothing_of_those_before():
    """torchrun keeps one store: what a worker asked there that has ended is answered too, and nobody reads that."""
    kept, parts = HashStore(), []
    kept.set("oarlock/asks/1", "before")
    kept.set("oarlock/asks/2", "before too")
    for _ in range(2):
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda rank: _store_of_this_start(kept, rank, 3), range(3)))
        found[0].set("address", f"of start {len(parts)}")
        assert [part.get("address").decode() for part in found] == [f"of start {len(parts)}"] * 3
        parts.append(found)
    assert parts[0][2].get("address").decode() == "of start 0"


def test_a_worker_that_does_not_come_is_named(monkeypatch):
    monkeypatch.setattr("oarlock.runtime.workers._TO_COME", timedelta(seconds=0.1))
    with pytest.raises(RuntimeError, match=r"worker 1 of 2 did not connect within 0 s"):
        _store_of_this_start(HashStore(), 0, 2)


def test_every_exchange_gives_each_worker_its_own(results):
    first, second = ({name.partition(".")[2]: value for name, value in each.items() if name.startswith("exchange.")} for each in results)
    rows = numpy.arange(6.0).reshape(3, 2)
    begun = numpy.concatenate([(2 * rows + 100).reshape(-1), 2 * rows[0] + 100])
    whole = {
        "begun first": begun,
        "begun second": begun + numpy.repeat([2, 0], [6, 2]),
        "sum": 2 * rows + 100,
        "largest": rows[0] + 100,
        "gathered": numpy.concatenate([rows, rows + 100], 1),
        "uneven": numpy.concatenate([rows[:1], rows[:1] + 100, rows[:1] + 100]),
        "flags": numpy.array([False, True, True, True, True, True]),
        "told": rows + 100,
    }
    for each in (first, second):
        for name, value in whole.items():
            numpy.testing.assert_array_equal(each[name], value)
        numpy.testing.assert_array_equal(each["scattered"], numpy.full((2, 2), 3.0))
        assert each["least"] == 5
    numpy.testing.assert_array_equal(first["unevenly"], [3.0])
    numpy.testing.assert_array_equal(second["unevenly"], [3.0, 3.0])
    numpy.testing.assert_array_equal(first["swapped"], [0.0, 10.0])
    numpy.testing.assert_array_equal(second["swapped"], [1.0, 11.0])


def test_parameters_and_their_state_are_the_same_bits_on_every_worker(results):
    first, second = results
    names = [name for name in first if not name.startswith("exchange.")]
    assert len(names) > 8
    for name in names:
        assert first[name].tobytes() == second[name].tobytes(), name


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_one_worker_that_nccl_connects_is_a_process_alone(tmp_path):
    """By every exchange, and in the bits that it trains to."""
    joined, apart = tmp_path / "joined", tmp_path / "apart"
    for folder in (joined, apart):
        folder.mkdir()
    (expected,), (found,) = results_of(apart, 0, "gpu"), results_of(joined, 1, "gpu")
    assert len(expected) > 18
    for name, value in expected.items():
        numpy.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two GPUs")
def test_workers_at_gpus_have_the_parameters_of_workers_at_processors(results, tmp_path):
    for at_gpu, expected in zip(results_of(tmp_path, 2, "gpu"), results, strict=True):
        for name, value in expected.items():
            if name.startswith("exchange."):
                numpy.testing.assert_array_equal(at_gpu[name], value, err_msg=name)
            assert numpy.isfinite(at_gpu[name]).all()


def test_a_process_that_nobody_started_with_others_is_a_worker_alone():
    assert type(connect()) is Workers
    assert current_workers().count == 1
    assert ol.Executor().workers is current_workers()


def test_half_a_description_of_the_workers_is_refused(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(ol.ArgumentError, match="RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT must all be set"):
        connect()


def test_what_one_worker_exchanges_is_its_own():
    alone, tensor = Workers(), torch.arange(3.0)
    assert alone.all_reduce([tensor], "sum")[0] is tensor
    assert alone.all_gather(tensor, None, 0) is tensor
    assert alone.broadcast(tensor, 0) is tensor
