"""A process that writes checkpoints, and waits at a gate: before it takes its lock, or before a checkpoint gets its name.

It runs this file instead of ours, is told of the gate by a variable of the environment, and says by a file that it waits there.
"""

import importlib.util
import json
import os
import sys
import time

__all__ = ["VARIABLE"]

VARIABLE = "OARLOCK_SLOW_DISK"


def wait_at(gate: str) -> None:
    with open(f"{gate}.reached", "w"):
        pass
    until = time.monotonic() + 20
    while not os.path.exists(gate) and time.monotonic() < until:
        time.sleep(0.005)


if __name__ == "__main__":
    file, where, gate = json.loads(os.environ[VARIABLE])
    spec = importlib.util.spec_from_file_location("checkpoint_writing", file)
    assert spec is not None
    assert spec.loader is not None
    writing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writing)
    if where == "lock":
        wait_at(gate)
    else:
        rename = os.rename

        def slow(source: str, target: str) -> None:
            if "step-000000004" in target:
                wait_at(gate)
            rename(source, target)

        os.rename = slow  # type: ignore[assignment]
    writing.serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
