"""The command; `fuzz` says how it is called."""

import argparse
import contextlib
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from fuzz.arrays import judge_arrays, make_arrays
from fuzz.judging import LONGEST_SECONDS, MOST_MEMORY, Tally, judge
from fuzz.making import make
from fuzz.texts import judge_text, make_text

__all__ = ["run"]


def run(seed: int, numbers: range, folder: Path, keep: Path | None = None) -> Tally:
    """Make and judge files, one after another, in this process."""
    tally = Tally()
    path = folder / "fuzzed\x1b[2J.safetensors"  # what a file is called is a stranger's, too
    for number in numbers:
        made = make(seed, number)
        path.write_bytes(made.data)
        failed = len(tally.failures)
        judge(path, tally, f"--seed {seed} --only {number} ({made.seed_program}: {', '.join(made.mutators)})")
        if keep is not None and len(tally.failures) > failed:
            (keep / f"{seed}-{number}.safetensors").write_bytes(made.data)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Make malformed model files and read them.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--arrays", action="store_true", help="make .npz files, and read them as a data set is")
    parser.add_argument("--texts", action="store_true", help="make CSV files and the texts of run folders, and read them")
    parser.add_argument("--onnx", action="store_true", help="make ONNX models, and import them")
    parser.add_argument("--pt2", action="store_true", help="make .pt2 archives, as torch.export.save does, and import them")
    parser.add_argument("--only", type=int, help="make and judge this one file")
    parser.add_argument("--keep", type=Path, help="a folder for the files that fail")
    arguments = parser.parse_args()
    first, count = (arguments.first, arguments.count) if arguments.only is None else (arguments.only, 1)
    numbers = range(first, first + count)
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    if arguments.arrays:
        return _run_arrays(arguments.seed, numbers)
    if arguments.texts:
        return _run_imports("--texts", arguments, numbers, make_text, judge_text)
    if arguments.onnx:
        from fuzz.onnx_models import judge_onnx, make_onnx  # which need an extra

        return _run_imports("--onnx", arguments, numbers, lambda random: ("onnx", make_onnx(random)), judge_onnx)
    if arguments.pt2:
        from fuzz.exported_archives import judge_archive, make_archive

        return _run_imports("--pt2", arguments, numbers, make_archive, judge_archive)
    with tempfile.TemporaryDirectory() as folder:
        run(arguments.seed, range(20), Path(folder))  # what is made once and kept does not count as growth
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        tally = run(arguments.seed, numbers, Path(folder), arguments.keep)
    return _report(tally, before)


def _report(tally: Tally, before: int) -> int:
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    for outcome, count in tally.outcomes.most_common():
        print(f"{count:8,}  {outcome}")
    print(f"seconds   p50 {tally.percentile(0.5):.4f}   p99 {tally.percentile(0.99):.4f}   longest {max(tally.seconds):.3f}")
    print(f"memory    grew by {grown:.0f} MiB at its highest")
    print("\n".join(tally.failures[:50]) or "0 failures")
    return 1 if tally.failures else 0


def _run_arrays(seed: int, numbers: range) -> int:
    outcomes: Counter[str] = Counter()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            try:
                outcomes[judge_arrays(Path(folder) / "a\x1b[2J.npz", make_arrays(Random(f"{seed} {number}")))] += 1
            except Exception as error:
                failures.append(f"--arrays --seed {seed} --only {number}: {type(error).__name__}: {str(error)[:300]}")
    for outcome, count in outcomes.most_common():
        print(f"{count:8,}  {outcome}")
    print("\n".join(failures[:50]) or "0 failures")
    return 1 if failures else 0


def _run_imports(
    option: str,
    arguments: argparse.Namespace,
    numbers: range,
    make: Callable[[Random], tuple[str, bytes]],
    judge: Callable[[Path, bytes], str],
) -> int:
    """Make and judge files of other formats; one that takes too long or too much memory has failed as well."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(10):  # what is made once and kept does not count as growth
            with contextlib.suppress(Exception):
                judge(Path(folder), make(Random(f"first {number}"))[1])
        before = highest = _memory()
        for number in numbers:
            what, data = make(Random(f"{arguments.seed} {number}"))
            label, failed = f"{option} --seed {arguments.seed} --only {number} ({what})", len(tally.failures)
            started = time.process_time()  # on a machine that does other things too, the clock says nothing of a file
            try:
                tally.outcomes[judge(Path(folder), data)] += 1
            except Exception as error:
                tally.failures.append(f"{label}: {type(error).__name__}: {str(error)[:300]}")
            tally.seconds.append(time.process_time() - started)
            grown, highest = _memory() - highest, max(highest, _memory())
            if tally.seconds[-1] > LONGEST_SECONDS:
                tally.failures.append(f"{label}: {tally.seconds[-1]:.1f} seconds")
            if grown > MOST_MEMORY:
                tally.failures.append(f"{label}: {grown / 2**20:.0f} MiB")
            if arguments.keep is not None and len(tally.failures) > failed:
                (arguments.keep / f"{arguments.seed}-{number}").write_bytes(data)
            if failed < len(tally.failures):
                print(*tally.failures[failed:], sep="\n", file=sys.stderr, flush=True)
    return _report(tally, before // 1024)


def _memory() -> int:
    """The most memory that this process had so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main())
