"""A body that runs once per step of a sequence. Its gradient is another such loop: `op/control/loop_gradient.py`."""

from collections.abc import Sequence

import torch

from oarlock.errors import ShapeError
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.size import add, names_in
from oarlock.ir.var import Var
from oarlock.op.control.active_rows import active_rows, is_by_row, require_rows, told_elsewhere
from oarlock.op.control.layout import flow_of
from oarlock.op.control.ragged_rows import RaggedRows, elements_in
from oarlock.op.trusted_operator import operator
from oarlock.registry.signature import TensorType
from oarlock.registry.value_sizes import BlockSizes, predict_size
from oarlock.tensor.sequences import lengths_in
from oarlock.tensor.stacks import Stack, stack

__all__ = ["recurrent", "require_one_length", "segments_of", "split_outputs"]

_LEAST = 4  # minimum steps of a segment


@operator(
    "*sequences: any, *initial: any, *free: any, splits?: int64[s] -> *stacked: any, *final: any, *sums: any", added_later=("segments",)
)
def recurrent(context, sequences, initial, free, splits=None, *, body: Block, summed: int = 0, reverse: bool = False, segments: int = 0):
    """Run ``body`` once per step, each step in a scope of its own.

    ``sequences`` have time as the first axis, ``[t *d]``, with the same length ``t``. The body receives a step of each sequence and the
    memories; it returns the values to stack, then the next value of each memory, then ``summed`` values that are summed over the steps.
    ``free`` are the outer variables that the body reads. With ``reverse``, the last step runs first; stacks keep the order of the
    sequences. If ``t`` is 0, stacks are empty, memories keep their initial values and sums are zero.

    With ``splits``, row splits ``int64[n+1]``, the sequences are ragged: the concatenated elements of ``n`` rows, ``[t *d]``. Step ``i``
    has element ``i`` of each row that has one, the longest row first, without padding: the body receives ``[m *d]`` with a decreasing
    ``m``. Memories are ``[n *d]`` outside and ``[m *d]`` inside; the memory of a row is kept after its sequence has ended. Outputs of the
    body without ``m`` in front are stacked per step, ``[steps *d]``.

    With ``segments``, an iteration covers several steps: the sequences are split into at most that many segments, of at least four steps
    and equal length, except for the last. The body receives and returns ``[m *d]`` for a segment of ``m`` steps; its outputs are
    concatenated. Memories and sums are per segment. The pass `segment_loops` creates such loops; they have no gradient.
    """
    stack_vars, _, sum_vars = split_outputs(body.outputs, len(initial), summed)
    if segments:
        steps = Segments(sequences, segments)
    else:
        steps = Steps(sequences) if splits is None else RaggedSteps(sequences, splits, body, context.op, free)
    memories = steps.begin(initial)
    stacks: list[list[Stack]] = [[] for _ in stack_vars]
    totals: list[torch.Tensor] = []
    for step in reversed(range(steps.count)) if reverse else range(steps.count):
        given = [*steps.take(step), *steps.before(memories, step)]
        steps.check(given, step)
        outputs = context.run_block(body, given, trip=step)
        stacked, following, parts = split_outputs(outputs, len(initial), summed)
        for values, value in zip(stacks, stacked, strict=True):
            values.append(value)
        memories = steps.after(memories, following, step)
        totals = [total + part for total, part in zip(totals, parts, strict=True)] if totals else parts
    if not steps.count:
        return [steps.empty(context, var) for var in stack_vars], list(initial), [context.zeros(var) for var in sum_vars]
    joined = [steps.join(var, values[::-1] if reverse else values) for var, values in zip(stack_vars, stacks, strict=True)]
    memories = steps.end(memories)
    context.leave(body.inputs[len(sequences) :], memories)
    return joined, memories, totals


@predict_size(recurrent, bounded=True)
def recurrent_steps(sequences, initial, free, splits=None, *, body, summed, reverse, segments=0):
    if splits is None:
        return len(sequences[0])
    lengths = lengths_in(splits, elements_in(sequences[0]))
    return int(lengths.max()) if len(lengths) else 0


def split_outputs(outputs: list, memories: int, summed: int) -> tuple[list, list, list]:
    """Split the outputs of a body into stacked values, next memories and summed values."""
    first_memory = len(outputs) - summed - memories
    first_sum = len(outputs) - summed
    return outputs[:first_memory], outputs[first_memory:first_sum], outputs[first_sum:]


def require_one_length(sequences: Sequence[Stack]) -> None:
    """Raise ValueError for sequences of different lengths."""
    if any(len(sequence) != len(sequences[0]) for sequence in sequences):
        raise ValueError(f"sequences of different lengths: {', '.join(str(len(sequence)) for sequence in sequences)}")


class Steps:
    """The steps of sequences with time as the first axis."""

    def __init__(self, sequences: list[Stack]):
        self.sequences = sequences
        self.count = len(sequences[0])
        require_one_length(sequences)

    def begin(self, initial: list) -> list:
        return list(initial)

    def end(self, memories: list) -> list:
        return memories

    def take(self, step: int) -> list[Stack]:
        return [sequence[step] for sequence in self.sequences]

    def check(self, given: list, step: int) -> None:
        """Raise ValueError if an input of the body does not have its declared size."""

    def before(self, memories: list, step: int) -> list:
        return memories

    def after(self, memories: list, following: list, step: int) -> list:
        return following

    def join(self, var: Var, values: list[Stack]) -> Stack:
        return stack(values)

    def empty(self, context, var: Var) -> torch.Tensor:
        return context.zeros(var, leading=(0,))


class Segments(Steps):
    """The segments of sequences with time as the first axis, each of several steps."""

    def __init__(self, sequences: list[Stack], segments: int):
        super().__init__(sequences)
        self.sequences = segments_of(segments, *sequences)
        self.count = len(self.sequences[0])

    def join(self, var: Var, values: list[Stack]) -> Stack:
        return torch.cat(values)  # type: ignore[arg-type]

    def empty(self, context, var: Var) -> torch.Tensor:
        return context.zeros(var)


def segments_of(count: int, *sequences: Stack) -> list[Sequence[torch.Tensor]]:
    """Split each sequence into at most `count` segments, as views. Raises ValueError if lengths differ, or a sequence is uneven."""
    require_one_length(sequences)
    if not all(isinstance(sequence, torch.Tensor) for sequence in sequences):
        raise ValueError("a sequence with steps of different sizes cannot be split into segments")
    steps = len(sequences[0])
    return [sequence.split(max(-(-steps // count), _LEAST)) if steps else () for sequence in sequences]  # type: ignore[union-attr]


class RaggedSteps:
    """The steps of ragged sequences; a memory has as many rows as are active."""

    def __init__(self, sequences: list[Stack], splits: torch.Tensor, body: Block, op: Op, free: list[Stack]):
        self.sized_by_rows = told_elsewhere(op, body)
        self.free = dict(zip(op.inputs["free"], free, strict=True))
        self.rows = RaggedRows(splits, sequences[0])
        self.count = self.rows.steps
        self.body = body
        self.by_row = [is_by_row(var, body) for var in body.inputs]
        self.steps = [self.rows.split(sequence, by_row=by_row) for sequence, by_row in zip(sequences, self.by_row, strict=False)]

    def take(self, step: int) -> list[Stack]:
        return [steps[step] for steps in self.steps]

    def check(self, given: list, step: int) -> None:
        if self.sized_by_rows:
            held = {**self.free, **dict(zip(self.body.inputs, given, strict=True))}
            require_rows(active_rows(self.body), self.rows.counts[step], self.sized_by_rows, [held[var] for var in self.sized_by_rows])

    def _memories_by_row(self) -> list[bool]:
        return self.by_row[len(self.steps) :]

    def begin(self, initial: list) -> list:
        return [self.rows.sort(memory) if by_row else memory for memory, by_row in zip(initial, self._memories_by_row(), strict=True)]

    def end(self, memories: list) -> list:
        return [self.rows.unsort(memory) if by_row else memory for memory, by_row in zip(memories, self._memories_by_row(), strict=True)]

    def before(self, memories: list, step: int) -> list:
        pairs = zip(memories, self._memories_by_row(), strict=True)
        return [memory[: self.rows.counts[step]] if by_row else memory for memory, by_row in pairs]

    def after(self, memories: list, following: list, step: int) -> list:
        count = self.rows.counts[step]
        triples = zip(memories, following, self._memories_by_row(), strict=True)
        return [torch.cat([new, old[count:]]) if by_row else new for old, new, by_row in triples]

    def join(self, var: Var, values: list[Stack]) -> Stack:
        return self.rows.join(values) if is_by_row(var, self.body) else stack(values)

    def empty(self, context, var: Var) -> torch.Tensor:
        return context.zeros(var) if is_by_row(var, self.body) else context.zeros(var, leading=(0,))


def recurrent_sizes(op: Op) -> BlockSizes | None:
    """Return the sizes that row splits determine: the number of active rows, and of steps if a sequence has a value per step."""
    if not op.inputs.get("splits"):
        return None
    (body,) = op.blocks
    pairs = zip(body.inputs, op.inputs["sequences"], strict=False)
    steps = frozenset(outer.shape[0] for inner, outer in pairs if outer.shape and not is_by_row(inner, body))
    return BlockSizes(steps, active_rows(body), op.inputs["splits"][0])


recurrent.block_sizes = recurrent_sizes
recurrent.block_flow = flow_of


@recurrent.infer_shape
def recurrent_types(sequences, initial, free, splits, *, body, summed, reverse, segments=0):
    if not sequences:
        raise ShapeError("a loop needs at least one sequence")
    for number, sequence in enumerate(sequences):
        if not sequence.shape:
            raise ShapeError(f"sequence {number} has no axis of steps")
    if segments < 0 or (segments and splits is not None):
        raise ShapeError(
            f"segments must be at least 0, not {segments}" if segments < 0 else "ragged sequences cannot be split into segments"
        )
    form = (_SegmentForm if segments else _Form)(sequences, body) if splits is None else _RaggedForm(sequences, body, splits)
    received = [form.step(number, sequence) for number, sequence in enumerate(sequences)]
    if len(body.inputs) != len(sequences) + len(initial):
        raise ShapeError(f"the body takes {len(body.inputs)} values, but receives {len(sequences) + len(initial)}")
    received += [form.memory(type, var) for type, var in zip(initial, body.inputs[len(sequences) :], strict=True)]
    if summed < 0 or len(body.outputs) < len(initial) + summed:
        raise ShapeError(f"the body returns {len(body.outputs)} values, too few for {len(initial)} memories and {summed} sums")
    for var, type in zip(body.inputs, received, strict=True):
        if (var.dtype, var.shape) != type:
            raise ShapeError(f'the body takes "{var.name}" as {var.type_text}, but receives {type}')
    types = [TensorType(var.dtype, var.shape) for var in body.outputs]
    stacked, following, sums = split_outputs(types, len(initial), summed)
    for number, (before, after) in enumerate(zip(received[len(sequences) :], following, strict=True)):
        if before != after:
            raise ShapeError(f"memory {number} begins as {before} but continues as {after}")
    if any(type.shape is None for type in stacked):
        raise ShapeError("the body returns a value of unknown rank, whose steps cannot be stacked")
    around = _names([*sequences, *initial, *free, *([] if splits is None else [splits])])
    for number, type in enumerate(sums):
        if not _names([type]) <= around:
            raise ShapeError(f"sum {number} is {type}, whose size may differ between steps")
    return [form.stack(type) for type in stacked], list(initial), sums


def _names(types: Sequence[TensorType]) -> set[str]:
    return {name for type in types for size in type.shape or () for name in names_in(size)}


class _Form:
    """The relation of the types outside a loop to those inside."""

    def __init__(self, sequences: list[TensorType], body: Block):
        self.length = sequences[0].shape[0]  # type: ignore[index]

    def step(self, number: int, sequence: TensorType) -> TensorType:
        if sequence.shape[0] != self.length:  # type: ignore[index]
            raise ShapeError(f"sequence {number} has {sequence.shape[0]} steps but sequence 0 has {self.length}")  # type: ignore[index]
        return TensorType(sequence.dtype, sequence.shape[1:])  # type: ignore[index]

    def memory(self, initial: TensorType, var: Var) -> TensorType:
        return initial

    def stack(self, type: TensorType) -> TensorType:
        return TensorType(type.dtype, (self.length, *type.shape))  # type: ignore[misc]


class _SegmentForm(_Form):
    """The relation of types for iterations over segments."""

    def __init__(self, sequences: list[TensorType], body: Block):
        super().__init__(sequences, body)
        first = body.inputs[0].shape if body.inputs else None
        self.steps = first[0] if first else None

    def step(self, number: int, sequence: TensorType) -> TensorType:
        return TensorType(sequence.dtype, (self.steps, *super().step(number, sequence).shape))  # type: ignore[misc]

    def stack(self, type: TensorType) -> TensorType:
        if not type.shape or type.shape[0] != self.steps:
            raise ShapeError(f"the body returns {type} for a segment of {self.steps} steps")
        return TensorType(type.dtype, (self.length, *type.shape[1:]))


class _RaggedForm:
    """The relation of types for ragged sequences."""

    def __init__(self, sequences: list[TensorType], body: Block, splits: TensorType):
        self.body = body
        self.active = active_rows(body)
        self.total = sequences[0].shape[0]  # type: ignore[index]
        self.rows = add(splits.shape[0], -1)  # type: ignore[index]

    def step(self, number: int, sequence: TensorType) -> TensorType:
        if sequence.shape[0] == self.total:  # type: ignore[index]
            return TensorType(sequence.dtype, (self.active, *sequence.shape[1:]))  # type: ignore[index, misc]
        return TensorType(sequence.dtype, sequence.shape[1:])  # type: ignore[index]

    def memory(self, initial: TensorType, var: Var) -> TensorType:
        if not is_by_row(var, self.body):
            return initial
        if not initial.shape or initial.shape[0] != self.rows:
            raise ShapeError(f'the memory "{var.name}" begins as {initial}, but the sequences have {self.rows} rows')
        return TensorType(initial.dtype, (self.active, *initial.shape[1:]))

    def stack(self, type: TensorType) -> TensorType:
        if type.shape and type.shape[0] == self.active:
            return TensorType(type.dtype, (self.total, *type.shape[1:]))
        return TensorType(type.dtype, ("?steps", *type.shape))  # type: ignore[misc]
