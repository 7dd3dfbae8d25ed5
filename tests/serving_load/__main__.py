"""The command; `serving_load` says how it is called."""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy
from classifiers import digits_classifier
from serving.running import Running, serving, wait_until
from tolerances import BATCHED

import oarlock as ol
from serving_load.clients import Asked, Clients

ALLOWED = 0.05  # as much as memory may grow, of what it was
_LIMITS = {"body_bytes": 2**20, "header_seconds": 3.0, "body_seconds": 3.0, "stop_seconds": 20.0, "queue": 256}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m serving_load", description="Load a server, then stop it, and see that nothing is lost."
    )
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch-rows", type=int, default=32)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        digits = digits_classifier()
        ol.save_model(digits.predict, ol.init(digits.program, ol.Scope()), path)
        requests = _requests(ol.load_model(path), arguments.seed)
        with serving(path, batch_rows=arguments.batch_rows, **_LIMITS) as running:
            tolerance = None if arguments.batch_rows == 1 else BATCHED
            clients = Clients(running.port, requests, tolerance, int(_LIMITS["body_bytes"]), arguments.seed)
            sizes, status = asyncio.run(_load(clients, running, arguments.clients, arguments.seconds))
            errors = list(running.errors)
    return _report(clients, sizes, status, errors)


def _requests(model: ol.Model, seed: int) -> list[Asked]:
    draw = numpy.random.default_rng(seed)
    made = []
    for rows in [1, 2, 3, 4] * 16:
        image = draw.random((rows, 1, 8, 8), "float32")
        item = {"name": "image", "shape": list(image.shape), "datatype": "FP32", "data": image.reshape(-1).tolist()}
        made.append(Asked(json.dumps({"inputs": [item]}).encode(), numpy.asarray(ol.infer(model, {"image": image}))))
    return made


async def _load(clients: Clients, running: Running, count: int, seconds: float) -> tuple[list[int], int | None]:
    """Load a server, then send it the signal while clients go on; the memory that it had, sample by sample, and its status."""
    asking = asyncio.create_task(clients.run(count))
    sizes, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(min(0.5, seconds / 40))
        sizes.append(running.resident_bytes())
    clients.signal_at = time.monotonic()
    running.stop()
    await asyncio.to_thread(wait_until, lambda: running.process.poll() is not None, 60)
    clients.ended = True
    _, late = await asyncio.wait({asking}, timeout=40)
    if late:
        clients.failures.append("a client waits for a server that has gone")
    return sizes, running.process.returncode


def _report(clients: Clients, sizes: list[int], status: int | None, errors: list[str]) -> int:
    """Print what was seen; 1 where something is wrong."""
    failures, third = list(clients.failures), max(1, len(sizes) // 3)
    before, after = (float(numpy.median(part)) for part in (sizes[third : 2 * third] or sizes, sizes[-third:]))
    if after > before * (1.0 + ALLOWED):
        failures.append(f"memory grew from {before / 2**20:.0f} to {after / 2**20:.0f} MiB")
    if status != 0:
        failures.append(f"the server ended with status {status}")
    failures += [f"the server says: {line.rstrip()}" for line in errors[:80]]
    times = numpy.sort(clients.seconds) * 1000
    if not len(times):
        failures.append("no request was answered")
    else:
        at = {share: times[min(len(times) - 1, int(share * len(times)))] for share in (0.5, 0.99)}
        print(f"{len(times):,} right answers, half within {at[0.5]:.1f} ms, 99 of 100 within {at[0.99]:.1f} ms")
    print("statuses  " + ", ".join(f"{name}: {count:,}" for name, count in sorted(clients.statuses.items())))
    print(f"memory    {before / 2**20:.1f} MiB, at the end {after / 2**20:.1f} MiB")
    print("\n".join([*dict.fromkeys(failures)][:100]) or "0 failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
