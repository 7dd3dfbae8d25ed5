"""The texts of plans, to compare before and after a change that should leave them as they are.

    PYTHONPATH=tests python benchmarks/plan_texts.py FOLDER [--programs 300] [--seed 0]

Writes one file for each workload, and one for each of some generated programs with its gradients, each after all passes and without any.
`diff -r BEFORE AFTER` shows what differs.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import measure
from generated.making import make
from generated.running import differentiate

import oarlock as ol


def text_of(program: ol.Program, fetch: Sequence[ol.Var]) -> str:
    """The plan after all passes, how often each applied, and the plan without any."""
    passed, plain = ol.Executor().plan(program, fetch), ol.Executor(passes=()).plan(program, fetch)
    applied = " ".join(f"{name}:{count}" for name, count in passed.applied.items() if count)
    return f"{passed.text}\n# {applied}\n\n{plain.text}\n"


def text_of_workload(name: str) -> str:
    package = measure.PACKAGES[name]
    workload = package.write(name, *package.draw(name))
    return text_of(workload.program, [workload.fetch])


def text_of_generated(seed: int, number: int) -> str:
    """Of one with loops nested too deeply for a plan, that it has none."""
    case = make(seed, number)
    program, gradients = differentiate(case.program, case)
    fetch = [program.main.var(name) for name, _ in case.targets]
    try:
        return text_of(program, [*fetch, *(var for var in gradients if var is not None)])
    except ol.ProgramError as error:
        return f"{error.message}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the texts of plans.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--programs", type=int, default=300, help="generated ones")
    parser.add_argument("--seed", type=int, default=0, help="of the generated programs")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in measure.PACKAGES:
        (arguments.folder / f"{name}.txt").write_text(text_of_workload(name), encoding="utf-8")
    for number in range(arguments.programs):
        (arguments.folder / f"generated_{number}.txt").write_text(text_of_generated(arguments.seed, number), encoding="utf-8")


if __name__ == "__main__":
    main()
