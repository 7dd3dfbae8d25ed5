"""Run the node tests of the package `onnx` by interpreter and plan: count the passed ones, and list the reasons of the others.

    python tools/onnx_cases.py                      the table
    python tools/onnx_cases.py --only reshape       cases whose name contains this, one line each
    python tools/onnx_cases.py --list refused       the cases with this outcome, by reason

A case passes if both results equal the expected ones within its tolerance; 16-bit floats within the two last bits.
Inputs that must be known before a program is written, such as the axes of a reduction, are passed as constants if the case has
them as inputs: those cases count as passed, and are counted separately too.
"""

import argparse
import re
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import onnx
import torch
from onnx import numpy_helper
from onnx.backend.test import loader

import oarlock as ol

OUT_OF_COUNT = ("string", "sequence", "optional", "map", "quantised type", "another domain")


@dataclass
class Outcome:
    """The outcome of a case: "passed", "refused" or "failed"; the reason; the inputs that were given as constants."""

    name: str
    result: str
    reason: str = ""
    constants: list[str] = field(default_factory=list)
    seconds: float = 0.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="onnx_cases.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--list", choices=("passed", "refused", "failed", "left"), help="print the cases with this outcome")
    parser.add_argument("--every", type=int, default=1, help="test one case in N")
    arguments = parser.parse_args()
    outcomes = [run_case(case) for case in cases(arguments.only)[:: arguments.every]]
    return report(outcomes, arguments.list, bool(arguments.only))


def cases(only: str = "") -> list[Any]:
    """Return the node cases ordered by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = loader.load_model_tests(kind="node")
    return sorted((case for case in found if only in case.name), key=lambda case: case.name)


def run_case(case: Any) -> Outcome:
    """Import a case, run it twice, and compare."""
    started = time.perf_counter()
    left = left_out(case.model)
    outcome = Outcome(case.name, "left", left) if left else _judge(case)
    outcome.seconds = time.perf_counter() - started
    return outcome


def left_out(model: onnx.ModelProto) -> str:
    """Return why a case is not counted, or ""."""
    types: set[int] = set()
    for item in (*model.graph.input, *model.graph.output):
        kind = item.type.WhichOneof("value")
        if kind != "tensor_type":
            return {"sequence_type": "sequence", "optional_type": "optional"}.get(kind, "map")
        types.add(item.type.tensor_type.elem_type)
    for node in _nodes(model.graph):
        if node.domain not in ("", "ai.onnx"):
            return "another domain"
        if re.search("Sequence|Optional", node.op_type) and node.op_type != "ReverseSequence":
            return "sequence" if "Sequence" in node.op_type else "optional"
        if re.search("String|Tfidf|Regex|LabelEncoder|ImageDecoder", node.op_type):
            return "string"
        if re.search("(?i)quant|QLinear|Integer", node.op_type):
            return "quantised type"
        types |= {attribute.i for attribute in node.attribute if node.op_type == "Cast" and attribute.name == "to"}
    if 8 in types:
        return "string"
    if any(number >= 17 for number in types):  # float8, float4, int4, int2
        return "quantised type"
    return ""


def _nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    found = []
    for node in graph.node:
        found.append(node)
        for attribute in node.attribute:
            found += _nodes(attribute.g) if attribute.HasField("g") else []
    return found


def _judge(case: Any) -> Outcome:
    constants: dict[str, torch.Tensor] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.onnx"
        path.write_bytes(case.model.SerializeToString())
        inputs, expected = case.data_sets[0]
        names = [item.name for item in case.model.graph.input]
        given = dict(zip(names, inputs, strict=False))
        try:
            while True:
                try:
                    model = ol.from_onnx(path, values=constants)
                    break
                except ol.UnsupportedError as error:
                    gaps = error.refusals  # type: ignore[attr-defined]
                wanted = {gap.unknown for gap in gaps if gap.unknown in given} - constants.keys()
                wanted = wanted or _shapes(given) - constants.keys()
                if not wanted:
                    result = "failed" if "its rule failed" in gaps[0].reason else "refused"
                    return Outcome(case.name, result, f"{gaps[0].operator}: {gaps[0].reason}")
                constants |= {name: _tensor(given[name]) for name in wanted if name}
            return _compared(case, model, given, expected, constants)
        except ol.OarlockError as error:
            return Outcome(case.name, "failed", f"{type(error).__name__}: {error.message}", list(constants))
        except Exception as error:
            return Outcome(case.name, "failed", f"CRASH {type(error).__name__}: {error}"[:300], list(constants))


def _shapes(given: dict[str, Any]) -> set[str]:
    """Return the inputs that may be shapes or operands: vectors of numbers. Without them, no input would be left to feed."""
    found = {name for name, value in given.items() if _tensor(value).dtype is torch.int64 and _tensor(value).ndim <= 1}
    return found if len(found) < len(given) else set()


def _compared(case: Any, model: ol.Model, given: dict[str, Any], expected: Any, constants: dict[str, Any]) -> Outcome:
    feed = {}
    for var, name in zip(model.program.main.inputs, [name for name in given if name not in constants], strict=True):
        feed[var.name] = _tensor(given[name])
    for executor in (ol.Executor(interpret=True, check=True), ol.Executor()):
        values = executor.eval(model.program, list(model.program.targets), feed, scope=model.scope, return_numpy=False)
        for number, (value, wanted) in enumerate(zip(values, expected, strict=True)):
            difference = _difference(value, _tensor(wanted), case.rtol, case.atol)
            if difference:
                how = "plan" if executor.planned else "interpreter"
                return Outcome(case.name, "failed", f"output {number} of the {how}: {difference}", list(constants))
    return Outcome(case.name, "passed", "", list(constants))


def _tensor(value: Any) -> torch.Tensor:
    value = numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
    array = numpy.asarray(value)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(numpy.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def _difference(value: torch.Tensor, wanted: torch.Tensor, relative: float, absolute: float) -> str:
    if value.shape != wanted.shape:
        return f"{list(value.shape)} where {list(wanted.shape)} is expected"
    if value.dtype is not wanted.dtype:
        return f"{value.dtype} where {wanted.dtype} is expected"
    if value.dtype in (torch.float16, torch.bfloat16):
        relative = absolute = max(relative, 4 * torch.finfo(value.dtype).eps)
    close = torch.isclose(value.double(), wanted.double(), rtol=relative, atol=absolute, equal_nan=True)
    return "" if bool(close.all()) else f"{int((~close).sum())} of {close.numel()} elements differ"


def report(outcomes: list[Outcome], listed: str | None, each: bool) -> int:
    """Print the table."""
    results = Counter(outcome.result for outcome in outcomes)
    counted = len(outcomes) - results["left"]
    constants = sum(bool(outcome.constants) for outcome in outcomes if outcome.result == "passed")
    if each or listed:
        for outcome in outcomes:
            if listed in (None, outcome.result):
                print(f"{outcome.result:8} {outcome.name}  {outcome.reason[:200]}  {' '.join(outcome.constants)}".rstrip())
    for result in ("failed", "refused", "left"):
        reasons: dict[str, list[str]] = defaultdict(list)
        for outcome in outcomes:
            if outcome.result == result:
                reasons[re.sub(r"\b\d+\b", "N", outcome.reason)[:110]].append(outcome.name)
        print(f"\n{result}")
        for reason, names in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
            print(f"  {len(names):5}  {reason}   ({names[0]})")
    print(f"\n{len(outcomes)} cases, {results['left']} of them not counted: {', '.join(OUT_OF_COUNT)}")
    print(
        f"passed  {results['passed']} of {counted}, {100 * results['passed'] / max(counted, 1):.1f} %; {constants} with inputs as constants"
    )
    print(f"refused {results['refused']}   failed {results['failed']}")
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
