"""The whole training steps of the workloads, W1 to W13, under ONNX Runtime: are their losses those of our own run? For development.

python tools/onnx_training.py                       50 steps of each
python tools/onnx_training.py W3 W13 --steps 10     of some
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

import workloads  # noqa: E402

import oarlock as ol  # noqa: E402
from oarlock.interop.onnx.export import to_onnx  # noqa: E402
from oarlock.interop.onnx.package import get_package  # noqa: E402
from oarlock.runtime.feed import check_feed  # noqa: E402

AGREEMENT = 1e-4  # relative to a loss, and to 1 where it is smaller


def compare(name: str, steps: int, opset: int) -> tuple[float, float, float, int]:
    """The largest difference between losses, the seconds of a step here and there, and how many nodes there are."""
    workload = workloads.describe(name)
    program, scope = workload.program, workload.scope()
    program.targets = {"loss": workload.fetch}
    executor, runtime = ol.Executor(), get_package("onnxruntime")
    tensors = check_feed(program, workload.feed, set(program.main.inputs), ol.CPUPlace())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "step.onnx"
        step = to_onnx(program, path, scope, opset=opset, training=True)
        nodes = len(get_package().load(path).graph.node)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        session = runtime.InferenceSession(path, options)
    fed = {key: tensors[key].numpy() for key in step.inputs if key in tensors}
    state, worst, here, there = dict(step.first), 0.0, 0.0, 0.0
    for _ in range(steps):
        begin = time.perf_counter()
        (expected,) = executor.run(program, workload.feed, [workload.fetch], scope=scope)
        between = time.perf_counter()
        results = dict(zip(step.outputs, session.run(None, fed | state), strict=True))
        there += time.perf_counter() - between
        here += between - begin
        state = {key: results[following] for key, following in step.state.items()}
        worst = max(worst, abs(float(results["loss"]) - float(expected)) / max(1.0, abs(float(expected))))
        if not numpy.isfinite(results["loss"]):
            worst = float("inf")
    return worst, here / steps, there / steps, nodes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="workloads, all unless said")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--opset", type=int, default=18)
    arguments = parser.parse_args()
    failed = 0
    for name in arguments.names or workloads.TRAINING:
        try:
            worst, here, there, nodes = compare(name, arguments.steps, arguments.opset)
        except Exception as error:
            failed += 1
            print(f"{name:4}  {type(error).__name__}: {str(error)[:2000]}", flush=True)
            continue
        agrees = worst <= AGREEMENT
        failed += not agrees
        print(
            f"{name:4} {'agrees' if agrees else 'DIFFERS'}  {worst:.1e} at most, {nodes:5} nodes;"
            f" a step {here * 1e3:7.1f} ms here, {there * 1e3:7.1f} ms there",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
