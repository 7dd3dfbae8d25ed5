"""Measure Oarlock on one workload, in this process.

    python benchmarks/measure.py --workload W6 [--variant default] [--min-time 1.5]
    python benchmarks/measure.py --list

Prints one line, RESULT and a JSON object, as every peer of `benchmarks/run.py` does. The first step is timed from building the
program to the value of the first loss, imports and data excluded; a step is the median over chunks of about 30 ms; a call of inference
is timed by itself. Memory is the peak of this process, and that after its imports.
"""

import argparse
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

THREADS = int(os.environ.get("BENCH_THREADS", "2"))
if __name__ == "__main__":  # read where these are imported
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(THREADS))

import further  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import workloads  # noqa: E402

import oarlock as ol  # noqa: E402

PACKAGES = {name: package for package in (workloads, further) for name in (*package.TRAINING, *package.INFERENCE)}
AT_A_GPU = {"gpu": {}, "gpu_graphs": {"backend": "cuda_graphs"}, "gpu_inductor": {"backend": "inductor"}}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "untuned": {},
    "interpret": {"interpret": True},
    "inductor": {"backend": "inductor"},
    **({name: {"place": ol.GPUPlace(0), **options} for name, options in AT_A_GPU.items()} if torch.cuda.is_available() else {}),
}
"""Options of the executor; `untuned` runs in the process as PyTorch leaves it. At a GPU, the feed is there already."""


def as_tensors(feed: dict[str, object], device: torch.device | str = "cpu") -> dict[str, object]:
    """The feed as tensors that this process already holds; a ragged value as its elements and its row splits."""
    tensors: dict[str, object] = {}
    for name, value in feed.items():
        if isinstance(value, ol.Ragged):
            tensors[name] = torch.tensor(value.values, device=device)
            tensors[f"{name}.splits"] = torch.tensor(value.splits[0], device=device)
        else:
            tensors[name] = torch.tensor(value, device=device)
    return tensors


def wait_for_gpu() -> None:
    """Wait until a GPU has done what it was told to, where there is one that this process uses."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def peak_megabytes() -> float:
    """The most memory that this process has had."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes / (2**20 if sys.platform == "darwin" else 2**10)


def time_steps(step: Callable[[], object], min_time: float, *, chunked: bool, steps: int | None) -> tuple[list[float], int]:
    """Milliseconds a step, for each chunk of steps after warming up, and how many steps a chunk has."""
    start, warm = time.perf_counter(), 0
    while warm < 3 or (time.perf_counter() - start < min(0.5, min_time / 3) and warm < (steps or warm + 3) // 3):
        step()
        wait_for_gpu()
        warm += 1
    each = (time.perf_counter() - start) / warm
    size = 1 if not chunked else 10 if steps else max(1, int(0.03 / each))
    times: list[float] = []
    start = time.perf_counter()
    while warm + len(times) * size < steps if steps else time.perf_counter() - start < min_time or len(times) < 7:
        begin = time.perf_counter()
        for _ in range(size):
            step()
        wait_for_gpu()
        times.append((time.perf_counter() - begin) / size * 1e3)
    return times, size


def measure_steps(
    begin: Callable[[], tuple[Callable[[], torch.Tensor], Callable[[], object]]],
    min_time: float,
    *,
    chunked: bool = True,
    steps: int | None = None,
) -> dict[str, object]:
    """The measurements of a RESULT line. `begin` builds a workload, and returns a step and what says the `extra` of the line at the end."""

    def value() -> float:
        result = step()
        return result.item() if result.numel() == 1 else result.double().abs().mean().item()

    before, start = peak_megabytes(), time.perf_counter()
    step, extra = begin()
    losses = [value()]
    first = time.perf_counter() - start
    losses += [value(), value()]
    times, size = time_steps(step, min_time, chunked=chunked, steps=steps)
    return {
        "losses": losses,
        "first_step_s": first,
        "median_ms": statistics.median(times),
        "min_ms": min(times),
        "p90_ms": float(numpy.percentile(times, 90)),
        "chunks": len(times),
        "steps_per_chunk": size,
        "rss_peak_mb": peak_megabytes(),
        "rss_import_mb": before,
        "extra": extra(),
    }


def measure(name: str, variant: str = "default", min_time: float = 1.5) -> dict[str, object]:
    """Run a workload; what a RESULT line says."""
    package = PACKAGES[name]
    weights, feed = package.draw(name)
    training = name in package.TRAINING

    def begin() -> tuple[Callable[[], torch.Tensor], Callable[[], object]]:
        workload = package.write(name, weights, feed)
        executor, scope = ol.Executor(**VARIANTS[variant]), workload.scope()
        held = as_tensors(feed, executor.place.device)
        prepared = executor.prepare(workload.program, [workload.fetch], scope=scope, training=training, return_numpy=False)

        def step() -> torch.Tensor:
            return prepared(held)[0]  # type: ignore[return-value]

        def extra() -> dict[str, float] | None:
            values = executor.eval(workload.program, list(workload.report.values()), held, scope=scope, training=training)
            return {label: value.item() for label, value in zip(workload.report, values, strict=True)} or None

        return step, extra

    measured = measure_steps(begin, min_time, chunked=training, steps=package.STEPS.get(name))
    return {"peer": "oarlock", "variant": variant, "workload": name, **measured}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", choices=list(PACKAGES))
    parser.add_argument("--variant", choices=list(VARIANTS), default="default")
    parser.add_argument("--min-time", type=float, default=1.5, help="seconds of steps that are timed")
    parser.add_argument("--list", action="store_true", help="print the variants of each workload as JSON")
    arguments = parser.parse_args()
    if arguments.list:
        print(json.dumps({name: list(VARIANTS) for name in PACKAGES}))
        return
    if arguments.variant == "untuned":
        torch.set_num_threads(THREADS)
    else:
        ol.configure_process(threads=THREADS)
    print("RESULT " + json.dumps(measure(arguments.workload, arguments.variant, arguments.min_time)), flush=True)


if __name__ == "__main__":
    main()
