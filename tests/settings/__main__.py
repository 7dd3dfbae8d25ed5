"""The command; `settings` says how it is called."""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from settings import FAST, SETTINGS, run_tests


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m settings", description="Run the tests under settings that change how kernels round.")
    parser.add_argument("tests", nargs="*", help="files or folders of tests, and options of pytest after --; all where none is said")
    parser.add_argument("--fast", action="store_true", help="only what compares bits; not with one thread, as all tests run anyhow")
    parser.add_argument("--only", nargs="+", choices=list(SETTINGS), default=list(SETTINGS), help="settings", metavar="SETTING")
    parser.add_argument("--processes", type=int, default=2, help="how many settings are tried at once")
    arguments = parser.parse_args()
    settings = [setting for setting in arguments.only if not (arguments.fast and SETTINGS[setting] == {"OMP_NUM_THREADS": "1"})]
    chosen = [*(FAST if arguments.fast else ()), *arguments.tests]
    failed = 0
    with ThreadPoolExecutor(arguments.processes) as pool:
        for setting, outcome in zip(settings, pool.map(lambda setting: run_tests(setting, chosen), settings), strict=True):
            variables = " ".join(f"{name}={value}" for name, value in SETTINGS[setting].items())
            print(f"{setting:<15} {'passed' if outcome.passed else 'FAILED'}  {outcome.seconds:.0f} s  {variables}", flush=True)
            print(outcome.summary, flush=True)
            failed += not outcome.passed
    print(f"{len(settings) - failed} of {len(settings)} settings passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
