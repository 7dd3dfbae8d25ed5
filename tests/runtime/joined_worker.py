"""One worker of several processes: `test_workers.py` starts it. It exchanges tensors, trains, and writes what it has to a file.

python joined_worker.py FOLDER [gpu]
"""

import sys
from pathlib import Path

import numpy
import torch

import oarlock as ol
from oarlock.passes import data_parallel
from oarlock.runtime.place import device_of
from oarlock.runtime.workers import connect, disconnect


def exchanged(workers, place: ol.Place) -> dict[str, numpy.ndarray]:
    """The results of every exchange, of tensors that tell whose they are."""
    index, count = workers.index, workers.count
    device = device_of(place)
    rows = torch.arange(6.0, device=device).reshape(3, 2) + 100 * index
    sizes = [index + 1 for index in range(count)]
    first, second = (workers.start_all_reduce([rows + number, rows[0]], "sum") for number in range(2))
    for exchange in (second, first):  # in any order
        workers.finish(exchange)
    found = {
        "begun first": first,
        "begun second": second,
        "sum": workers.all_reduce([rows], "sum")[0],
        "largest": workers.all_reduce([rows, rows[0]], "max")[1],
        "gathered": workers.all_gather(rows, None, 1),
        "uneven": workers.all_gather(rows[:1].repeat(index + 1, 1), sizes, 0),
        "flags": workers.all_gather(rows[:, 0] > 1, [3] * count, 0),
        "scattered": workers.reduce_scatter(torch.ones(2 * count, 2, device=device) * (index + 1), [2] * count, 0),
        "unevenly": workers.reduce_scatter(torch.ones(sum(sizes), device=device) * (index + 1), sizes, 0),
        "told": workers.broadcast(rows, count - 1),
        "swapped": workers.all_to_all(torch.arange(float(count), device=device) + 10 * index),
        "least": torch.tensor(workers.least(index + 5)),
    }
    return {f"exchange.{name}": value.cpu().numpy() for name, value in found.items()}


def trained(place: ol.Place) -> dict[str, numpy.ndarray]:
    """The parameters after some steps on this worker's rows."""
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8]), ol.layer.data("y", [], dtype="int64")
        hidden = ol.op.dropout(ol.op.relu(ol.layer.batch_norm(ol.layer.fc(x, 6, bias=False))), 0.5)
        cost = ol.layer.cross_entropy(ol.layer.fc(hidden, 3), y)
        ol.optimizer.Momentum(0.1, 0.9).minimize(cost)
        program.targets = {"loss": cost}
    workers = connect()
    data_parallel(program)
    scope = ol.Scope()
    ol.init(program, scope)
    random = numpy.random.default_rng(0)
    executor = ol.Executor(place)
    for step in range(5):
        rows = {"x": random.normal(size=(7, 8)).astype("float32"), "y": random.integers(0, 3, size=7)}
        cuts = [0, *(min(7, 3 * (number + 1) + step % 2) for number in range(workers.count - 1)), 7]
        own = {name: value[cuts[workers.index] : cuts[workers.index + 1]] for name, value in rows.items()}
        executor.run(program, own, scope=scope)
    return {var.name: scope[var.name].cpu().numpy() for var in program.persistables()}


def main(folder: Path, place: ol.Place) -> None:
    workers = connect(timeout=20)
    numpy.savez(folder / f"{workers.index}.npz", **exchanged(workers, place), **trained(place))
    disconnect()


if __name__ == "__main__":
    main(Path(sys.argv[1]), ol.GPUPlace.of_worker() if sys.argv[2:] == ["gpu"] else ol.CPUPlace())
