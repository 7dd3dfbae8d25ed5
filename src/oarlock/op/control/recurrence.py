"""One step block, run once per step of a sequence; and its gradient, which is another such loop.

Differentiating a loop gives a loop in the other direction, in which (architecture of the project,
"the gradient of a loop is a loop")

    a step input                       becomes   a stacked output
    an initial memory                            a final memory
    a captured variable                          a summed output
    a value of the body that it reads            one more stacked output of the forward loop, a step input here

so `recurrent` is closed under differentiation: there is no operator for its gradient, and second and
higher orders need nothing new.
"""

import torch

from oarlock.errors import ShapeError
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.variable import Var
from oarlock.ir.walk import free_vars
from oarlock.op.filling import fill_like
from oarlock.registry import operator
from oarlock.registry.gradient import Backward
from oarlock.registry.signature import TensorType

__all__ = ["recurrent"]


@operator("*sequences: any, *initial: any, *free: any -> *stacked: any, *final: any, *sums: any")
def recurrent(context, sequences, initial, free, *, body: Block, summed: int = 0, reverse: bool = False):
    """Run ``body`` once per step, each step in a scope of its own.

    ``sequences`` have time first, ``[t *d]``, and one length ``t``. The body takes a step of each sequence and
    the memories; it hands out what is stacked, then the next value of each memory, then the ``summed`` values
    of which the loop gives the sum over its steps. ``free`` are the variables around the loop that the body
    reads. With ``reverse`` the last step runs first; stacks keep the order of the sequences. Where ``t`` is 0,
    stacks are empty, memories keep their initial values and sums are zero.
    """
    length = len(sequences[0])
    if any(len(sequence) != length for sequence in sequences):
        raise ValueError(f"sequences of different lengths: {', '.join(str(len(sequence)) for sequence in sequences)}")
    stack_vars, _, sum_vars = _split(body.outputs, len(initial), summed)
    if not length:
        empty = [context.zeros(var, leading=(0,)) for var in stack_vars]
        return empty, list(initial), [context.zeros(var) for var in sum_vars]
    memories = list(initial)
    stacks: list[list[torch.Tensor]] = [[] for _ in stack_vars]
    totals: list[torch.Tensor] = []
    for step in reversed(range(length)) if reverse else range(length):
        outputs = context.run_block(body, [*(sequence[step] for sequence in sequences), *memories], trip=step)
        stacked, memories, parts = _split(outputs, len(initial), summed)
        for stack, value in zip(stacks, stacked, strict=True):
            stack.append(value)
        totals = [total + part for total, part in zip(totals, parts, strict=True)] if totals else parts
    return [torch.stack(stack[::-1] if reverse else stack) for stack in stacks], memories, totals


def _split(outputs: list, memories: int, summed: int) -> tuple[list, list, list]:
    """A body's outputs: what is stacked, the next memories, what is summed."""
    first_memory = len(outputs) - summed - memories
    first_sum = len(outputs) - summed
    return outputs[:first_memory], outputs[first_memory:first_sum], outputs[first_sum:]


@recurrent.infer_with
def recurrent_types(sequences, initial, free, *, body, summed, reverse):
    if not sequences:
        raise ShapeError("a loop needs a sequence to step through")
    for number, sequence in enumerate(sequences):
        if not sequence.shape:
            raise ShapeError(f"sequence {number} has no dimension to step through")
        if sequence.shape[0] != sequences[0].shape[0]:
            raise ShapeError(f"sequence {number} has {sequence.shape[0]} steps but sequence 0 has {sequences[0].shape[0]}")
    handed_in = [TensorType(sequence.dtype, sequence.shape[1:]) for sequence in sequences] + list(initial)
    if len(body.inputs) != len(handed_in):
        raise ShapeError(f"the body takes {len(body.inputs)} values, yet is handed {len(handed_in)}")
    for var, type in zip(body.inputs, handed_in, strict=True):
        if (var.dtype, var.shape) != type:
            raise ShapeError(f'the body takes "{var.name}" as {var.type_text}, yet is handed {type}')
    if summed < 0 or len(body.outputs) < len(initial) + summed:
        raise ShapeError(f"the body hands out {len(body.outputs)} values, too few for {len(initial)} memories and {summed} sums")
    types = [TensorType(var.dtype, var.shape) for var in body.outputs]
    stacked, following, sums = _split(types, len(initial), summed)
    for number, (before, after) in enumerate(zip(initial, following, strict=True)):
        if before != after:
            raise ShapeError(f"memory {number} begins as {before} but goes on as {after}")
    if any(type.shape is None for type in stacked):
        raise ShapeError("the body hands out a value of unknown rank, and steps of that cannot be stacked")
    return [TensorType(type.dtype, (sequences[0].shape[0], *(type.shape or ()))) for type in stacked], list(initial), sums


def _zeros_like(var: Var) -> Var:
    return fill_like(var, value=0.0, dtype=var.dtype)


@recurrent.build_gradient
def recurrent_gradients(op: Op, backward: Backward) -> list[tuple[Var, Var]]:
    """Build the loop in the other direction; return each input with its gradient."""
    loop = _GradientLoop(op, backward)
    try:
        return loop.build()
    except BaseException:
        loop.body.program.discard_block(loop.body)
        raise


class _GradientLoop:
    """The construction of one gradient loop, from the forward loop `op`."""

    def __init__(self, op: Op, backward: Backward):
        self.op = op
        self.backward = backward
        self.forward: Block = op.attributes["body"]  # type: ignore[assignment]
        self.sequences, self.initial, self.free = (op.inputs[slot] for slot in ("sequences", "initial", "free"))
        self.step_vars = self.forward.inputs[: len(self.sequences)]
        self.memory_vars = self.forward.inputs[len(self.sequences) :]
        self.stack_vars, self.next_vars, self.sum_vars = _split(
            self.forward.outputs,
            len(self.initial),
            op.attributes["summed"],  # type: ignore[arg-type]
        )
        program = op.block.program
        self.body = program.new_block(f"{program.unique('recurrent')}.body", backward.into)
        self.taken: dict[Var, Var] = {}  # a sequence outside -> its step inside

    def build(self) -> list[tuple[Var, Var]]:
        arrived_stacks = self._arrived("stacked", self.stack_vars)
        arrived_sums = self._arrived("sums", self.sum_vars)
        final = {memory: self.backward.gradient_of(var) for memory, var in zip(self.memory_vars, self.op.outputs["final"], strict=True)}
        carried = self._carried({*(var for var, _ in arrived_stacks), *(var for var, _ in arrived_sums)}, final)
        begin = {memory: self._initial_gradient(memory, final[memory]) for memory in carried}
        with self.body:
            inside = {memory: self.body.new_var(self._name(memory), memory.dtype, memory.shape) for memory in carried}
            seeds = [(var, self._take(gradient)) for var, gradient in arrived_stacks]
            seeds += [(self._next(memory), gradient) for memory, gradient in inside.items()]
            seeds += arrived_sums
            steps = [var for var, whole in zip(self.step_vars, self.sequences, strict=True) if self.backward.wants(whole)]
            free = [var for var in self.free if self.backward.wants(var)]
            found = self.backward.differentiate(self.forward.ops, self.body, seeds, [*steps, *carried, *free], self._read)
            following = [found[memory] if memory in found else _zeros_like(inside[memory]) for memory in carried]
        steps = [var for var in steps if var in found]
        free = [var for var in free if var in found]
        if not self.taken:
            self._take(self.backward.read(self.sequences[0]))  # for its length
        self.body.inputs = [*self.taken.values(), *inside.values()]
        self.body.outputs = [*(found[var] for var in steps), *following, *(found[var] for var in free)]
        stacked, finals, sums = recurrent(
            list(self.taken),
            list(begin.values()),
            free_vars(self.body),
            body=self.body,
            summed=len(free),
            reverse=not self.op.attributes["reverse"],
            name=self.body.name.partition(".")[0],
        )
        whole = dict(zip(self.step_vars, self.sequences, strict=True))
        start = dict(zip(self.memory_vars, self.initial, strict=True))
        gradients = [(whole[var], gradient) for var, gradient in zip(steps, stacked, strict=True)]
        gradients += [(start[memory], gradient) for memory, gradient in zip(carried, finals, strict=True)]
        return gradients + list(zip(free, sums, strict=True))

    def _arrived(self, slot: str, inner: list[Var]) -> list[tuple[Var, Var]]:
        """The variables handed out through `slot` to whose outer side a gradient has come, with it."""
        pairs = ((var, self.backward.gradient_of(outer)) for var, outer in zip(inner, self.op.outputs[slot], strict=True))
        return [(var, gradient) for var, gradient in pairs if gradient is not None]

    def _next(self, memory: Var) -> Var:
        return self.next_vars[self.memory_vars.index(memory)]

    def _carried(self, seeded: set[Var], final: dict[Var, Var | None]) -> list[Var]:
        """The memories whose gradient is carried: those that a wanted value reaches, and that reach a gradient.

        Each is a fixpoint, because memories depend on each other from step to step. Counters drop out here.
        """
        depends = self.backward.depends
        sources = {var for var, whole in zip(self.step_vars, self.sequences, strict=True) if self.backward.wants(whole)}
        sources |= {var for var in self.free if self.backward.wants(var)}
        reached = {memory for memory, var in zip(self.memory_vars, self.initial, strict=True) if self.backward.wants(var)}
        seeds = seeded | {self._next(memory) for memory, gradient in final.items() if gradient is not None}
        reaching = {memory for memory, gradient in final.items() if gradient is not None}
        while True:
            targets = {self._next(memory) for memory in self.memory_vars if memory not in reached}
            found = depends(self.forward.ops, targets, sources | reached)
            more = {memory for memory in self.memory_vars if self._next(memory) in found} - reached
            if not more:
                break
            reached |= more
        while True:
            more = {memory for memory in self.memory_vars if memory not in reaching and depends(self.forward.ops, seeds, {memory})}
            if not more:
                break
            reaching |= more
            seeds |= {self._next(memory) for memory in more}
        return [memory for memory in self.memory_vars if memory in reached & reaching and memory.dtype.is_floating]

    def _initial_gradient(self, memory: Var, arrived: Var | None) -> Var:
        return _zeros_like(self.backward.read(self.initial[self.memory_vars.index(memory)])) if arrived is None else arrived

    def _take(self, sequence: Var) -> Var:
        """The step, inside, of a sequence outside."""
        if sequence not in self.taken:
            assert sequence.shape is not None
            self.taken[sequence] = self.body.new_var(self._name(sequence), sequence.dtype, sequence.shape[1:])
        return self.taken[sequence]

    def _name(self, var: Var) -> str:
        return self.body.program.unique(f"{var.name.partition('@')[0]}@STEP")

    def _read(self, var: Var) -> Var:
        """The value that the forward body gave `var`, where the gradient body can read it."""
        if var.block is not self.forward:
            return self.backward.read(var)
        if var in self.step_vars:
            return self._take(self.backward.read(self.sequences[self.step_vars.index(var)]))
        return self._take(self.backward.read(self._stack_of(var)))

    def _stack_of(self, var: Var) -> Var:
        """The stack of what `var` was in each step: one that the forward loop hands out, or a new one."""
        if var in self.stack_vars:
            return self.op.outputs["stacked"][self.stack_vars.index(var)]
        assert var.shape is not None
        shape = (self.sequences[0].shape[0], *var.shape)  # type: ignore[index]
        outer = self.op.block.new_var(self.op.block.program.unique(f"{var.name}@STACK"), var.dtype, shape)
        outer.op = self.op
        self.forward.outputs.insert(len(self.stack_vars), var)
        self.stack_vars.append(var)
        self.op.outputs["stacked"] = (*self.op.outputs["stacked"], outer)
        return outer
