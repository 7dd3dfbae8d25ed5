"""Compare the losses of whole training steps of the workloads, W1 to W13, under ONNX Runtime with our own run. For development.

python tools/onnx_training.py                       50 steps of each
python tools/onnx_training.py W3 W13 --steps 10     10 steps of some
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

import workloads  # noqa: E402

import oarlock as ol  # noqa: E402
from oarlock.interop.onnx.export import to_onnx  # noqa: E402
from oarlock.interop.onnx.package import get_package  # noqa: E402
from oarlock.runtime.feed import check_feed  # noqa: E402

AGREEMENT = 1e-4  # relative to a loss, or to 1 if it is smaller


@dataclass
class Comparison:
    """The largest differences of losses: of two parallel runs, and of each step from our state before it."""

    apart: float = 0.0
    step_by_step: float = 0.0
    nodes: int = 0
    seconds_here: float = 0.0
    seconds_there: float = 0.0


def difference(loss: float, expected: float) -> float:
    found = abs(float(loss) - float(expected)) / max(1.0, abs(float(expected)))
    return found if numpy.isfinite(found) else float("inf")


def compare(name: str, steps: int, opset: int) -> Comparison:
    """Train with both, and with ONNX Runtime also from each state of ours."""
    workload = workloads.describe(name)
    program, scope = workload.program, workload.scope()
    program.targets = {"loss": workload.fetch}
    executor, runtime = ol.Executor(), get_package("onnxruntime")
    tensors = check_feed(program, workload.feed, set(program.main.inputs), ol.CPUPlace())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "step.onnx"
        step = to_onnx(program, path, scope, opset=opset, training=True)
        found = Comparison(nodes=len(get_package().load(path).graph.node))
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        session = runtime.InferenceSession(path, options)
    fed = {key: tensors[key].numpy() for key in step.inputs if key in tensors}
    state = dict(step.first)
    for _ in range(steps):
        ours = {key: numpy.asarray(scope[key]).copy() for key in step.state}
        begin = time.perf_counter()
        (expected,) = executor.run(program, workload.feed, [workload.fetch], scope=scope)
        between = time.perf_counter()
        results = dict(zip(step.outputs, session.run(None, fed | state), strict=True))
        found.seconds_there += (time.perf_counter() - between) / steps
        found.seconds_here += (between - begin) / steps
        state = {key: results[following] for key, following in step.state.items()}
        found.apart = max(found.apart, difference(results["loss"], expected))
        (alone,) = session.run(["loss"], fed | ours)
        found.step_by_step = max(found.step_by_step, difference(alone, expected))
    return found


def rounding_of(name: str, steps: int) -> float:
    """Return the difference of our run from itself without passes, which rounds in another order: a lower bound for any two runs."""
    workload = workloads.describe(name)
    losses = []
    for executor in (ol.Executor(), ol.Executor(passes=())):
        scope = workload.scope()
        losses.append([executor.run(workload.program, workload.feed, [workload.fetch], scope=scope)[0] for _ in range(steps)])
    return max(difference(*pair) for pair in zip(*losses, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="workloads; default: all")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--opset", type=int, default=18)
    arguments = parser.parse_args()
    failed = 0
    for name in arguments.names or workloads.TRAINING:
        try:
            found = compare(name, arguments.steps, arguments.opset)
        except Exception as error:
            failed += 1
            print(f"{name:4} {type(error).__name__}: {str(error)[:2000]}", flush=True)
            continue
        verdict = "agrees" if found.apart <= AGREEMENT else "DIFFERS"
        if found.apart > AGREEMENT >= found.step_by_step and rounding_of(name, arguments.steps) > AGREEMENT:
            verdict = "chaotic: it differs from itself without passes, too; step by step it agrees"
        failed += verdict == "DIFFERS"
        print(
            f"{name:4} {found.apart:.1e} side by side, {found.step_by_step:.1e} step by step: {verdict}; {found.nodes} nodes,"
            f" a step {found.seconds_here * 1e3:.1f} ms here, {found.seconds_there * 1e3:.1f} ms there",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
