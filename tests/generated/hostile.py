"""Programs as an enemy would write them: names that are Python, locations that are anything at all."""

import itertools

import oarlock as ol
from oarlock.ir.location import Location
from oarlock.ir.traversal import inner_blocks

__all__ = ["hostile", "text_of_plan"]

NAMES = (
    "__import__", "None", "return", "device", "context_of", "plan", "before_updates", "a.b", "x/./y", "-1", "0x1F",
    "lambda", "@", "@GRAD", "os.system", "x_1", "tanh_3", "del", "import.os-None", "__class__.__bases__", "1e5", "_", "-", "n" * 240,
)  # fmt: skip
TEXTS = (
    '"""', "'); __import__('os').system('true'); ('", "\n    raise SystemExit\n", "{x}", "\\",
    "\x00", "\u202eabc", "#", "\r\nimport os", "x" * 200,
)  # fmt: skip


def hostile(program: ol.Program, number: int) -> ol.Program:
    """The program itself, after everything in it that is called something is called something else."""
    names, texts = itertools.cycle(NAMES[number % 7 :] + NAMES[: number % 7]), itertools.cycle(TEXTS)
    for block in inner_blocks(program.main):
        for count, var in enumerate(list(block.vars.values())):
            if not var.name.startswith("@") and var not in program.ragged_inputs() and var.row_splits_of is None:
                block.rename(var, program.unique(f"{next(names)}{count if count % 3 else ''}"))
            var.location = Location(next(texts), 1, next(texts), next(texts))
        for op in block.ops:
            op.location = Location(next(texts), 1, next(texts), next(texts))
    program.changed()
    return program


def text_of_plan(program: ol.Program, passes: tuple[str, ...]) -> str:
    """The text of the plan of everything in the main block."""
    return ol.Executor(passes=passes).plan(program, [var for op in program.main.ops for var in op.writes]).text
