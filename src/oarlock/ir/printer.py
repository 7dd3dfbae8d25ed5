"""Program -> text that reads like code: declarations, then ops, blocks inside the ops that own them."""

from oarlock.ir.attribute import format_attribute
from oarlock.ir.block import Block
from oarlock.ir.location import Location
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.variable import Initializer, Var

__all__ = ["format_op", "format_program"]

_HEADINGS = {Role.FORWARD: "forward", Role.BACKWARD: "backward", Role.UPDATE: "update"}


def format_program(program: Program, *, source: bool = True) -> str:
    """The whole program; the author's lines stand above what they made, unless `source` is False."""
    lines = [f"program seed={program.seed}"]
    if program.training:
        lines[0] += f" batch_size={program.training.batch_size} epochs={program.training.epochs}"
    lines += ["", *_format_block(program.main, "", source)]
    if program.targets:
        lines += ["", *(f"target {label} = {var.name}" for label, var in program.targets.items())]
    return "\n".join(lines) + "\n"


def _format_block(block: Block, indent: str, source: bool) -> list[str]:
    inputs = ", ".join(f"{var.name}: {var.type_text}" for var in block.inputs)
    outputs = f" -> ({', '.join(var.name for var in block.outputs)})" if block.parent is not None else ""
    lines = [f"{indent}block {block.name}({inputs}){outputs} {{"]
    inside = indent + "  "
    lines += [inside + _format_declaration(var) for var in block.vars.values() if var.persistable]
    lines += [f"{inside}value {var.name} = {_format_initializer(var.initializer)}" for var in block.inputs if var.initializer is not None]
    tail = block.tail
    role, location = Role.FORWARD, None
    for op in block.ops[: len(block.ops) - len(tail)]:
        if op.role is not role and block.parent is None:
            role, location = op.role, None
            lines += ["", f"{inside}# {_HEADINGS[role]}"]
        if source and op.location is not None and not _same_line(op.location, location):
            lines.append(f"{inside}# {op.location}")
        location = op.location
        lines.append(inside + format_op(op))
        for inner in op.blocks:
            lines += _format_block(inner, inside + "  ", source)
    if tail:
        lines += ["", f"{inside}# commit", *(f"{inside}{op.writes[0].name} <- {op.reads[0].name}" for op in tail)]
    return [*lines, indent + "}"]


def _same_line(left: Location | None, right: Location | None) -> bool:
    return left is not None and right is not None and (left.file, left.line) == (right.file, right.line)


def _format_declaration(var: Var) -> str:
    words = ["parameter" if var.parameter else "state"]
    if var.parameter and not var.trainable:
        words.append("frozen")
    start = "" if var.initializer is None else f" = {_format_initializer(var.initializer)}"
    return f"{' '.join(words)} {var.name}: {var.type_text}{start}"


def _format_initializer(initializer: Initializer) -> str:
    attributes = ", ".join(f"{name}={format_attribute(initializer.attributes[name])}" for name in sorted(initializer.attributes))
    return f"{initializer.type}({attributes})"


def format_op(op: Op) -> str:
    """`y: float32[n, 10] = linear(x=h, w=fc_0.w)`."""
    outputs = ", ".join(f"{var.name}: {var.type_text}" for var in op.writes)
    arguments = []
    for slot, vars in op.inputs.items():
        names = ", ".join(var.name for var in vars)
        arguments.append(f"{slot}={names}" if len(vars) == 1 else f"{slot}=[{names}]")
    for name in sorted(op.attributes):
        value = op.attributes[name]
        arguments.append(f"{name}={value.name if isinstance(value, Block) else format_attribute(value)}")
    return f"{outputs} = {op.type}({', '.join(arguments)})"
