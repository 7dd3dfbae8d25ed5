"""Import each model of a list, test it, save and export it, and print a table of the results.

    python tools/models.py                                   all of ../shared/models/models_dev.json without a result
    python tools/models.py --only tv/resnet18,hf/gpt2        these, also with a result
    python tools/models.py --count 20                        20 without a result
    python tools/models.py --table                           the table of the existing results

Each model runs in a separate process, for at most `--limit` seconds; its result is a file in `--results`, so an interrupted run
can be continued. torchvision, timm and transformers must be installed; no weights are downloaded.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent


def main() -> int:
    arguments = _parse()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    names: list[str] = json.loads(Path(arguments.list).read_text(encoding="utf-8"))
    results = Path(arguments.results)
    results.mkdir(parents=True, exist_ok=True)
    if not arguments.table:
        for name in _chosen(names, results, arguments):
            outcome = _judge_elsewhere(name, arguments)
            _file_of(results, name).write_text(json.dumps(outcome, indent=1), encoding="utf-8")
            print(_line(outcome), flush=True)
    done = [json.loads(path.read_text(encoding="utf-8")) for name in names if (path := _file_of(results, name)).exists()]
    _print_table(done, len(names), faults=arguments.faults)
    return int(any(outcome["status"] == "failed" or (outcome["onnx"] or {"faults": []})["faults"] for outcome in done))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Take models of PyTorch in, and hold them to the gate.")
    parser.add_argument("list", nargs="?", default=str(_HERE.parent / "../shared/models/models_dev.json"), help="a JSON list of names")
    parser.add_argument("--only", default="", help="comma-separated names")
    parser.add_argument("--count", type=int, default=0, help="maximum number of models to test")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds for one model")
    parser.add_argument("--results", default=str(_HERE.parent / "build/models"), help="folder for the results")
    parser.add_argument("--quick", action="store_true", help="test float32 at the first size and float64 at the second only")
    parser.add_argument("--again", action="store_true", help="test failed models again")
    parser.add_argument("--table", action="store_true", help="only print the table")
    parser.add_argument("--faults", action="store_true", help="print all faults of each model")
    return parser.parse_args()


def _file_of(results: Path, name: str) -> Path:
    return results / f"{name.replace('/', '.')}.json"


def _chosen(names: list[str], results: Path, arguments: argparse.Namespace) -> list[str]:
    if arguments.only:
        return arguments.only.split(",")
    left = [name for name in names if not _has_result(_file_of(results, name), again=arguments.again)]
    return left[: arguments.count] if arguments.count else left


def _has_result(file: Path, *, again: bool) -> bool:
    return file.exists() and not (again and json.loads(file.read_text(encoding="utf-8"))["status"] != "passed")


def _judge_elsewhere(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the outcome of a model from another process. A process that crashes or exceeds its time has failed.

    The process is forked from one that has loaded the libraries and tests nothing itself.
    """
    os.environ["PYTHONPATH"] = os.pathsep.join([str(_HERE.parent / "src"), str(_HERE)])  # for that process, which does not inherit sys.path
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["model_gate", "model_catalogue", "transformers", "torch._dynamo", "oarlock.interop.torch.rules.registry"]
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcome.json"
        process = context.Process(target=_judge_here, args=(name, str(file)), kwargs={"quick": arguments.quick})
        process.start()
        process.join(arguments.limit)
        fault = f"more than {arguments.limit:.0f} s" if process.is_alive() else f"the process ended with {process.exitcode}"
        process.kill()
        process.join()
        if file.exists():
            return json.loads(file.read_text(encoding="utf-8"))
    counts = {"nodes": 0, "native": 0, "composed": 0}
    return {"name": name, "status": "failed", "faults": [fault], **counts, "dynamic": True, "seconds": 0.0, "onnx": None}


def _judge_here(name: str, file: str, *, quick: bool) -> None:
    import warnings

    warnings.filterwarnings("ignore")
    from model_catalogue import find_subject
    from model_gate import Outcome, judge, suppress_output

    subject = find_subject(name)
    outcome = Outcome(name, "failed", ["no such model"]) if subject is None else suppress_output(lambda: judge(subject, quick=quick), name)
    partial = Path(f"{file}.part")
    partial.write_text(json.dumps(outcome.as_dict()), encoding="utf-8")
    partial.rename(file)


def _line(outcome: dict[str, Any]) -> str:
    batch = "" if outcome["dynamic"] else "   a batch of one size"
    batch += "" if outcome.get("training", True) else "   as it evaluates"
    counts = f"{outcome['native']:6} {outcome['composed']:6}"
    onnx = outcome["onnx"] or {"status": "-", "faults": []}
    fault = "".join(f"   {' '.join(faults[0].split())[:160]}" for faults in (outcome["faults"], onnx["faults"]) if faults)
    return f"{outcome['name']:36} {outcome['status']:8} {onnx['status']:8} {counts} {outcome['seconds']:7.1f} s{batch}{fault}"


def _print_table(done: list[dict[str, Any]], total: int, *, faults: bool) -> None:
    print(f"\n{'model':36} {'outcome':8} {'ONNX':8} native composed")
    for outcome in done:
        print(_line(outcome))
        for fault in [*outcome["faults"], *(outcome["onnx"] or {"faults": []})["faults"]] if faults else []:
            print("      " + fault.replace("\n", "\n      "))
    passed = sum(outcome["status"] == "passed" for outcome in done)
    native_alone = sum(outcome["status"] == "passed" and not outcome["composed"] for outcome in done)
    refused = sum(outcome["status"] == "refused" for outcome in done)
    exported = Counter((outcome["onnx"] or {"status": "-"})["status"] for outcome in done)
    native, composed = (sum(outcome[key] for outcome in done) for key in ("native", "composed"))
    print(f"\n{passed} of {len(done)} passed, {native_alone} of them by native operators alone; {refused} refused, "
          f"{len(done) - passed - refused} failed; {total - len(done)} of {total} not tried. "
          f"{native + composed} nodes: {native} native, {composed} composed. "
          f"As ONNX: {exported['agrees']} agree, {exported['refused']} refused, {exported['differs']} differ.")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
