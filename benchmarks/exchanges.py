"""How long workers take to sum a tensor, by its size: what `docs/scale.md` plans with.

    OMP_NUM_THREADS=1 python benchmarks/exchanges.py [--workers 2,4] [--kilobytes 0.004,64,1024,4096,25600] [--seconds 1]

Workers are processes of one thread on this machine, connected by gloo. Each sums a tensor of float32 with the others over and over. Prints
the median milliseconds for each size; then a latency and a bandwidth, such that a sum of B bytes among N workers takes about
latency + 2 (N - 1) / N * B / bandwidth, fitted by relative error.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time

import numpy
import torch

from oarlock.runtime.workers import Workers, connect, disconnect


def milliseconds(workers: Workers, elements: int, seconds: float) -> float:
    """The median time of a sum of so many elements."""
    tensor = torch.ones(elements)
    times = []
    for turn in range(max(20, _count(workers, tensor, seconds))):
        start = time.perf_counter()
        workers.all_reduce([tensor], "sum")
        if turn >= 5:
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def _count(workers: Workers, tensor: torch.Tensor, seconds: float) -> int:
    """How often all workers sum a tensor in about so many seconds."""
    workers.all_reduce([tensor], "sum")
    start = time.perf_counter()
    for _ in range(3):
        workers.all_reduce([tensor], "sum")
    return workers.least(int(3 * seconds / (time.perf_counter() - start)))


def work(kilobytes: list[float], seconds: float) -> None:
    """As one of the workers: measure each size, and print what was found, if this is the first."""
    torch.set_num_threads(1)
    workers = connect()
    found = [milliseconds(workers, max(1, int(each * 256)), seconds) for each in kilobytes]
    if workers.index == 0:
        print(json.dumps(found), flush=True)
    disconnect()


def run(count: int, arguments: list[str]) -> list[float]:
    """The measurements of so many workers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = str(listening.getsockname()[1])
    common = os.environ | {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"}
    processes = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, __file__, "--work", *arguments], env=common | {"RANK": str(rank)}, stdout=subprocess.PIPE, text=True
        )
        for rank in range(count)
    ]
    printed = [process.communicate()[0] for process in processes]
    codes = [process.returncode for process in processes]
    if any(codes):
        raise SystemExit(f"workers ended with {codes}")
    return json.loads(printed[0])


def fitted(count: int, kilobytes: list[float], found: list[float]) -> tuple[float, float]:
    """The latency in milliseconds and the bandwidth in bytes per millisecond by which the relative errors are least."""
    times = numpy.asarray(found)
    carried = 2 * (count - 1) / count * 1024 * numpy.asarray(kilobytes)
    columns = numpy.stack([1 / times, carried / times], axis=1)
    latency, per_byte = numpy.linalg.lstsq(columns, numpy.ones(len(times)), rcond=None)[0]
    return float(latency), float(1 / per_byte)


def main() -> None:
    parser = argparse.ArgumentParser(description="Sums among several workers, by their sizes.")
    parser.add_argument("--workers", default="2,4")
    parser.add_argument("--kilobytes", default="0.004,64,1024,4096,25600")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each size")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    kilobytes = [float(each) for each in arguments.kilobytes.split(",")]
    if arguments.work:
        return work(kilobytes, arguments.seconds)
    print(f"{'workers':>8}" + "".join(f"{each:>10g} KiB" for each in kilobytes) + f"{'latency':>12}{'bandwidth':>12}")
    for count in map(int, arguments.workers.split(",")):
        found = run(count, sys.argv[1:])
        latency, bandwidth = fitted(count, kilobytes, found)
        print(f"{count:8}" + "".join(f"{each:11.3f} ms" for each in found) + f"{latency * 1e3:9.0f} us{bandwidth / 1e6:7.2f} GB/s")
    return None


if __name__ == "__main__":
    main()
