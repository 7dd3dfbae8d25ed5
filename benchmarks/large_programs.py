"""Does the time to handle a program grow with its size, and no faster?

    python benchmarks/large_programs.py [--without-collector]

Builds chains of 5,000 and 50,000 ops; for each way of handling a program, prints the seconds that both take (the
best of three) and how the time per op changed. Python's cyclic collector walks every living object again and again
while large programs are built; with the option it is switched off, and what is left is our own growth.
"""

import argparse
import gc
import time
from collections.abc import Callable

import oarlock as ol
from oarlock.ir.verify import verify_program
from oarlock.registry import standard, typecheck

SIZES = (5_000, 50_000)


def build(count: int) -> ol.Program:
    """A chain of `count` ops, a residual connection at every tenth."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        for number in range(count):
            x = ol.op.add(x, program.main.inputs[0]) if number % 10 == 9 else ol.layer.tanh(x)
        program.targets["y"] = x
    return program


def verify(program: ol.Program) -> None:
    verify_program(program)
    typecheck(program, standard)


def best_of_three(work: Callable[[], object]) -> float:
    """Seconds."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    rows: dict[str, list[float]] = {}
    for count in SIZES:
        program = build(count)
        other = build(count)
        text, data = program.to_text(), program.to_bytes()
        middle = list(program.main.vars.values())[count // 2]
        work = {
            "build": lambda count=count: build(count),
            "verify": lambda program=program: verify(program),
            "print": lambda program=program: program.to_text(),
            "parse": lambda text=text: ol.parse_program(text),
            "write": lambda program=program: program.to_bytes(),
            "read": lambda data=data: ol.Program.from_bytes(data),
            "diff": lambda program=program, other=other: ol.diff_programs(program, other),
            "prune": lambda program=program, middle=middle: ol.prune(program, {"middle": middle}),
            "hash": lambda program=program: ol.content_hash(program),
        }
        for name, call in work.items():
            rows.setdefault(name, []).append(best_of_three(call))
    print(f"{'':8}{SIZES[0]:>10,} ops{SIZES[1]:>10,} ops   time per op, against the smaller")
    for name, (small, large) in rows.items():
        print(f"{name:8}{small:>12.3f} s{large:>12.3f} s   {large / small / (SIZES[1] / SIZES[0]):.2f}")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--without-collector", action="store_true")
    if arguments.parse_args().without_collector:
        gc.disable()
    main()
