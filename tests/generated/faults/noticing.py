"""One process of `generated.faults`: programs are made and checked until a check fails.

The last line that it prints is {"programs": how many were made by then, or null, "reason": the error}. A program that takes longer than
a minute ends the process with an error: that is no failing check.
"""

import json
import signal
import sys
from pathlib import Path

import oarlock
from generated.checking import check
from generated.making import make

SECONDS = 60  # for one program, which takes a fraction of one; a fault may make a loop that never ends


def main(seed: int, count: int, source: Path) -> None:
    if not Path(oarlock.__file__).resolve().is_relative_to(source.resolve()):
        raise SystemExit(f"oarlock comes from {oarlock.__file__}, not from {source}")
    found: dict[str, object] = {"programs": None, "reason": f"no check of {count:,} programs fails"}
    for number in range(count):
        signal.alarm(SECONDS)  # the signal ends the process
        try:
            check(make(seed, number))
        except Exception as error:
            found = {"programs": number + 1, "reason": f"{type(error).__name__}: {error}".partition("\n")[0]}
            break
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
