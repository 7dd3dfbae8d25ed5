"""Program to text that reads like code: declarations, then ops, with nested blocks below the ops that own them.

The text is complete: `parser` reads it back. Lines that start with `#` quote the user's source.
"""

from itertools import groupby

from oarlock.ir.attribute import format_attribute
from oarlock.ir.block import Block
from oarlock.ir.location import Location
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.sharding import Sharding
from oarlock.ir.var import HeldValue, Initializer, Var

__all__ = ["COMMITS", "ROLES", "format_declaration", "format_op", "format_program", "format_sharding"]

ROLES = {Role.FORWARD: "forward", Role.BACKWARD: "backward", Role.UPDATE: "update", Role.MEASURE: "measure"}
COMMITS = {Role.FORWARD: "keep", Role.BACKWARD: "commit", Role.UPDATE: "commit", Role.MEASURE: "count"}
"""The headings of commits, by role."""


def format_program(program: Program, *, source: bool = True) -> str:
    """Return the program as text, with the user's source lines above the ops they created if `source`."""
    head = f"program seed={program.seed}"
    if program.training:
        head += f" batch_size={program.training.batch_size} epochs={program.training.epochs}"
        head += f" backend={program.training.backend}" if program.training.backend else ""
    lines = [head, "", *_format_block(program.main, "", Role.FORWARD, source)]
    if program.targets:
        lines += ["", *(f"target {label} = {var.name}" for label, var in program.targets.items())]
    return "\n".join(lines) + "\n"


def _format_block(block: Block, indent: str, role: Role, source: bool) -> list[str]:
    inputs = ", ".join(_format_var(var, fed=block.parent is None) for var in block.inputs)
    outputs = f" -> ({', '.join(var.name for var in block.outputs)})" if block.parent is not None else ""
    inside = indent + "  "
    tail = block.tail
    body = block.ops[: len(block.ops) - len(tail)]
    lines = [f"{indent}block {block.name}({inputs}){outputs} {{"]
    lines += [inside + format_declaration(var) for var in block.vars.values() if var.persistable]
    lines += [f"{inside}value {var.name} = {_format_initializer(var.initializer)}" for var in block.inputs if var.initializer]
    local = {var for op in block.ops for var in op.writes} | set(block.inputs)
    lines += [f"{inside}var {_format_var(var)}" for var in block.vars.values() if var not in local and not var.persistable]
    location = None
    for op in body:
        if op.role is not role:
            role, location = op.role, None
            lines += ["", f"{inside}{ROLES[role]}:"]
        if source and op.location is not None and not _same_line(op.location, location):
            lines.append(f"{inside}# {op.location}")
        location = op.location
        lines.append(inside + format_op(op))
        for inner in op.blocks:
            lines += _format_block(inner, inside + "  ", op.role, source)
    for heading, commits in groupby(tail, lambda op: COMMITS[op.role]):
        lines += ["", f"{inside}{heading}:"]
        lines += [f"{inside}{op.writes[0].name} <- {op.reads[0].name}{_format_name(op)}" for op in commits]
    return [*lines, indent + "}"]


def _same_line(left: Location | None, right: Location | None) -> bool:
    return left is not None and right is not None and (left.file, left.line) == (right.file, right.line)


def _format_var(var: Var, *, fed: bool = False) -> str:
    """Format a declaration: `x: float32[n, 3]`, `row_splits_of`, and `gradient` or `stop_gradient` if not the default."""
    cut = f" row_splits_of {var.row_splits_of}" if var.row_splits_of else ""
    unusual = var.stop_gradient is not (fed or (var.persistable and not var.parameter))  # inputs and state stop gradients by default
    return f"{var.name}: {var.type_text}{cut}" + ((" stop_gradient" if var.stop_gradient else " gradient") if unusual else "")


def format_declaration(var: Var) -> str:
    """Format a persistable variable: `parameter fc_0.w: float32[3, 2] = uniform(...)`."""
    kind = ("parameter" if var.trainable else "frozen parameter") if var.parameter else "state"
    held = var.initializer is None or isinstance(var.initializer, HeldValue)
    start = "" if held else f" = {_format_initializer(var.initializer)}"
    divided = f" {format_sharding(var.sharding)}" if var.sharding else ""
    place = f" place({var.place})" if var.place else ""
    return f"{kind} {_format_var(var)}{divided}{place}{_format_update_settings(var)}{start}"


def format_sharding(sharding: Sharding | None) -> str:
    """Format a sharding: `shard(axis=1)`, `shard(axis=1, workers=4)` for a worker's shard, or "" for None."""
    if sharding is None:
        return ""
    return f"shard(axis={sharding.axis}" + (f", workers={sharding.workers})" if sharding.workers else ")")


def _format_update_settings(var: Var) -> str:
    settings = ", ".join(f"{name}={format_attribute(value)}" for name, value in sorted(var.update_settings.stated.items()))
    return f" update({settings})" if settings else ""


def _format_initializer(initializer: Initializer | None) -> str:
    assert initializer is not None
    attributes = ", ".join(f"{name}={format_attribute(initializer.attributes[name])}" for name in sorted(initializer.attributes))
    return f"{initializer.type}({attributes})"


def format_op(op: Op) -> str:
    """Format an op: `y: float32[n, 10] = linear(x=h, w=fc_0.w)`, then `as "scores"` if it has a name.

    A slot that does not have exactly one variable is in brackets.
    """
    outputs = [_one_or_list([_format_var(var) for var in vars]) for vars in op.outputs.values()]
    arguments = [f"{slot}={_one_or_list([var.name for var in vars])}" for slot, vars in op.inputs.items()]
    for name in sorted(op.attributes):
        value = op.attributes[name]
        arguments.append(f"{name}={_format_held(value)}")
    return f"{', '.join(outputs)} = {op.type}({', '.join(arguments)}){_format_name(op)}"


def _format_name(op: Op) -> str:
    return f' as "{op.name}"' if op.name else ""


def _format_held(value: object) -> str:
    """Format an attribute: a block in braces, a variable after a dollar sign, or a value."""
    if isinstance(value, Block):
        return "{" + value.name + "}"
    return f"${value.name}" if isinstance(value, Var) else format_attribute(value)


def _one_or_list(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"[{', '.join(items)}]"
