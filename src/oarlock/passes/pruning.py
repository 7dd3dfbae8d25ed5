"""Keep what the targets need."""

from collections.abc import Collection, Iterable, Mapping

from oarlock.errors import ArgumentError, ProgramError, UndefinedVarError
from oarlock.ir.block import Block
from oarlock.ir.location import here
from oarlock.ir.names import is_name
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.variable import Var
from oarlock.ir.walk import inner_blocks, needed_ops
from oarlock.op.control.layout import Carried, Layout

__all__ = ["prune", "remove_dead_code", "require_targets"]


def prune(program: Program, targets: Mapping[str, Var]) -> Program:
    """A new program with only what `targets` (label -> variable of the main block) need.

    Before, with target `y`                    After
        h = linear(x, w)                           h = linear(x, w)
        y = softmax(h)                             y = softmax(h)
        loss = cross_entropy(h, label)
        w <- w@NEXT

    Updates go: what reads a persistable variable reads its value from before the step. Inputs, parameters and
    blocks that nothing needs any more go too; row splits stay with what they cut. `program` itself is not changed.
    Raises ArgumentError where `targets` are something else, ProgramError for a label that no file can hold, UndefinedVarError
    for a target of another program.
    """
    for var in require_targets(targets).values():
        if var.block.program is not program or var.block is not program.main:
            raise UndefinedVarError(f'target "{var.name}" is not a variable of the main block of this program', given=[var.describe()])
    kept = program.clone()
    kept.training = None
    kept.targets = {label: kept.main.vars[var.name] for label, var in targets.items()}
    kept.main.keep([op for op in kept.main.ops if not op.is_commit])
    remove_dead_code(kept.main, kept.targets.values())
    used = {var for op in kept.main.ops for var in op.reads} | set(kept.targets.values())
    used |= {splits for var, levels in kept.ragged_inputs().items() if var in used for splits in levels}
    kept.main.inputs = [var for var in kept.main.inputs if var in used]
    kept.main.keep(kept.main.ops)
    return kept


def require_targets(targets: object) -> Mapping[str, Var]:
    """`targets` as labels and their variables. Raises ArgumentError where they are none, ProgramError for an illegal label."""
    if not isinstance(targets, Mapping):
        raise ArgumentError(f'targets are a dict, {{"label": variable}}, not {type(targets).__name__} {targets!r:.60}', location=here())
    for label, var in targets.items():
        if not isinstance(label, str) or not isinstance(var, Var):
            raise ArgumentError(
                f"targets are labels and variables, not {label!r:.60}: {type(var).__name__} {var!r:.60}",
                location=here(),
                hint='{"label": program.main.var("name")}',
            )
        if not is_name(label):
            raise ProgramError(
                f"{label!r:.80} cannot be a target's label",
                location=here(),
                contract="a label has 1 to 256 of the characters A-Z a-z 0-9 _ . / @ - and no '..'",
            )
    return targets


def remove_dead_code(block: Block, wanted: Iterable[Var]) -> None:
    """Keep, of `block` and the blocks inside it, what the values `wanted` and the updates of the program need.

    Before, with `ys` wanted                                            After
        zs = negative(xs)                                                  ys = recurrent(xs, h0, body=
        ys, squares = recurrent(xs, h0, body=                                  h' = tanh(add(h, x)) -> h')
            h' = tanh(add(h, x)); s = square(h') -> h', s)

    What a block hands out is kept where it is read outside, a memory where something that is kept depends on it.
    """
    _clean(block, {*wanted, *(var for op in block.tail for var in op.reads)})
    program = block.program
    reachable = set(inner_blocks(program.main))
    program.blocks = [other for other in program.blocks if other in reachable]
    for index, other in enumerate(program.blocks):
        other.index = index


def _clean(block: Block, wanted: set[Var]) -> None:
    kept: list[Op] = []
    for op in reversed(block.ops):
        if op.is_commit or any(var in wanted for var in op.writes):
            if op.blocks:
                _shrink(Layout.of(op), wanted)
            kept.append(op)
            wanted.update(op.reads)
    block.keep(kept[::-1])


def _alive(layout: Layout, wanted: Collection[Var]) -> list[Carried]:
    """The memories that are wanted after the last trip, or that what is handed out depends on."""
    handed_out = {inner for inner, _ in (*layout.stacked, *layout.summed)} | {layout.condition}
    alive = [each for each in layout.carried if each.final in wanted]
    while True:
        targets = [var for var in (*handed_out, *(each.following for each in alive)) if var is not None]
        read = {var for op in needed_ops(layout.body.ops, targets) for var in op.reads} | set(targets)
        more = [each for each in layout.carried if each.inside in read and each not in alive]
        if not more:
            return [each for each in layout.carried if each in alive]
        alive += more


def _shrink(layout: Layout, wanted: set[Var]) -> None:
    """Let an op hand out what is wanted, and its block compute only that."""
    layout.stacked = [pair for pair in layout.stacked if pair[1] in wanted]
    layout.summed = [pair for pair in layout.summed if pair[1] in wanted]
    alive = _alive(layout, wanted)
    while True:
        layout.carried = alive
        layout.write()
        _clean(layout.body, set(layout.body.outputs))
        if any(op.blocks for op in layout.body.ops):  # they may read less than before, and so fewer memories
            alive = _alive(layout, wanted)
        if len(alive) == len(layout.carried):
            break
    read = {var for op in layout.body.ops for var in op.reads} | set(layout.body.outputs)
    needed = [pair for pair in layout.steps if pair[0] in read]
    if not needed and "sequences" in layout.op.inputs:
        needed = layout.steps[:1]  # by which a loop counts its trips
    if "splits" in layout.op.inputs and layout.steps[0] not in needed:
        needed.insert(0, layout.steps[0])  # which tells the rows that have a step
    layout.steps = needed
    layout.write()
    layout.body.keep(layout.body.ops)
