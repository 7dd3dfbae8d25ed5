"""Recurrent networks: write one step, run it over a sequence.

rnn = ol.rnn()
with rnn.step():
    word = rnn.step_input(words)            # words: float[t n d]; word: float[n d]
    state = rnn.memory(init=start)          # or shape=[64], zeros; its value before the step is read explicitly
    before = rnn.previous_memory(state)
    after = ol.layer.fc(ol.layer.concat([word, before], axis=1), 64, act="tanh")
    rnn.update_memory(state, after)
    rnn.output(after)
states = rnn()                              # float[t n 64]

In the step, `words` itself denotes its step too, and so does every variable with the same number of steps: see `Recurrence`. If `words` is
ragged, float[words.t d], the same step runs over sequences of any lengths without padding: `word` has a row for every sequence that still
has a word, and `states` is float[words.t 64], ragged like `words`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from oarlock.errors import ArgumentError, ProgramError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.block_stack import current_block, innermost_block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.substitution import rename_sizes, replace_reads
from oarlock.ir.traversal import free_vars
from oarlock.ir.var import Var
from oarlock.layer.control.body import forbid_row_splits, open_block, require_consistent, require_even, require_returned, require_same_block
from oarlock.layer.control.memory import Memory
from oarlock.layer.control.outer import Wholes, is_stepped, nothing_to_step_through, require_nothing_read, require_rows, require_same_splits
from oarlock.op.creation import full, full_batch_size_like, full_like
from oarlock.op.elementwise import add as add_values
from oarlock.op.reduction import reduce_sum
from oarlock.op.sequence import sequence_lengths, sequence_sum
from oarlock.registry.creator import append_op, require_type

__all__ = ["Recurrence", "innermost_recurrence", "rnn"]


_writing: "ContextVar[tuple[Recurrence, ...]]" = ContextVar("oarlock_recurrences", default=())


class Recurrence:
    """A loop over the steps of sequences. `step()` opens its block, calling it closes the loop.

    In its step, sequences denote their current step: those given to `step_input`, and every outer variable whose leading size has the same
    name. If the step reads a variable before calling `step_input`, the first variable with leading size t, or with row splits, becomes the
    sequence. `whole` is all of a variable.

    Ragged sequences, all with the same row splits, make it a ragged loop. Inside its step, everything with a row for each of the n
    sequences, memories and outer variables included, has only the rows whose sequence still has a step. Sizes are matched by name: a
    variable has these rows if its leading size has the name of the number of rows.
    """

    def __init__(self, *, reverse: bool = False):
        self.reverse = reverse
        self.memories: list[Memory] = []
        self.finals: list[Var] = []
        self._sequences: dict[Var, Var] = {}
        self._splits: Var | None = None
        self._wholes = Wholes()
        self._accumulators: dict[Var, Memory] = {}  # tensor that becomes the final memory -> the memory
        self._outputs: list[Var] = []
        self._starts: list[Var] = []  # initial values computed before the loop
        self._around = current_block()
        self._body: Block | None = None
        self._open = False
        self._called = False

    @contextmanager
    def step(self) -> Iterator[None]:
        """Open the block of one step. Raises ProgramError when entered a second time; an exception inside discards it."""
        if self._body is not None:
            raise ProgramError("rnn: it already has a step block", location=here())
        self._around = current_block()
        _writing.set((*_writing.get(), self))
        try:
            with open_block(f"{self._around.program.unique('rnn')}.body", self._around) as body:
                self._body, self._open = body, True
                body.stand_in = self._stand_in
                yield
        except BaseException:
            self._forget()
            raise
        finally:
            self._open = False
            if self._body is not None:
                self._body.stand_in = None
            _writing.set(_writing.get()[:-1])

    stepnet = step

    def _forget(self) -> None:
        """Reset the loop, as if no step had been written."""
        for var in self._starts:
            if self._around.vars.get(var.name) is var:
                self._around.ops.remove(var.op)  # type: ignore[arg-type]
                del self._around.vars[var.name]
        self._starts.clear()
        self._body, self._splits = None, None
        for written in (self.memories, self._sequences, self._wholes, self._accumulators, self._outputs):
            written.clear()

    def _require_open(self, what: str) -> Block:
        if self._body is None or not self._open:
            raise ProgramError(f"rnn.{what}: call it inside `with rnn.step():`", location=here())
        return self._body

    def _require_outside(self, var: Var, what: str) -> None:
        if any(block is self._body for block in var.block.enclosing()):
            raise ProgramError(
                f'rnn.{what}: "{var.name}" has a value inside the step only, but the loop needs it before its first step',
                location=here(),
                given=[var.describe()],
                hint="compute it before `with rnn.step():`",
            )

    def _require_own(self, memory: Memory, what: str) -> None:
        if memory not in self.memories:
            raise ProgramError(f"rnn.{what}: this is not a memory of this rnn", location=here())

    def step_input(self, sequence: Var) -> Var:
        """Return this step of a sequence: T[t *d] -> T[*d]; for a ragged one, T[t *d] of n rows -> T[n *d].

        Raises ShapeError for a variable without dimensions, and if the sequences of the loop have different row splits.
        """
        body = self._require_open("step_input")
        sequence = require_type(sequence, "rnn.step_input: sequence", self._around)
        self._require_outside(sequence, "step_input")
        if not sequence.shape:
            raise ShapeError(
                f"rnn.step_input: {sequence.name} has no dimension to step through", location=here(), given=[sequence.describe()]
            )
        if sequence not in self._sequences or self._sequences[sequence].name not in body.vars:
            splits = self._around.splits_of(sequence.shape[0])
            shape = sequence.shape[1:]
            if splits is not None:
                shape = (require_rows(sequence, splits), *shape)
            for first in list(self._sequences)[:1]:
                require_same_splits(sequence, splits, first, self._splits)
            if not self._sequences:
                require_nothing_read(sequence, body)
            name = body.program.unique(f"{sequence.name.partition('@')[0]}.step")
            self._sequences[sequence] = body.new_var(name, sequence.dtype, shape)
            self._splits = splits
        return self._sequences[sequence]

    def _stand_in(self, var: Var) -> Var:
        """Return the variable that an outer `var` denotes in the step: its step, if the loop steps through it, else itself."""
        return self.step_input(var) if is_stepped(var, self._sequences, self._around) else var

    def whole(self, var: Var) -> Var:
        """Return all of `var` in each step: T[t *d] for a sequence, which otherwise denotes its step. Raises ProgramError."""
        body = self._require_open("whole")
        var = require_type(var, "rnn.whole: var", self._around)
        self._require_outside(var, "whole")
        return self._wholes.of(var, body, None if self._splits is None else self._rows())

    def _rows(self) -> str:
        """Return the symbol of the number of rows of the first step."""
        return next(iter(self._sequences.values())).shape[0]  # type: ignore[index, return-value]

    def memory(self, init: Var | None = None, *, shape: Sequence[int] | None = None) -> Memory:
        """Create a state that starts as `init`, or as zeros: `shape=[256]` is 256 zeros for each row of the first step input, [n 256].

        Read it with `previous_memory`, set it with `update_memory`. Zeros have the dtype of the step input if that is a float, else
        float32. Raises ArgumentError unless exactly one of the two is given; ProgramError for zeros if there is no step input with rows.
        """
        body = self._require_open("memory")
        if (init is None) == (shape is None):
            raise ArgumentError("rnn.memory: pass either init or shape", location=here())
        if shape is not None:
            init = self._zero_rows(shape)
        init = require_type(init, "rnn.memory: init", self._around)
        self._require_outside(init, "memory")
        previous = body.new_var(body.program.unique("memory"), init.dtype, init.shape)
        self.memories.append(Memory(init, previous))
        return self.memories[-1]

    def _zero_rows(self, shape: Sequence[int]) -> Var:
        """Return zeros of `shape` for each row of the first step input, computed before the loop."""
        sequence, step = next(iter(self._sequences.items()), (None, None))
        if sequence is None or not step.shape:  # type: ignore[union-attr]
            raise ProgramError(
                "rnn.memory: zeros have the rows of the first step input, but there is no step input with rows",
                location=here(),
                hint="call rnn.step_input(sequence) before rnn.memory(shape=...)",
            )
        return self._full_batch_size_like(sequence, shape, sequence.dtype if sequence.dtype.is_floating else DType.FLOAT32)

    def _full_batch_size_like(self, sequence: Var, shape: Sequence[int], dtype: DType) -> Var:
        """Return zeros of `shape` for each row of a step of `sequence`, computed before the loop."""
        with self._around:
            if self._splits is None:
                self._starts.append(full_batch_size_like(sequence, axis=1, shape=shape, value=0.0, dtype=dtype))
            else:
                self._starts.append(sequence_lengths(self._splits))
                self._starts.append(full_batch_size_like(self._starts[-1], shape=shape, value=0.0, dtype=dtype))
        return self._starts[-1]

    def previous_memory(self, memory: Memory) -> Var:
        """Return the state before this step."""
        self._require_open("previous_memory")
        self._require_own(memory, "previous_memory")
        return memory.previous

    def update_memory(self, memory: Memory, value: Var) -> None:
        """Set the state after this step to `value`. Raises ProgramError the second time, ShapeError for another type."""
        body = self._require_open("update_memory")
        self._require_own(memory, "update_memory")
        (value,) = require_returned([require_type(value, "rnn.update_memory: value")], body, "rnn.update_memory")
        if memory.updated is not None:
            raise ProgramError("rnn.update_memory: this memory is already updated", location=here(), given=[memory.updated.describe()])
        if (value.dtype, value.shape) != (memory.previous.dtype, memory.previous.shape):
            raise ShapeError(
                f"rnn.update_memory: the state starts as {memory.previous.type_text} but becomes {value.type_text}",
                location=here(),
                given=[memory.initial.describe(), value.describe()],
            )
        memory.updated = value

    def add_to(self, accum: Var, value: Var | None = None) -> Var:
        """Add `value`, by default the only step input, to a state that starts as zeros; return the sum so far.

        `accum` is a tensor without a value, `ol.framework.tensor()`: after the loop it is the state after the last step. Raises
        ArgumentError if it has a value, ProgramError for a `value` of None unless there is exactly one step input, ShapeError if zeros of
        its type cannot be created before the first step.
        """
        body = self._require_open("add_to")
        accum = require_type(accum, "rnn.add_to: accum", self._around)
        if value is None:
            if len(self._sequences) != 1:
                raise ProgramError(f"rnn.add_to: None means the step input, but there are {len(self._sequences)}", location=here())
            (value,) = self._sequences.values()
        (value,) = require_returned([require_type(value, "rnn.add_to: value")], body, "rnn.add_to")
        if accum.shape is not None or accum.op is not None or accum in self._accumulators or accum.block is not self._around:
            raise ArgumentError(
                f'rnn.add_to: "{accum.name}" cannot become the sum over the steps',
                location=here(),
                contract="it is a tensor without a value, from the block of the loop, and used in one add_to",
                given=[accum.describe()],
                hint="use accum = ol.framework.tensor(), or rnn.memory(init=value) for a state that starts as a value",
            )
        if not _is_fixed(value) and self._sequence_like(value) is None:
            raise ShapeError(
                f"rnn.add_to: the state would start as zeros of {value.type_text}, which cannot be created before the first step",
                location=here(),
                contract="zeros have sizes that are numbers, or the type of a step input",
                given=[value.describe()],
                hint="use state = rnn.memory(init=zeros)",
            )
        previous = body.new_var(body.program.unique("memory"), value.dtype, value.shape)
        self.memories.append(Memory(accum, previous, add_values(previous, value)))
        self._accumulators[accum] = self.memories[-1]
        return self.memories[-1].updated  # type: ignore[return-value]

    def _sequence_like(self, value: Var) -> Var | None:
        """Return a sequence whose step has the type of `value`, or None."""
        steps = self._sequences.items()
        return next((sequence for sequence, step in steps if (step.dtype, step.shape) == (value.dtype, value.shape)), None)

    def output(self, *values: Var) -> None:
        """Output `values` of every step; they are stacked, T[*d] -> T[t *d]. In a ragged loop, T[n *d] -> T[t *d], ragged too.

        Raises ShapeError for a value whose size can differ between steps.
        """
        body = self._require_open("output")
        vars = require_returned([require_type(value, "rnn.output: value") for value in values], body, "rnn.output")
        require_even(vars, body, "rnn.output")
        self._outputs += vars

    def __call__(self) -> Var | tuple[Var, ...]:
        """Close the loop and return its outputs: one variable, or a tuple. `final_memory` returns the states after the last step.

        Raises ProgramError if a memory is never updated or there is no sequence, ShapeError if the types of a step do not match; the step
        is then removed.
        """
        body, program = self._body, self._around.program
        if body is None or self._open or self._called:
            raise ProgramError("rnn(): close it once, after its step block", location=here())
        require_same_block(innermost_block(program), self._around, "rnn")
        try:
            with undone_on_error(program):
                self._require_complete()
                stacked = self._close(body)
        except BaseException:
            program.discard_block(body)
            self._forget()
            raise
        self._called = True
        return stacked[0] if len(stacked) == 1 else tuple(stacked)

    def _require_complete(self) -> None:
        for memory in self.memories:
            if memory.updated is None:
                raise ProgramError(
                    "rnn: a memory is never updated",
                    location=memory.previous.location,
                    hint="call rnn.update_memory(memory, value) in the step",
                )
        if not self._sequences:
            raise nothing_to_step_through()

    def _close(self, body: Block) -> list[Var]:
        """Append the op; return its stacked outputs."""
        name = body.name.partition(".")[0]
        body.inputs = [*self._sequences.values(), *(memory.previous for memory in self.memories)]
        body.outputs = [*self._outputs, *(memory.updated for memory in self.memories if memory.updated is not None)]
        constants = [] if self._splits is None else self._restrict_to_rows(body, name)
        self._wholes.settle(body)
        initial = [self._zeros(memory) if memory.initial in self._accumulators else memory.initial for memory in self.memories]
        final = [memory.initial if memory.initial in self._accumulators else None for memory in self.memories] + [None] * len(constants)
        op = append_op(
            self._around,
            "recurrent",
            {
                "sequences": list(self._sequences),
                "initial": initial + constants,
                "free": free_vars(body),
                **({} if self._splits is None else {"splits": self._splits}),
            },
            {
                "stacked": [f"{name}.stacked.{number}" for number in range(len(self._outputs))],
                "final": [f"{name}.final.{number}" if var is None else var for number, var in enumerate(final)],
                "sums": [],
            },
            {"body": body, "reverse": self.reverse},
        )
        self.finals = list(op.outputs["final"])
        return list(op.outputs["stacked"])

    def _restrict_to_rows(self, body: Block, name: str) -> list[Var]:
        """Restrict a step to the rows that still have a step; return the captured row-wise variables, which become constant memories."""
        rows = self._rows()
        self._wholes.require_known(rows)
        forbid_row_splits(body, rows)
        constants = [var for var in free_vars(body) if var.shape and var.shape[0] == rows]
        inside = {var: body.new_var(body.program.unique(var.name.partition("@")[0]), var.dtype, var.shape) for var in constants}
        replace_reads(body, inside)
        body.inputs += inside.values()
        body.outputs += inside.values()
        symbol = f"{name}.rows"
        rename_sizes(body, {rows: symbol if body.program.is_free(symbol) else body.program.unique(symbol)})
        require_consistent(
            body,
            "rnn",
            contract=f"a step sees only the rows that still have a step of variables with a row for each of the {rows} sequences",
            hint="convert the variables to that form before the loop",
        )
        return constants

    def _zeros(self, memory: Memory) -> Var:
        """Return zeros of the type of a memory, computed before the loop."""
        previous = memory.previous
        like = self._sequence_like(previous)
        if _is_fixed(previous) or like is None:
            with self._around:
                return full(shape=previous.shape, value=0.0, dtype=previous.dtype)
        if all(isinstance(size, int) for size in previous.shape[1:]):  # type: ignore[index]
            return self._full_batch_size_like(like, previous.shape[1:], previous.dtype)  # type: ignore[index, arg-type]
        with self._around:  # a sum over the steps has all the sizes
            total = reduce_sum(like, axis=0) if self._splits is None else sequence_sum(like, self._splits)
            return full_like(total, value=0.0, dtype=previous.dtype)

    def final_memory(self, memory: Memory) -> Var:
        """Return the state after the last step of each row, or the initial state if there were no steps."""
        if not self._called:
            raise ProgramError("rnn.final_memory: call rnn() first", location=here())
        self._require_own(memory, "final_memory")
        return self.finals[self.memories.index(memory)]


def _is_fixed(var: Var) -> bool:
    return var.shape is not None and all(isinstance(size, int) for size in var.shape)


def innermost_recurrence(var: Var | None, what: str) -> Recurrence:
    """Return the recurrence whose step is open in the program of `var`. Raises ProgramError if there is none."""
    for recurrence in reversed(_writing.get()):
        if var is None or recurrence._around.program is var.block.program:
            return recurrence
    raise ProgramError(f"{what}: no step is open", location=here(), hint="call it inside `with rnn.step():`")


def rnn(*, reverse: bool = False) -> Recurrence:
    """Create a recurrent network; with `reverse`, it starts at the last step of each sequence."""
    return Recurrence(reverse=reverse)
