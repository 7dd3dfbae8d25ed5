"""The command; `settings` says how it is called."""

import argparse
import sys

from settings import FAST, SETTINGS, run_tests


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m settings", description="Run the tests under settings that change how kernels round.")
    parser.add_argument("tests", nargs="*", help="files or folders of tests, and options of pytest after --; all where none is said")
    parser.add_argument("--fast", action="store_true", help="only tests that compare bits")
    parser.add_argument("--only", nargs="+", choices=list(SETTINGS), default=list(SETTINGS), help="settings", metavar="SETTING")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    failed = 0
    for setting in arguments.only:
        outcome = run_tests(setting, [*(FAST if arguments.fast else ()), *arguments.tests], arguments.processes)
        variables = " ".join(f"{name}={value}" for name, value in SETTINGS[setting].items())
        times = f"{outcome.seconds:.0f} s, {outcome.seconds_of_processors:.0f} s of processors"
        print(f"{setting:<15} {'passed' if outcome.passed else 'FAILED'}  {times}  {variables}", flush=True)
        print(outcome.summary, flush=True)
        failed += not outcome.passed
    print(f"{len(arguments.only) - failed} of {len(arguments.only)} settings passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
