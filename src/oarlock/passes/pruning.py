"""Pruning: the ops that the targets need, and no others."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import overload

from oarlock.errors import ArgumentError, ProgramError, UndefinedVarError
from oarlock.ir.block import Block
from oarlock.ir.location import here
from oarlock.ir.names import DRAWS, is_name
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.serialization import program_desc, read_description
from oarlock.ir.traversal import inner_blocks, needed_ops, walk
from oarlock.ir.var import Var
from oarlock.ir.verification import verify_ownership
from oarlock.op.control.layout import Carried, Layout
from oarlock.proto import program_pb2 as wire
from oarlock.registry.catalogue import standard
from oarlock.registry.creator import describe_value
from oarlock.registry.type_check import typecheck

__all__ = ["program_of_main", "prune", "remove_dead_code", "require_targets"]


Targets = Var | str | Sequence[Var | str] | Mapping[str, Var | str]
"""The targets: variables or their names, one or several; or a mapping with a label for each, else its name is that."""


@overload
def prune(program: Program, targets: Targets) -> Program: ...


@overload
def prune(program: Block, targets: Targets) -> Block: ...


@overload
def prune(program: "wire.BlockDesc", targets: Targets) -> "wire.BlockDesc": ...


@overload
def prune(program: "wire.ProgramDesc", targets: Targets) -> "wire.ProgramDesc": ...


def prune(
    program: "Program | Block | wire.BlockDesc | wire.ProgramDesc", targets: Targets
) -> "Program | Block | wire.BlockDesc | wire.ProgramDesc":
    """A new program with only what `targets` need, variables of the main block, and what that keeps for later steps.

    The targets are a dict with their labels, or variables, or names.

    Of the main block of a program it is that of the new program. Of a ProgramDesc it is a ProgramDesc, and of a BlockDesc, one block
    without others inside it, a BlockDesc, which can be sent to others; a description is verified first.

    Before, with target `y`                    After
        h = linear(x, w)                           h = linear(x, w)
        y = softmax(h)                             y = softmax(h)
        loss = cross_entropy(h, label)
        w <- w@NEXT

    Updates go: what reads a persistable variable reads its value from before the step. What forward ops that stay keep - the running
    statistics of batch norm, the count of draws of dropout - stays with them, so that the program can be trained on, and so does what
    metrics count. Inputs, parameters
    and blocks that nothing needs any more go too; row splits stay with what they cut. `program` itself is not changed.
    Raises ArgumentError where `program` or `targets` are something else, ProgramError for a block inside another and for a label that no
    file can hold, UndefinedVarError for a target of another program, or that is not there; VerifyError for a description that is not legal,
    a BlockDesc that names blocks it does not hold among them, and for a block that no op has.
    """
    if isinstance(program, wire.BlockDesc | wire.ProgramDesc):
        built = read_description(program)
        typecheck(built, standard)
        kept = prune(built, targets)
        return kept.main.compile() if isinstance(program, wire.BlockDesc) else program_desc(kept)
    if isinstance(program, Block):
        return prune(program_of_main(program, "prune"), targets).main
    if not isinstance(program, Program):
        raise ArgumentError(
            f"prune takes a program, its main block, a BlockDesc or a ProgramDesc, not {describe_value(program)}", location=here()
        )
    verify_ownership(program)
    targets = require_targets(_labelled(program, targets))
    for var in targets.values():
        if var.block.program is not program or var.block is not program.main:
            raise UndefinedVarError(f'target "{var.name}" is not a variable of the main block of this program', given=[var.describe()])
    kept = program.clone()
    kept.lineage = kept.serial
    kept.training = None
    kept.targets = {label: kept.main.vars[var.name] for label, var in targets.items()}
    kept.main.keep([*(op for op in kept.main.ops if not op.is_commit), *_kept_by(kept.main, kept.targets.values())])
    remove_dead_code(kept.main, kept.targets.values())
    used = {var for op in kept.main.ops for var in op.reads} | set(kept.targets.values())
    used |= {splits for var, levels in kept.ragged_inputs().items() if var in used for splits in levels}
    kept.main.inputs = [var for var in kept.main.inputs if var in used]
    kept.main.keep(kept.main.ops)
    return kept


def program_of_main(block: Block, what: str) -> Program:
    """The program whose main block `block` is. Raises ProgramError for a block inside another."""
    if block.parent is not None:
        raise ProgramError(
            f"{what}: {block.path} is inside another block, by whose op it is run",
            location=here(),
            hint="give the program, or program.main; what the blocks inside it do for the targets is kept",
        )
    return block.program


def _kept_by(main: Block, targets: Iterable[Var]) -> list[Op]:
    """The commits of what the ops keep, for steps to come, that `targets` need."""
    needed = set(needed_ops(main.ops, targets))
    drawing = any("random_id" in inner.attributes for op in needed for inner in (op, *(i for block in op.blocks for i in walk(block))))
    commits = [op for op in main.tail if op.role in (Role.FORWARD, Role.MEASURE)]
    kept = [op for op in commits if op.reads[0].op in needed or (drawing and op.writes[0].name == DRAWS)]
    layers = {_layer_of(op) for op in kept} - {""}
    return [op for op in commits if op in kept or _layer_of(op) in layers]


def _layer_of(commit: Op) -> str:
    """The layer whose state `commit` writes, `norm` of `norm.count`: what one layer keeps stays together. Empty where there is none."""
    return commit.writes[0].name.rpartition(".")[0]


def _labelled(program: Program, targets: object) -> object:
    """Targets with their labels; names become the targets of that label, or the variables of the main block. Raises UndefinedVarError."""
    items = [targets] if isinstance(targets, Var | str) else targets
    if isinstance(items, Mapping):
        pairs = list(items.items())
    elif isinstance(items, Sequence) and items and all(isinstance(item, Var | str) for item in items):
        pairs = [(item.name if isinstance(item, Var) else item, item) for item in items]
    else:
        return targets
    return {label: program.get_target(item) if isinstance(item, str) else item for label, item in pairs}


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
        zs = neg(xs)                                                       ys = recurrent(xs, h0, body=
        ys, squares = recurrent(xs, h0, body=                                  h' = tanh(add(h, x)) -> h')
            h' = tanh(add(h, x)); s = square(h') -> h', s)

    What a block returns is kept where it is read outside, a memory where something that is kept depends on it.
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
        if not wanted.isdisjoint(op.writes) or op.is_commit:
            if op.blocks:
                _shrink(Layout.of(op), wanted)
            kept.append(op)
            wanted.update(op.reads)
    block.keep(kept[::-1])


def _alive(layout: Layout, wanted: AbstractSet[Var]) -> list[Carried]:
    """The memories that are wanted after the last trip, or that what is returned depends on."""
    returned = {inner for inner, _ in (*layout.stacked, *layout.summed)} | {layout.condition}
    alive = [each for each in layout.carried if each.final in wanted]
    while True:
        targets = [var for var in (*returned, *(each.following for each in alive)) if var is not None]
        read = {var for op in needed_ops(layout.body.ops, targets) for var in op.reads} | set(targets)
        more = [each for each in layout.carried if each.inside in read and each not in alive]
        if not more:
            return [each for each in layout.carried if each in alive]
        alive += more


def _shrink(layout: Layout, wanted: set[Var]) -> None:
    """Let an op return what is wanted, and its block compute only that."""
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
    if "splits" in layout.op.inputs and (not needed or needed[0] is not layout.steps[0]):
        needed.insert(0, layout.steps[0])  # which tells the rows that have a step
    layout.steps = _with_told_sizes(layout, needed)
    layout.write()
    layout.body.keep(layout.body.ops)


def _with_told_sizes(layout: Layout, needed: list[tuple[Var, Var]]) -> list[tuple[Var, Var]]:
    """The steps that are needed, and for each size in front of what is returned one that tells it where, otherwise, values do."""
    if not layout.op.inputs.get("splits") and not layout.op.inputs.get("when"):
        return needed
    told, kept = {outer.shape[0] for _, outer in needed if outer.shape}, set(needed)
    returned = {outer.shape[0] for _, outer in layout.stacked if outer.shape}
    for pair in layout.steps:
        if pair[1].shape and pair[1].shape[0] in returned - told:
            kept.add(pair)
            told.add(pair[1].shape[0])
    return [pair for pair in layout.steps if pair in kept]
