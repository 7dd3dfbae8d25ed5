"""The choices for mutators of a program's message: its parts, and what to put in their place."""

from collections.abc import Callable
from random import Random

from oarlock.proto import program_pb2 as wire

__all__ = [
    "MUTATORS",
    "SIZES",
    "SYMBOLS",
    "TRICKY_NAMES",
    "VALUES",
    "any_name",
    "attribute_of",
    "block_of",
    "mutator",
    "op_of",
    "replace",
    "slot_of",
    "var_of",
]

Mutator = Callable[[Random, wire.ProgramDesc], None]
MUTATORS: dict[str, Mutator] = {}

TRICKY_NAMES = [
    "", "\0", "a\0b", "x" * 2**20, "x" * 257, "x" * 256, "..", "a/../b", "/etc/passwd", "\u0430", "\ufb01", "w\u202e", "__class__",
    "__metadata__", "oarlock.program", "@STEP", "w@GRAD", "-", "1", "true", "shape", "forward", "commit", "a b", "a\nb", "%s%n",
    "\x1b[31m", "C:\\x", "nul", "w ", "x:", "=", "🙂",
]  # fmt: skip
SIZES = [-1, 0, 1, 2, 16, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63), -2]
SYMBOLS = ["", "n", "t", "n+", "2*n+1", "n*n*n*n", "(n-3)//2", "(n)//0", "((((n)//2)//2)//2)//2", "-n", "9" * 250, "?", "n" * 257]


def mutator(function: Mutator) -> Mutator:
    MUTATORS[function.__name__] = function
    return function


def block_of(random: Random, program: wire.ProgramDesc) -> wire.BlockDesc:
    return random.choice(program.blocks) if program.blocks else program.blocks.add(name="main")


def op_of(random: Random, program: wire.ProgramDesc) -> wire.OpDesc:
    ops = [op for block in program.blocks for op in block.ops]
    return random.choice(ops) if ops else block_of(random, program).ops.add(type="relu")


def var_of(random: Random, program: wire.ProgramDesc) -> wire.VarDesc:
    vars = [var for block in program.blocks for var in block.vars]
    return random.choice(vars) if vars else block_of(random, program).vars.add(name="v", dtype=wire.FLOAT32)


def attribute_of(random: Random, program: wire.ProgramDesc) -> wire.AttributeDesc:
    owners = [*(op for block in program.blocks for op in block.ops), *(v.initializer for b in program.blocks for v in b.vars)]
    found = [item for owner in owners for item in owner.attributes]
    return random.choice(found) if found else op_of(random, program).attributes.add(name="axis")


def slot_of(random: Random, program: wire.ProgramDesc) -> wire.SlotDesc:
    slots = [slot for block in program.blocks for op in block.ops for slot in (*op.inputs, *op.outputs)]
    return random.choice(slots) if slots else op_of(random, program).inputs.add(name="x")


def replace(field, items: list) -> None:
    """Give a repeated field these messages instead."""
    copies = [type(item).FromString(item.SerializeToString()) for item in items]
    del field[:]
    field.extend(copies)


def any_name(random: Random, program: wire.ProgramDesc) -> str:
    names = [var.name for block in program.blocks for var in block.vars]
    return random.choice(names) if names and random.random() < 0.7 else random.choice(TRICKY_NAMES)


VALUES: list[Callable[[wire.AttributeDesc], object]] = [
    lambda item: setattr(item, "int", 2**63 - 1),
    lambda item: setattr(item, "int", -1),
    lambda item: setattr(item, "int", 0),
    lambda item: setattr(item, "float", float("nan")),
    lambda item: setattr(item, "float", float("inf")),
    lambda item: setattr(item, "float", 1e300),
    lambda item: setattr(item, "float", 0.5),
    lambda item: setattr(item, "float", -0.0),
    lambda item: setattr(item, "bool", True),
    lambda item: setattr(item, "string", "x" * 70_000),
    lambda item: setattr(item, "string", "float32"),
    lambda item: setattr(item, "string", "os.system"),
    lambda item: setattr(item, "bytes", b"\0" * 9),
    lambda item: item.ints.values.extend([2**63 - 1, 2**63 - 1]),
    lambda item: item.ints.values.extend([0] * 70_000),
    lambda item: item.ints.SetInParent(),
    lambda item: item.floats.values.extend([0.5, float("nan")]),
    lambda item: item.strings.values.extend(["a", "\0", "y" * 70_000]),
    lambda item: item.shape.sizes.add(number=2**63 - 1),
    lambda item: item.shape.sizes.add(symbol="n"),
    lambda item: item.shape.sizes.add(),
    lambda item: setattr(item, "dtype", 3),
    lambda item: setattr(item, "dtype", 77),
    lambda item: setattr(item, "block", 0),
    lambda item: setattr(item, "block", 1),
    lambda item: setattr(item, "block", 2**32 - 1),
    lambda item: setattr(item, "var", "label"),
    lambda item: item.ClearField("value"),
]
