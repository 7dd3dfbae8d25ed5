"""Export all programs of seeds, workloads, examples and documents to ONNX, and compare predictions and training steps. For development.

    python tools/onnx_programs.py                         all of them
    python tools/onnx_programs.py seeds workloads         some kinds: seeds, compat_2017, workloads, examples, documents
    python tools/onnx_programs.py examples --only digits  those whose name contains this
    python tools/onnx_programs.py --tests tests/layer     the programs that these tests run

A script runs unchanged, with few epochs; each of its programs is exported for its fetches, and if it trains, the whole step
too. ONNX Runtime gets the same feeds, and its results are compared with our executor's, element by element:
|difference| <= 1e-5 max(1, |y|). Larger differences are counted as rounding if our own run varies as much: without passes, or
with values that differ by up to eight units in their last place. A gradient that should be 0 consists of rounding alone, which Adam
turns into a step, and among a million activations one or two near 0 may get the other sign.

A training step is compared in its fetches and in all values that it writes, for three successive states of ours.
"""

import argparse
import contextlib
import inspect
import io
import os
import re
import runpy
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("src", "benchmarks", "tests", "tools")]

from recorded_programs import Recorded, copied, left_by, recording  # noqa: E402

import oarlock as ol  # noqa: E402
from oarlock.interop.onnx.export import Exported, to_onnx  # noqa: E402
from oarlock.interop.onnx.package import get_package  # noqa: E402
from oarlock.ir.size import evaluate, names_in  # noqa: E402
from oarlock.ir.traversal import walk  # noqa: E402
from oarlock.passes.pruning import prune  # noqa: E402
from oarlock.runtime.context import draws_done  # noqa: E402
from oarlock.runtime.feed import check_feed  # noqa: E402

AGREEMENT = 1e-5  # relative to a value, or to 1 if it is smaller
ROUNDING = 4  # as often as far as our own run moves
STEPS = 3
MOST_TRIPS = 64  # of a loop that draws random numbers
SMALL = {"epochs": 1, "steps": 4, "files": 4}  # the arguments of an example's `main`


@dataclass
class Outcome:
    """The outcome of an export: "agrees", "rounding", "differs", "refused" or "left"; the reason; the difference of the values."""

    source: str
    what: str
    result: str
    reason: str = ""
    apart: float = 0.0


@dataclass
class Source:
    """A script, or other code that runs programs: kind, name, and a function that runs it and returns its globals, if any."""

    kind: str
    name: str
    run: Callable[[], dict[str, Any] | None]
    outcomes: list[Outcome] = field(default_factory=list)


def sources() -> Iterator[Source]:
    """Return all sources, unless tests are named."""
    for path in sorted((ROOT / "tests/examples/seeds").glob("*.py")):
        yield Source("seeds", path.stem, lambda path=path: runpy.run_path(str(path), run_name="__main__"))
    for path in sorted((ROOT / "tests/compat_2017").rglob("test_*.py")):
        yield Source("compat_2017", path.stem, lambda path=path: _run_tests(path))
    import further
    import workloads

    for module in (workloads, further):
        for name in (*module.TRAINING, *module.INFERENCE):
            yield Source("workloads", name, lambda module=module, name=name: _run_workload(module.describe(name)))
    for path in sorted((ROOT / "examples").glob("*.py")):
        yield Source("examples", path.stem, lambda path=path: _run_example(path))
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        code = re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        if code and path.name not in ("api.md", "errors.md", "operators.md"):  # which show pieces
            yield Source("documents", path.stem, lambda code=code: _run_document("\n".join(code)))


def _run_tests(*paths: Path) -> None:
    import pytest

    pytest.main([*map(str, paths), "-q", "--no-header", "-p", "no:cacheprovider", f"--rootdir={ROOT}"])


def _run_workload(workload: Any) -> None:
    executor, scope = ol.Executor(), workload.scope()
    if workload.training:
        executor.run(workload.program, workload.feed, [workload.fetch, *workload.report.values()], scope=scope, training=True)
    else:
        executor.eval(workload.program, [workload.fetch], workload.feed, scope=scope)


def _run_example(path: Path) -> None:
    main = runpy.run_path(str(path), run_name=path.stem)["main"]
    main(**{name: number for name, number in SMALL.items() if name in inspect.signature(main).parameters})


def _run_document(code: str) -> dict[str, Any]:
    path = Path("document.py")  # operators read their own source
    path.write_text(code, encoding="utf-8")
    return runpy.run_path(str(path.resolve()), run_name="__main__")


def drawn_feed(program: ol.Program) -> dict[str, object]:
    """Return a random feed for a program without one: symbols are 2."""
    random, fed = numpy.random.default_rng(0), {}
    for var in program.main.inputs:
        shape = [evaluate(size, dict.fromkeys(names_in(size), 2)) or 0 for size in var.shape or ()]
        whole = var.dtype.is_integer or str(var.dtype) == "bool"
        fed[var.name] = (random.integers(0, 2, shape) if whole else random.normal(size=shape)).astype(str(var.dtype))
    return fed


def run(source: Source) -> list[Recorded]:
    """Return the programs that a source runs. Its output is shown only if it fails."""
    printed, of_children = io.StringIO(), {"PYTHONPATH": str(ROOT / "src")}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), patch.dict(os.environ, of_children), ol.scope.guard(ol.Scope()):
        try:
            with contextlib.redirect_stdout(printed), recording() as recorder:
                names = source.run() or {}
        except BaseException:
            print(printed.getvalue()[-2000:], file=sys.stderr)
            raise
    return recorder.found or left_by(names, drawn_feed)


def compare(source: Source, recorded: Recorded) -> None:
    """Export a program both ways, as far as possible, and record the outcome."""
    whats = [what for what, wanted in (("inference", recorded.program.targets), ("training", recorded.trains)) if wanted]
    if recorded.without:
        source.outcomes.append(Outcome(source.name, "inference", "left", recorded.without))
    for what in whats:
        try:
            verdict = (_training if what == "training" else _inference)(recorded)
            apart, result, reason = verdict.apart, verdict.result, verdict.where
        except ol.VerifyError as error:
            apart, result, reason = 0.0, "left", f"it cannot run here either: {error.message}"
        except _not_implemented() as error:
            apart, result, reason = 0.0, "refused", f"by ONNX Runtime: {re.sub(r'with name .*', '', str(error))}"
        except (ol.ProgramError, ol.UnknownOperatorError) as error:
            apart, result, reason = 0.0, "refused", "; ".join(dict.fromkeys(map(_without_names, error.given))) or error.message
        except Exception as error:  # a fault, ours or of ONNX Runtime
            apart, result, reason = float("inf"), "differs", f"{type(error).__name__}: {error}"
            if not isinstance(error, ol.OarlockError) and "onnxruntime" not in type(error).__module__:
                reason += traceback.format_exc(limit=-2)
        source.outcomes.append(Outcome(source.name, what, result, reason, apart))


def _not_implemented() -> type[Exception]:
    return get_package("onnxruntime").capi.onnxruntime_pybind11_state.NotImplemented


def _without_names(given: str) -> str:
    return re.sub(r" of \S+:", ":", re.sub(r", at \S+:\d+$", "", given), count=1)


def _session(*arguments: Any, **how: Any) -> tuple[Exported, Any]:
    held, runtime = io.BytesIO(), get_package("onnxruntime")
    exported = to_onnx(arguments[0], held, *arguments[1:], **how)
    get_package().checker.check_model(get_package().load_from_string(held.getvalue()), full_check=True)
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return exported, runtime.InferenceSession(held.getvalue(), options)


def _inference(recorded: Recorded) -> "Verdict":
    program, scope = recorded.program, recorded.scope
    exported, session = _session(program, scope, opset=OPSET)
    pruned, labels = prune(program, program.targets), list(program.targets)
    given = {name: value for name, value in recorded.feed.items() if name in pruned.main.vars}
    fed = _fed(pruned, given, scope)
    found = session.run(None, _taken(exported, fed | exported.keys(draws_done(scope), trips=MOST_TRIPS)))

    def ours(executor: ol.Executor, feed: dict[str, Any], held: ol.Scope) -> dict[str, numpy.ndarray]:
        return dict(zip(labels, executor.eval(pruned, labels, feed, scope=held), strict=True))

    expected = ours(ol.Executor(), fed, scope)
    return judge(expected, dict(zip(labels, found, strict=True)), lambda: moved(ours, fed, pruned, scope))


def _training(recorded: Recorded) -> "Verdict":
    program, scope = recorded.program, recorded.scope
    exported, session = _session(program, scope, opset=OPSET, training=True)
    fed = _fed(program, recorded.feed, scope, {var for op in walk(program.main) for var in op.reads})
    labels, worst = list(program.targets), Verdict()

    def ours(executor: ol.Executor, feed: dict[str, Any], held: ol.Scope) -> dict[str, numpy.ndarray]:
        values = dict(zip(labels, executor.run(program, feed, labels, scope=held, training=True), strict=True))
        return values | {following: numpy.asarray(held[name]).copy() for name, following in exported.state.items()}

    for step in range(STEPS):
        state = {name: numpy.asarray(scope[name]).copy() if name in scope else exported.first[name] for name in exported.state}
        values = session.run(None, _taken(exported, fed | state | exported.keys(draws_done(scope), trips=MOST_TRIPS)))
        before = copied(program, scope)
        expected = ours(ol.Executor(), fed, scope)
        found = dict(zip([*labels, *exported.state.values()], values, strict=True))
        verdict = judge(expected, found, lambda before=before: moved(ours, fed, program, before))
        worst = max(worst, replace(verdict, where=f"{verdict.where}, step {step}"), key=lambda item: (item.result != "agrees", item.apart))
    return worst


@dataclass(frozen=True)
class Verdict:
    """The position and size of the difference of two runs, and whether it exceeds rounding."""

    apart: float = 0.0
    where: str = ""
    result: str = "agrees"


Values = dict[str, numpy.ndarray]


def judge(expected: Values, found: Values, again: Callable[[], list[Values]]) -> Verdict:
    """Compare. A difference above AGREEMENT is rounding if a run of `again` differs from our own run as much."""
    apart = distances(expected, found)
    worst = max(apart, key=apart.__getitem__, default="")
    far = [name for name in apart if apart[name] > AGREEMENT]
    if not far:
        return Verdict(apart.get(worst, 0.0))
    others = [distances(expected, other) for other in again()]
    own = {name: max(other[name] for other in others) for name in far}
    result = "rounding" if all(apart[name] <= ROUNDING * own[name] for name in far) else "differs"
    where = "; ".join(f"{name} by {apart[name]:.1e}, ours moves by {own[name]:.1e}" for name in far[:8])
    return Verdict(apart[worst], where, result)


def moved(ours: Callable[..., Values], fed: Values, program: ol.Program, scope: ol.Scope) -> list[Values]:
    """Run ours with another order of rounding, and with values that differ by at most eight units in their last place."""
    found = [ours(ol.Executor(passes=()), fed, copied(program, scope))]
    for seed in range(6):
        random, held = numpy.random.default_rng(seed), copied(program, scope)
        for name in held:
            held.set(name, torch.from_numpy(_off(random, numpy.asarray(held[name]))))
        found.append(ours(ol.Executor(), {name: _off(random, value) for name, value in fed.items()}, held))
    return found


def _off(random: numpy.random.Generator, value: numpy.ndarray) -> numpy.ndarray:
    if value.dtype.kind != "f":
        return value
    return numpy.asarray(value * (1 + numpy.finfo(value.dtype).eps * random.integers(-8, 9, value.shape)), dtype=value.dtype)


def _fed(program: ol.Program, feed: dict[str, object], scope: ol.Scope, needed: set[ol.Var] | None = None) -> dict[str, numpy.ndarray]:
    inputs = set(program.main.inputs)
    tensors = check_feed(program, feed, inputs if needed is None else inputs & needed, ol.CPUPlace(), scope)
    return {name: tensor.numpy() for name, tensor in tensors.items() if tensor.dtype is not torch.bfloat16}


def _taken(exported: Exported, given: dict[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
    return {name: given[name] for name in exported.inputs}


def distances(expected: Values, found: Values) -> dict[str, float]:
    """Return the largest difference of each value, relative to max(1, |y|); infinite if types differ."""
    apart = {}
    for name, value in expected.items():
        wanted, given = numpy.asarray(value), found[name]
        if given.shape != wanted.shape or given.dtype != wanted.dtype:
            apart[name] = float("inf")
            continue
        wide, theirs = wanted.astype("complex128"), given.astype("complex128")
        same = (wide == theirs) | (numpy.isnan(wide) & numpy.isnan(theirs))
        with numpy.errstate(invalid="ignore", over="ignore"):
            each = numpy.where(same, 0.0, numpy.nan_to_num(abs(wide - theirs) / numpy.maximum(1.0, abs(wide)), nan=numpy.inf))
        apart[name] = float(each.max()) if each.size else 0.0
    return apart


def line(source: Source) -> str:
    """Return the table's line of one source."""
    parts = []
    for what in ("inference", "training"):
        outcomes = [item for item in source.outcomes if item.what == what and item.result != "left"]
        agree = [item for item in outcomes if item.result in ("agrees", "rounding")]
        largest = max((item.apart for item in agree), default=0.0)
        parts.append(f"{len(agree):3} of {len(outcomes):3}  {largest:.1e}" if outcomes else f"{'-':>10} {'':8}")
    return f"{source.kind:12} {source.name:28} {parts[0]}   {parts[1]}"


def report(tried: list[Source]) -> int:
    """Print the disagreements by reason, and the count."""
    outcomes = [outcome for source in tried for outcome in source.outcomes]
    for result in ("differs", "rounding", "refused", "left"):
        reasons = Counter((item.reason, item.what) for item in outcomes if item.result == result)
        for (reason, what), count in reasons.most_common():
            names = sorted({item.source for item in outcomes if (item.result, item.reason, item.what) == (result, reason, what)})
            print(f"{result:8} {count:3} {what:9} {reason[:1500]}   ({', '.join(names[:6])})")
    print()
    for what in ("inference", "training"):
        chosen = [item for item in outcomes if item.what == what and item.result != "left"]
        counts = Counter(item.result for item in chosen)
        print(
            f"{what:9} {counts['agrees']} of {len(chosen)} agree, {counts['rounding']} more within what rounding moves our own run,"
            f" {counts['differs']} differ, {counts['refused']} are refused"
        )
    empty = [source.name for source in tried if not source.outcomes]
    print(f"{len(tried)} sources; without any program: {', '.join(empty) or 'none'}")
    return 1 if any(item.result == "differs" for item in outcomes) else 0


def main() -> int:
    global OPSET
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", help="seeds, compat_2017, workloads, examples, documents; default: all")
    parser.add_argument("--only", default="", help="those whose name contains this")
    parser.add_argument("--tests", nargs="+", type=Path, default=[], help="files or folders of tests, instead of the kinds")
    parser.add_argument("--opset", type=int, default=OPSET)
    arguments = parser.parse_args()
    OPSET = arguments.opset
    chosen = [source for source in sources() if source.kind in (arguments.kinds or (source.kind,)) and arguments.only in source.name]
    if arguments.tests:
        paths = [path.resolve() for path in arguments.tests]
        chosen = [Source("tests", path.stem, lambda path=path: _run_tests(path)) for path in paths]
    print(f"{'':41} inference, largest     training, largest")
    for source in chosen:
        for recorded in run(source):
            compare(source, recorded)
        print(line(source), flush=True)
    return report(chosen)


OPSET = 18

if __name__ == "__main__":
    sys.exit(main())
