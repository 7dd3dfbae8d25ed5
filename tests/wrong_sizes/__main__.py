"""The command; `wrong_sizes` says how it is called."""

import argparse
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from wrong_sizes.children import Finding, Tally, run
from wrong_sizes.judging import KINDS
from wrong_sizes.trial import draw
from wrong_sizes.uses import OPERATORS, positions, unreachable

__all__ = ["main"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m wrong_sizes", description="Change one size of one argument of every operator.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--only", help="the operator whose arguments are changed")
    parser.add_argument("--trial", type=int, help="run this one trial, and print its program")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="print every finding, not only the shortest program of each kind")
    arguments = parser.parse_args()
    if arguments.only is not None and not any(each.operator == arguments.only for each in positions()):
        parser.error(f"no axis of {arguments.only!r} is tried")
    first, count = (arguments.first, arguments.count) if arguments.trial is None else (arguments.trial, 1)
    if arguments.trial is not None:
        print(draw(arguments.seed, arguments.trial, arguments.only))

    def note(done: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done:,} of {count:,} trials", end="", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        tally = run(
            arguments.seed, range(first, first + count), Path(folder), only=arguments.only, processes=arguments.processes, note=note
        )
    _print_findings(tally, all_of_them=arguments.all or arguments.trial is not None)
    _print_reach(tally, arguments.only)
    print(f"{tally.trials:,} trials, {len({finding.number for finding in tally.findings}):,} with findings; "
          f"{tally.processor_seconds:,.0f} s of processor time")  # fmt: skip
    return 1 if tally.findings else 0


def _print_findings(tally: Tally, *, all_of_them: bool) -> None:
    """Print the findings by kind: how many of which operators, and a program for each."""
    for outcome, count in tally.outcomes.most_common():
        print(f"{count:8,}  {outcome}")
    for kind, meaning in KINDS.items():
        found = [finding for finding in tally.findings if finding.kind == kind]
        if not found:
            continue
        print(f"\n## {kind}: {len(found)}\n{meaning}\n")
        by_axis = Counter(str(finding.axis) for finding in found)
        by_operator = Counter(finding.axis.operator for finding in found)
        for operator, count in by_operator.most_common():
            axes = ", ".join(f"{axis.partition(' ')[2]} {times}" for axis, times in by_axis.items() if axis.partition(" ")[0] == operator)
            print(f"  {operator} {count}: {axes}" if axes else f"  {operator} {count}")
        shown = found if all_of_them else sorted(found, key=_length)[:1]
        for finding in shown:
            print(f"\n--trial {finding.number}  {finding.name}\n{finding.detail}\n{finding.text}")
    print()


def _length(finding: Finding) -> int:
    return len(finding.text) or 10_000


def _print_reach(tally: Tally, only: str | None) -> None:
    """Print how many axes were reached, and those that were not."""
    every = [axis for axis in positions() if only in (None, axis.operator)]
    every = [axis for axis in every if axis.operator in OPERATORS] or every
    missed = [str(axis) for axis in every if axis not in tally.reached]
    written = sum(axis in tally.ran for axis in every)
    print(f"{len(every) - len(missed):,} of {len(every):,} axes reached, {written:,} of them by programs that were accepted when written")
    if missed:
        print(f"not reached: {', '.join(missed[:40])}{' ...' if len(missed) > 40 else ''}")
    reasons: dict[str, list[str]] = {}
    for axis, reason in unreachable().items() if only is None else ():
        reasons.setdefault(reason, []).append(f"{axis.operator} {axis.slot}" + (f"[{axis.axis}]" if axis.axis else ""))
    for reason, axes in reasons.items():
        print(f"cannot be reached, {reason}: {', '.join(axes)}")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
