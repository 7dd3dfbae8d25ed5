"""`recompute`: a training program keeps less of its forward values, and its gradients compute them again."""

from collections.abc import Collection, Mapping, Sequence

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.block import Block
from oarlock.ir.copy import blocks_in_order
from oarlock.ir.location import here
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.traversal import walk, walk_ops
from oarlock.ir.var import Var, is_among
from oarlock.op.control.layout import Layout
from oarlock.passes.recomputation.level import InnerLevel, Level, drop_unread_stacks, find_owner, find_stack_shape, is_gradient
from oarlock.passes.recomputation.segments import divide, divide_at, recomputed_in
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.type_check import check_blocks

__all__ = ["recompute"]


def recompute(program: Program, checkpoints: Sequence[Var | str] = (), *, segments: int | None = None, loops: bool = True) -> int:
    """Let the gradients of `program` compute forward values again rather than keep them; return how many ops that were.

    Before, with the checkpoint `b`                     After
        a = tanh(linear(x, w))                              a = tanh(linear(x, w))
        b = tanh(linear(a, u))                              b = tanh(linear(a, u))
        cost = mean(square(b))                              cost = mean(square(b))
        db = ... b                                          db = ... b
        dz = tanh_dx(y=b, db)                               dz = tanh_dx(y=b, db)
        du = linear_dw(a, dz)                               a@RECOMPUTED = tanh(linear(optimization_barrier(x), w))
                                                            du = linear_dw(a@RECOMPUTED, dz)

    The forward ops of the main block are divided into segments. What one segment hands on is kept; what it computes besides is computed
    again, from that, when its gradient is; the last segment stays as it is, for its gradient comes first (Chen, Xu, Zhang and Guestrin,
    2016, "Training deep nets with sublinear memory cost"). `checkpoints` are the variables, or their names, with which segments end;
    without any, there are `segments` of them, or as many as need the least memory by an estimate; with `segments=1` all is kept.

    With `loops`, of a loop or a branch each trip keeps what it is given, what goes on to the next, and checkpoints in its block; its
    gradient computes the rest again, trip by trip. Without, a loop is computed again as a whole, in segments as any other op.

    Random ops draw the same numbers again. What follows from parameters alone, and sizes that only values tell, are kept. `program` is
    changed; it computes the same, to the bit where ops run as they are written. Call it after `minimize` or `append_backward`, before
    the first run. Raises ProgramError where there is no gradient, and for a checkpoint that no forward op computes; UndefinedVarError
    for one that is not there; ArgumentError for segments that are no number from 1, or given beside checkpoints of the main block.
    """
    if not isinstance(program, Program):
        raise ArgumentError(f"recompute takes a program, not {program!r:.60}", location=here())
    chosen = [_get_checkpoint(program, each) for each in ([checkpoints] if isinstance(checkpoints, Var | str) else checkpoints)]
    if segments is not None and (isinstance(segments, bool) or not isinstance(segments, int) or segments < 1):
        raise ArgumentError(f"segments are a number from 1, not {segments!r:.60}", location=here())
    of_main = [var for var in chosen if var.block is program.main]
    if of_main and segments is not None:
        raise ArgumentError("the main block is divided by checkpoints or into a number of segments, not by both", location=here())
    if not any(op.role is Role.BACKWARD for op in program.main.ops):
        raise ProgramError(
            "this program computes no gradients, so there is nothing to compute again for them",
            location=here(),
            hint="call recompute after minimize or append_backward",
        )
    return _Recomputation(program, chosen, 1 if chosen and not of_main and segments is None else segments, loops).run()


def _get_checkpoint(program: Program, given: Var | str) -> Var:
    """The forward variable that is meant. Raises UndefinedVarError and ProgramError."""
    var = program.get_target(given) if isinstance(given, str) else given
    if not isinstance(var, Var) or var.block.program is not program:
        raise ProgramError(f"{given!r:.80} is no variable of this program", location=here())
    if var.op is None or var.op.role is not Role.FORWARD:
        raise ProgramError(
            f'"{var.name}" is not computed by a forward op, so no segment ends with it', location=here(), given=[var.describe()]
        )
    return var


class _Recomputation:
    """One application to a program."""

    def __init__(self, program: Program, checkpoints: Collection[Var], segments: int | None, loops: bool):
        self.program = program
        self.checkpoints = set(checkpoints)
        self.segments = segments
        self.loops = loops
        self.makes_sizes = check_blocks(program.blocks, standard)
        self.targets = set(program.targets.values())
        self.owners = {block: op for op in walk(program.main) for block in op.blocks}

    def run(self) -> int:
        main = self.program.main
        opened = self._opened(main, main)
        level = Level(main, main, standard, self._recomputed_of_main(set(opened.values())))
        inner = self._enter(level, opened)
        level.rewrite()
        drop_unread_stacks(inner)
        self.program.blocks = blocks_in_order(self.program)
        for index, block in enumerate(self.program.blocks):
            block.index = index
        self.program.changed()
        return level.count

    def _opened(self, forward: Block, into: Block) -> dict[Op, Op]:
        """The ops with blocks whose gradients compute again what is inside, by those."""
        if not self.loops:
            return {}
        owners = {op: find_owner(op, forward) for op in into.ops if op.blocks and is_gradient(op)}
        return {op: owner for op, owner in owners.items() if owner is not None}

    def _enter(self, level: Level, opened: Mapping[Op, Op]) -> list[InnerLevel]:
        """The levels inside `level`, outer ones first."""
        found: list[InnerLevel] = []
        for gradient, owner in opened.items():
            inside = self._opened(owner.blocks[0], gradient.blocks[0])
            inner = InnerLevel(owner, gradient, level, self._recomputed_of_block(owner, set(inside.values())))
            level.inside[gradient] = inner
            found += [inner, *self._enter(inner, inside)]
        return found

    def _recomputed_of_main(self, opened: Collection[Op]) -> set[Var]:
        main = self.program.main
        forward = [op for op in main.ops if op.role is Role.FORWARD and not op.is_commit]
        if any(var.block is main for var in self.checkpoints):
            segments = divide_at(forward, self.checkpoints)
        else:
            read = {var for op in main.ops if op.role is Role.BACKWARD for var in _read_whole(op, standard)}
            segments = divide(forward, read, self.segments)
        last = max(segments.values(), default=0)
        kept = self.checkpoints | self.targets | _fixed(forward) | self._written_by(opened)
        return self._recomputed({op: number for op, number in segments.items() if number < last}, main, kept)

    def _recomputed_of_block(self, owner: Op, opened: Collection[Op]) -> set[Var]:
        layout = Layout.of(owner)
        kept = self.checkpoints | self._written_by(opened) | {each.following for each in layout.carried}
        kept |= {inner for inner, outer in layout.stacked if self._is_read(outer)}
        found = self._recomputed(divide_at(layout.body.ops, self.checkpoints), layout.body, kept)
        read = {var for op in layout.body.ops if not found.isdisjoint(op.writes) for var in op.reads}
        local = {var for var in read - found if var.block is layout.body}
        return set() if any(find_stack_shape(layout, var) is None for var in local) else found

    def _recomputed(self, segments: Mapping[Op, int], block: Block, kept: Collection[Var]) -> set[Var]:
        readers: dict[Var, list[Op]] = {}
        for op in block.ops:
            if block.parent is not None or op.role is not Role.BACKWARD:
                for var in op.reads:
                    readers.setdefault(var, []).append(op)
        making = {var for op in segments for var in op.writes if any(each in self.makes_sizes for each in walk_ops([op]))}
        return recomputed_in(segments, readers, {*kept, *making})

    def _is_read(self, var: Var) -> bool:
        """Whether anything but gradients reads `var`, or what holds it around its block."""
        if var in self.targets or any(is_among(var, op.reads) for op in var.block.ops if op.role is not Role.BACKWARD):
            return True
        if not is_among(var, var.block.outputs):
            return False
        stacked = Layout.of(self.owners[var.block]).stacked
        returned = [outer for inner, outer in stacked if inner is var]
        return len(returned) < sum(output is var for output in var.block.outputs) or any(map(self._is_read, returned))

    def _written_by(self, ops: Collection[Op]) -> set[Var]:
        return {var for op in ops for var in op.writes}


def _read_whole(op: Op, catalogue: Catalogue) -> list[Var]:
    """The variables that an op reads, but for those of which it reads the shape alone."""
    signature = catalogue.get(op.type).signature
    return [var for slot, vars in op.inputs.items() if not (declared := signature.input(slot)) or not declared.shape_only for var in vars]


def _fixed(ops: Sequence[Op]) -> set[Var]:
    """The variables that follow from parameters and constants alone: as large for one row as for many."""
    fixed: set[Var] = set()
    for op in ops:
        if not op.blocks and not standard.get(op.type).effects and all(var.persistable or var in fixed for var in op.reads):
            fixed.update(op.writes)
    return fixed
