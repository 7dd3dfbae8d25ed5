"""Does the time to handle a program grow with its size, and no faster?

    python benchmarks/large_programs.py [--without-collector]

Builds chains of 5,000, 50,000 and 100,000 ops, which is the limit of a file; for each way of handling a program, prints
the seconds of CPU time that each takes (the best of three), how much the time per op is of that at the smallest, and the
exponent e of time = c * ops ** e that fits them best: 1 is linear. Python's cyclic collector walks every living object again
whenever a quarter more of them are there, which is linear too, but of a steeper line that small programs do not reach; with
the option it is switched off, and what is left is our own growth.
"""

import argparse
import gc
import math
import time
from collections.abc import Callable, Sequence

import oarlock as ol
from oarlock.ir.verification import verify_program
from oarlock.registry import standard, typecheck

SIZES = (5_000, 50_000, 100_000)


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
    """Seconds of CPU time; what else the machine does is not in them."""
    times = []
    for _ in range(3):
        gc.collect()  # programs are cycles: what the last round left is not this round's
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def exponent(seconds: Sequence[float]) -> float:
    """The slope of the line that fits log seconds over log ops best."""
    xs, ys = [math.log(size) for size in SIZES], [math.log(second) for second in seconds]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


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
    print(f"{'':8}" + "".join(f"{size:>10,} ops" for size in SIZES) + "   time per op    exponent")
    for name, seconds in rows.items():
        per_op = [second / size for second, size in zip(seconds, SIZES, strict=True)]
        growth = "  ".join(f"{each / per_op[0]:.2f}" for each in per_op[1:])
        print(f"{name:8}" + "".join(f"{second:>12.3f} s" for second in seconds) + f"   {growth:14} {exponent(seconds):.2f}")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--without-collector", action="store_true")
    if arguments.parse_args().without_collector:
        gc.disable()
    main()
