"""Run PyTorch's operator database, `torch.testing._internal`, as programs of one call, and report which names pass and why others do not.

    python tools/operator_database.py                       every name, some minutes
    python tools/operator_database.py sum nn.functional.elu these names, with the reasons for failures
    python tools/operator_database.py --every 10            one sample in ten
    python tools/operator_database.py --reasons             the reasons of every name, not only the totals
    python tools/operator_database.py --dtype complex128    complex samples

A sample passes if the results of interpreter and plan equal PyTorch's, and so do the gradients for random output gradients.
A name passes if at least 90 % of its samples do; of second order, if as many second gradients do too. Errors of PyTorch must be
errors of ours when the program is written. It needs the package `expecttest`.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from database_judge import Outcome, judge, judge_error
from database_samples import Entry, entries
from database_table import LEFT_OUT, TABLE

SHARE = 0.9


@dataclass
class Result:
    """The counts of passed and all samples of a name, and the reasons of the others."""

    name: str
    samples: int = 0
    forward: int = 0
    first: int = 0
    second: int = 0
    twice: int = 0  # samples that have a second order
    errors: int = 0
    refused: int = 0
    seconds: float = 0.0
    differentiable: bool = False
    reasons: Counter[str] = field(default_factory=Counter)
    error_reasons: Counter[str] = field(default_factory=Counter)

    @property
    def passes(self) -> bool:
        """Return whether 90 % of the samples pass forward and gradient."""
        return self.samples > 0 and self.first >= SHARE * self.samples

    @property
    def passes_twice(self) -> bool:
        """Return whether they pass the second order too, if they have one."""
        return self.passes and self.twice > 0 and self.second >= SHARE * self.samples

    def count(self, outcome: Outcome) -> None:
        """Count a sample."""
        self.samples += 1
        passed_first = outcome.left is None and outcome.forward == "" and not outcome.first
        self.forward += outcome.left is None and outcome.forward == ""
        self.first += passed_first
        self.second += passed_first and not outcome.second
        self.twice += outcome.second is not None
        for part in ("left", "forward", "first", "second"):
            if getattr(outcome, part):
                self.reasons[f"{part}: {plain(getattr(outcome, part))}"] += 1

    def count_error(self, outcome: Outcome) -> None:
        """Count a sample that PyTorch refuses."""
        if outcome.left is None:
            self.errors += 1
            self.refused += outcome.forward == ""
        if outcome.left or outcome.forward:
            self.error_reasons[plain(outcome.left or outcome.forward or "")] += 1


def plain(reason: str) -> str:
    """Return a reason without its numbers, so that equal ones are counted together."""
    return re.sub(r"\[[-\d, nan]*\]", "[...]", re.sub(r"-?\b\d+(\.\d+)?\b", "N", reason))[:130]


def run(entry: Entry, dtype: torch.dtype, every: int = 1) -> Result:
    """Test every sample of a name, and every error."""
    result, ours = Result(entry.name, differentiable=entry.differentiable(1)), TABLE[entry.name]
    started = time.perf_counter()
    for number, sample in enumerate(entry.samples(dtype)):
        if number % every == 0:
            result.count(judge(entry, sample, ours))
    for sample in entry.error_samples():
        result.count_error(judge_error(sample, ours))
    result.seconds = time.perf_counter() - started
    return result


def line(result: Result) -> str:
    """Return a line of the table."""
    second = f"{result.second:5}" if result.twice else "    -"
    errors = f"{result.refused}/{result.errors}" if result.errors else "-"
    mark = "pass" if result.passes else "    "
    return f"{mark} {result.name:46} {result.samples:6} {result.forward:7} {result.first:8} {second} {errors:>7}"


def report(results: list[Result], each: bool) -> None:
    """Print the table, and the totals by the rule."""
    print(f"     {'name':46} samples forward gradient second errors")
    for result in results:
        print(line(result))
        if each:
            for reason, count in [
                *result.reasons.most_common(),
                *(("error input: " + r, n) for r, n in result.error_reasons.most_common()),
            ]:
                print(f"         {count:5}  {reason}")
    passed = [result for result in results if result.passes]
    twice = [result for result in passed if result.passes_twice]
    refused, errors = sum(result.refused for result in results), sum(result.errors for result in results)
    print(f"\n{len(results)} names with {sum(result.samples for result in results)} samples")
    print(f"pass forward and gradient   {len(passed)}, {sum(result.differentiable for result in passed)} of which have gradients")
    print(f"pass second order too       {len(twice)}")
    print(f"error inputs refused        {refused} of {errors}, when the program is written")


def report_rest(results: list[Result], names: list[str]) -> None:
    """Print the failures by reason."""
    print("\nnames that do not pass, by the most frequent reason")
    rest: dict[str, list[str]] = {}
    for result in results:
        if not result.passes:
            reason = result.reasons.most_common(1)[0][0] if result.reasons else "no samples"
            rest.setdefault(reason, []).append(result.name)
    for name in names:
        if name not in TABLE:
            rest.setdefault(LEFT_OUT.get(name, "no counterpart yet"), []).append(name)
    for reason, found in sorted(rest.items(), key=lambda pair: -len(pair[1])):
        print(f"  {len(found):4}  {reason}: {', '.join(found)}")
    print("\nerror inputs that are not refused, by reason")
    reasons: dict[str, list[str]] = {}
    for result in results:
        for reason, count in result.error_reasons.items():
            reasons.setdefault(reason, []).append(f"{result.name} {count}")
    for reason, found in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
        print(f"  {len(found):4}  {reason}: {', '.join(found)}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="operator_database.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these names")
    parser.add_argument("--dtype", default="float64", help="the dtype of the samples")
    parser.add_argument("--every", type=int, default=1, help="test one sample in N")
    parser.add_argument("--reasons", action="store_true", help="print the reasons for every name")
    parser.add_argument("--results", type=Path, help="file for the results, as JSON")
    arguments = parser.parse_args()
    dtype = getattr(torch, arguments.dtype)
    unknown = [name for name in arguments.names if name not in entries()]
    if unknown:
        parser.error(f"PyTorch's database has no {', '.join(unknown)}")
    names = arguments.names or [name for name, entry in entries().items() if entry.has(dtype)]
    results = []
    for name in names:
        if name in TABLE:
            results.append(run(entries()[name], dtype, arguments.every))
            print(f"\r{len(results):4} {name:60}", end="", file=sys.stderr, flush=True)
    print("\r" + " " * 70 + "\r", end="", file=sys.stderr)
    report(results, arguments.reasons or bool(arguments.names))
    report_rest(results, names)
    if arguments.results:
        arguments.results.write_text(json.dumps([_as_json(result) for result in results], indent=1))
    return 0


def _as_json(result: Result) -> dict[str, Any]:
    return {**vars(result), "passes": result.passes, "passes_twice": result.passes_twice}


if __name__ == "__main__":
    sys.exit(main())
