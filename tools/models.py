"""The models people have, taken in: each of a list is imported, held to the gate, saved and exported; and a table of it is printed.

    python tools/models.py                                   all of ../shared/models/models_dev.json, or what is left of it
    python tools/models.py --only tv/resnet18,hf/gpt2        these, whether they have a result or not
    python tools/models.py --count 20                        20 that have no result yet
    python tools/models.py --table                           the table of the results that there are

Each model runs in a process of its own, for at most `--limit` seconds; its result is a file in `--results`, so a run that was stopped
goes on where it was. torchvision, timm and transformers must be installed beside Oarlock; no weights are fetched.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent


def main() -> int:
    arguments = _parse()
    if arguments.one:
        return _judge_here(arguments.one, quick=arguments.quick)
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
    parser.add_argument("--only", default="", help="names, with commas between them")
    parser.add_argument("--count", type=int, default=0, help="how many to judge, at most")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds for one model")
    parser.add_argument("--results", default=str(_HERE.parent / "build/models"), help="the folder of results")
    parser.add_argument("--quick", action="store_true", help="float32 at the first size alone, float64 at the second")
    parser.add_argument("--again", action="store_true", help="judge what did not pass once more")
    parser.add_argument("--table", action="store_true", help="judge nothing, print the table")
    parser.add_argument("--faults", action="store_true", help="print all that is wrong with each")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
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
    """The outcome of a model, from a process of its own; one that ends otherwise, or too late, has failed."""
    command = [sys.executable, str(_HERE / "models.py"), "--one", name, *(["--quick"] if arguments.quick else [])]
    package = str(_HERE.parent / "src")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, str(_HERE)]), "TOKENIZERS_PARALLELISM": "false"}
    fault = ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.limit, env=environment, check=False)
        found = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if found:
            return json.loads(found[-1])
        fault = f"the process ended with {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1][:300]}"
    except subprocess.TimeoutExpired:
        fault = f"more than {arguments.limit:.0f} s"
    counts = {"nodes": 0, "native": 0, "composed": 0}
    return {"name": name, "status": "failed", "faults": [fault], **counts, "dynamic": True, "seconds": 0.0, "onnx": None}


def _judge_here(name: str, *, quick: bool) -> int:
    sys.path.insert(0, str(_HERE))
    import warnings

    warnings.filterwarnings("ignore")
    from model_catalogue import find_subject
    from model_gate import Outcome, judge, quietly

    subject = find_subject(name)
    outcome = Outcome(name, "failed", ["no such model"]) if subject is None else quietly(lambda: judge(subject, quick=quick), name)
    print(json.dumps(outcome.as_dict()))
    return 0


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
