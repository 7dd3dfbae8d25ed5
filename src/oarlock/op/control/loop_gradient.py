"""The gradient of a loop is a loop: `recurrent` in the other direction, for both `recurrent` and `while`."""

from collections.abc import Collection, Mapping

from oarlock.errors import GradientError
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.row_gradient import RowGradient
from oarlock.ir.size import Shape, Size
from oarlock.ir.traversal import free_vars
from oarlock.ir.var import Var
from oarlock.op.control.active_rows import active_rows, is_by_row
from oarlock.op.control.block_gradient import GradientBlock
from oarlock.op.control.recurrent_loop import recurrent, split_outputs
from oarlock.op.creation import full_like
from oarlock.registry.gradient import Backward

__all__ = ["LoopGradient"]


@recurrent.gradient_maker
def recurrent_gradients(op: Op, backward: Backward) -> list[tuple[Var, Var | RowGradient]]:
    """Build the loop in the other direction; return each input with its gradient. Raises GradientError for a loop over segments."""
    if op.attributes.get("segments"):
        raise GradientError("recurrent: a loop over segments, which a pass creates, has no gradient", location=op.location, op=op.type)
    body: Block = op.attributes["body"]  # type: ignore[assignment]
    sequences = op.inputs["sequences"]
    steps = dict(zip(body.inputs, sequences, strict=False))
    splits = op.inputs.get("splits", (None,))[0]
    memories = body.inputs[len(sequences) :]
    _, following, sums = split_outputs(body.outputs, len(memories), op.attributes["summed"])  # type: ignore[arg-type]
    return LoopGradient(
        op, backward, steps=steps, memories=memories, following=following, sums=sums, reverse=not op.attributes["reverse"], splits=splits
    ).build()


class LoopGradient(GradientBlock):
    """The construction of a gradient loop from the forward loop `op`.

    `steps` maps the inputs of the body that are steps to their sequences; `memories` are its other inputs, with the next values
    `following`; `sums` are its outputs that are summed. Stacks begin at index `first` of its outputs.
    """

    def __init__(
        self,
        op: Op,
        backward: Backward,
        *,
        steps: Mapping[Var, Var],
        memories: list[Var],
        following: list[Var],
        sums: list[Var],
        reverse: bool,
        splits: Var | None = None,
        first: int = 0,
    ):
        super().__init__(op, backward, given=steps, slot="stacked", first=first)
        self.start = dict(zip(memories, op.inputs["initial"], strict=True))
        self.following = dict(zip(memories, following, strict=True))
        self.sums = sums
        self.reverse = reverse
        self.splits = splits

    def build(self) -> list[tuple[Var, Var | RowGradient]]:
        """Append the loop; return each input of the forward loop that has a gradient, with it."""
        arrived_stacks = self.arrived("stacked", self.returned)
        arrived_sums = self.arrived("sums", self.sums) if self.sums else []
        final = dict(self.arrived("final", list(self.start)))
        seeded = {var for var, _ in (*arrived_stacks, *arrived_sums)} | {self.following[memory] for memory in final}
        carried = self._carried(seeded, set(final))
        begin = {memory: final[memory] if memory in final else _zeros_like(self.backward.read(self.start[memory])) for memory in carried}
        if self.splits is not None:
            self._add_sequence()
        with self.block:
            inside = {memory: self._memory(memory) for memory in carried}
            seeds = [(var, self.take(gradient, var)) for var, gradient in arrived_stacks]
            seeds += [(self.following[memory], gradient) for memory, gradient in inside.items()]
            seeds += arrived_sums
            free = [var for var in self.op.inputs["free"] if self.backward.wants(var)]
            wanted = [*self.wanted(), *carried, *free]
            found, rows = self.by_rows(self.backward.differentiate(self.forward.ops, self.block, seeds, wanted, self.read))
            following = [found[memory] if memory in found else _zeros_like(inside[memory]) for memory in carried]
        if not found and not carried and not rows.gradients:  # without iterations, carried values pass through unchanged
            self.block.program.discard_block(self.block)
            return []
        steps = [var for var in self.wanted() if var in found]
        free = [var for var in free if var in found]
        if not self.taken:
            self._add_sequence()
        for var in steps:
            if self.splits is not None and not is_by_row(var, self.forward):
                self.read(var)  # its gradient has the same number of steps
        self.block.inputs = [*self.taken.values(), *inside.values()]
        self.block.outputs = [*(found[var] for var in steps), *rows.returned, *following, *(found[var] for var in free)]
        stacked, finals, sums = recurrent(
            list(self.taken),
            list(begin.values()),
            free_vars(self.block),
            None if self.splits is None else self.backward.read(self.splits),
            body=self.block,
            summed=len(free),
            reverse=self.reverse,
        )
        for var, gradient in zip(steps, stacked, strict=False):
            gradient.shape = self.given[var].shape  # one per forward step: no new size
        gradients = [(self.given[var], gradient) for var, gradient in zip(steps, stacked, strict=False)]
        gradients += [(self.start[memory], gradient) for memory, gradient in zip(carried, finals, strict=True)]
        return [*gradients, *zip(free, sums, strict=True), *rows.outside(stacked[len(steps) :])]

    def is_stacked_evenly(self, var: Var, even: Collection[str]) -> bool:
        by_row = self.splits is not None and is_by_row(var, self.forward)
        return super().is_stacked_evenly(var, {*even, active_rows(self.forward)} if by_row else even)

    def outside(self, shape: Shape) -> Shape:
        if self.splits is not None:
            step, sequence = next(iter(self.given.items()))
            if shape and shape[0] == step.shape[0]:  # type: ignore[index]
                return (sequence.shape[0], *shape[1:])  # type: ignore[index]
            return (self._steps_of_rows(), *shape)
        if self.given:
            return (next(iter(self.given.values())).shape[0], *shape)  # type: ignore[index]
        return (self._trips(), *shape)

    def _trips(self) -> Size:
        """Return the number of iterations: the first size of the stacks."""
        stacks = self.op.outputs["stacked"]
        return stacks[0].shape[0] if stacks else self.op.block.program.unique("size")  # type: ignore[index]

    def _steps_of_rows(self) -> Size:
        """Return the number of steps of a ragged loop: the first size of stacks with a value per step."""
        for inner, outer in (*self.given.items(), *zip(self.returned, self.op.outputs["stacked"], strict=True)):
            if not is_by_row(inner, self.forward):
                return outer.shape[0]  # type: ignore[index]
        return self.op.block.program.unique("size")

    def _add_sequence(self) -> None:
        """Add a sequence to the gradient loop that determines its number of iterations."""
        self.read(next(iter(self.given)) if self.given else self.forward.outputs[0])

    def _memory(self, memory: Var) -> Var:
        name = self.block.program.unique(f"{memory.name.partition('@')[0]}@STEP")
        return self.block.new_var(name, memory.dtype, memory.shape)

    def _carried(self, seeds: set[Var], reaching: set[Var]) -> list[Var]:
        """Return the memories whose gradient is carried: a wanted value reaches them, and they reach a gradient.

        `seeds` are the variables of the body with gradients, `reaching` the memories whose final value has one. Both sets are fixpoints,
        because memories depend on each other between iterations. Counters are left out here.
        """
        depends = self.backward.depends
        sources = {*self.wanted(), *(var for var in self.op.inputs["free"] if self.backward.wants(var))}
        passing = [memory for memory in self.start if not memory.stop_gradient]
        reached = {memory for memory in passing if self.backward.wants(self.start[memory])}
        while True:
            targets = {self.following[memory] for memory in self.start if memory not in reached}
            found = depends(self.forward.ops, targets, sources | reached)
            more = {memory for memory in passing if self.following[memory] in found} - reached
            if not more:
                break
            reached |= more
        while True:
            more = {memory for memory in self.start if memory not in reaching and depends(self.forward.ops, seeds, {memory})}
            if not more:
                break
            reaching = reaching | more
            seeds = seeds | {self.following[memory] for memory in more}
        return [memory for memory in self.start if memory in reached & reaching and memory.dtype.is_inexact]


def _zeros_like(var: Var) -> Var:
    return full_like(var, value=0.0, dtype=var.dtype)
