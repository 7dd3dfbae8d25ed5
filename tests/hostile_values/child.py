"""A child: it writes what it is about to do, does it, and writes what came of it."""

import os
import resource
import sys
import traceback
from pathlib import Path

from hostile_values.trial import EXECUTORS, make
from hostile_values.uses import USES

__all__ = ["main"]

ADDRESS_SPACE = 6 * 2**30  # where sizes lie, memory is refused, not taken


def main(seed: int, begin: int, end: int, report: str) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    out = os.open(report, os.O_WRONLY | os.O_APPEND)

    def say(text: str) -> None:
        os.write(out, (text.replace("\n", " ") + "\n").encode())

    say(f"uses {len(USES)}")

    def fail(what: str, error: Exception) -> None:
        where = traceback.extract_tb(error.__traceback__)[-1]
        say(f"failed {what}: {type(error).__name__}: {str(error)[:200]} at {Path(where.filename).name}:{where.lineno}")

    for number in range(begin, end):
        say(f"trial {number} {USES[number % len(USES)].name}")
        try:
            trial = make(seed, number)
        except Exception as error:
            fail("when it was written", error)
            continue
        if trial.refused:
            say(f"came {trial.refused} when it was written")
            continue
        for executor in EXECUTORS:
            say(f"begin {executor} {trial.name}")
            try:
                say(f"came {trial.run(executor)}")
            except Exception as error:
                fail(f"{trial.name} by {executor}", error)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), sys.argv[4])
