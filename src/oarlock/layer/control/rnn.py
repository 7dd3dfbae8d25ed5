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

In the step, `words` itself stands for its step too, and so does whatever else leads with its number of steps: see `Recurrence`.
Where `words` is ragged, float[words.t d], the same step runs over sequences of any lengths: `word` has a row for every sequence that
still has a word, nothing is padded, and `states` is float[words.t 64], ragged as `words` is.
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
from oarlock.layer.control.body import open_block, require_consistent, require_even, require_returned, require_same_block, require_uncut
from oarlock.layer.control.memory import Memory
from oarlock.layer.control.outer import Wholes, is_stepped, nothing_to_step_through, require_nothing_read, require_rows, require_same_splits
from oarlock.op.creation import full, full_batch_size_like, full_like
from oarlock.op.elementwise import add as add_values
from oarlock.op.reduction import reduce_sum
from oarlock.op.sequence import sequence_lengths, sequence_sum
from oarlock.registry.creator import append_op, require_type

__all__ = ["Memory", "Recurrence", "innermost_recurrence", "rnn"]

_writing: "ContextVar[tuple[Recurrence, ...]]" = ContextVar("oarlock_recurrences", default=())


class Recurrence:
    """A loop over the steps of sequences. `step()` opens its block, calling it closes the loop.

    Ragged sequences, all cut by the same row splits, make a ragged loop of it. Inside a step of that, whatever has a row for each of
    the n sequences, memories and variables of outside alike, has those rows whose sequence still has a step. Sizes decide by their
    names: it is a variable's leading size being called as the number of rows that makes it one.

    The sequences that the loop steps through stand, in its step, for their step: what was given to `step_input`, and every variable of
    outside whose leading size is called as theirs. Where the step reads before it has named one, a variable whose leading size is called
    t, or is cut by row splits, is the first of them. `whole` is all of a variable.
    """

    def __init__(self, *, reverse: bool = False):
        self.reverse = reverse
        self.memories: list[Memory] = []
        self.finals: list[Var] = []
        self._sequences: dict[Var, Var] = {}
        self._splits: Var | None = None
        self._wholes = Wholes()
        self._accumulators: dict[Var, Memory] = {}  # a tensor that will be the final memory -> the memory
        self._outputs: list[Var] = []
        self._starts: list[Var] = []  # what was computed before the loop for it to start with
        self._around = current_block()
        self._body: Block | None = None
        self._open = False
        self._called = False

    @contextmanager
    def step(self) -> Iterator[None]:
        """The block of one step. Raises ProgramError when entered a second time; an exception inside discards it."""
        if self._body is not None:
            raise ProgramError("rnn: it has a step block already", location=here())
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
        """As if no step had been written."""
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
                f'rnn.{what}: "{var.name}" has a value inside the step only, yet the loop needs it before its first step',
                location=here(),
                given=[var.describe()],
                hint="make it before `with rnn.step():`",
            )

    def _require_own(self, memory: Memory, what: str) -> None:
        if memory not in self.memories:
            raise ProgramError(f"rnn.{what}: that is not a memory of this rnn", location=here())

    def step_input(self, sequence: Var) -> Var:
        """Return this step of a sequence: T[t *d] -> T[*d]; of a ragged one, T[t *d] of n rows, -> T[n *d].

        Raises ShapeError for what has no steps, and where one sequence is ragged and another is not, or otherwise.
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
        """The variable that stands in the step for `var`, of outside: its step, where the loop steps through it, else itself."""
        return self.step_input(var) if is_stepped(var, self._sequences, self._around) else var

    def whole(self, var: Var) -> Var:
        """All of `var`, in each step: T[t *d] of a sequence, which would else stand for its step. Raises ProgramError."""
        body = self._require_open("whole")
        var = require_type(var, "rnn.whole: var", self._around)
        self._require_outside(var, "whole")
        return self._wholes.of(var, body, None if self._splits is None else self._rows())

    def _rows(self) -> str:
        """The name of the number of rows of the first step."""
        return next(iter(self._sequences.values())).shape[0]  # type: ignore[index, return-value]

    def memory(self, init: Var | None = None, *, shape: Sequence[int] | None = None) -> Memory:
        """A state that starts as `init`, or as zeros: `shape=[256]` is 256 of them for each row of the first step input, [n 256].

        Read it by `previous_memory`, set it by `update_memory`. Zeros have the dtype of the step input where that is a float, else
        float32. Raises ArgumentError where not one of the two is given; ProgramError for zeros where no step input tells their
        number of rows.
        """
        body = self._require_open("memory")
        if (init is None) == (shape is None):
            raise ArgumentError("rnn.memory: it starts as init or as zeros of a shape, one of the two", location=here())
        if shape is not None:
            init = self._zero_rows(shape)
        init = require_type(init, "rnn.memory: init", self._around)
        self._require_outside(init, "memory")
        previous = body.new_var(body.program.unique("memory"), init.dtype, init.shape)
        self.memories.append(Memory(init, previous))
        return self.memories[-1]

    def _zero_rows(self, shape: Sequence[int]) -> Var:
        """Zeros of `shape` for each row of the first step input, made before the loop."""
        sequence, step = next(iter(self._sequences.items()), (None, None))
        if sequence is None or not step.shape:  # type: ignore[union-attr]
            raise ProgramError(
                "rnn.memory: zeros have as many rows as the first step input, and there is none with rows",
                location=here(),
                hint="rnn.step_input(sequence) before rnn.memory(shape=...)",
            )
        return self._full_batch_size_like(sequence, shape, sequence.dtype if sequence.dtype.is_floating else DType.FLOAT32)

    def _full_batch_size_like(self, sequence: Var, shape: Sequence[int], dtype: DType) -> Var:
        """Zeros of `shape` for each row of a step of `sequence`, made before the loop."""
        with self._around:
            if self._splits is None:
                self._starts.append(full_batch_size_like(sequence, axis=1, shape=shape, value=0.0, dtype=dtype))
            else:
                self._starts.append(sequence_lengths(self._splits))
                self._starts.append(full_batch_size_like(self._starts[-1], shape=shape, value=0.0, dtype=dtype))
        return self._starts[-1]

    def previous_memory(self, memory: Memory) -> Var:
        """The state before this step."""
        self._require_open("previous_memory")
        self._require_own(memory, "previous_memory")
        return memory.previous

    def update_memory(self, memory: Memory, value: Var) -> None:
        """Make `value` the state after this step. Raises ProgramError the second time, ShapeError for another type."""
        body = self._require_open("update_memory")
        self._require_own(memory, "update_memory")
        (value,) = require_returned([require_type(value, "rnn.update_memory: value")], body, "rnn.update_memory")
        if memory.updated is not None:
            raise ProgramError("rnn.update_memory: this memory is updated already", location=here(), given=[memory.updated.describe()])
        if (value.dtype, value.shape) != (memory.previous.dtype, memory.previous.shape):
            raise ShapeError(
                f"rnn.update_memory: the state starts as {memory.previous.type_text} but becomes {value.type_text}",
                location=here(),
                given=[memory.initial.describe(), value.describe()],
            )
        memory.updated = value

    def add_to(self, accum: Var, value: Var | None = None) -> Var:
        """Add `value` to a state that starts as zeros; return the sum so far. None stands for the only step input.

        `accum` is a tensor without a value, `ol.framework.tensor()`: after the loop it is the state after the last step.
        Raises ArgumentError where it has a value, ProgramError where None could be several things, ShapeError for a type of which no
        zeros can be made before the first step.
        """
        body = self._require_open("add_to")
        accum = require_type(accum, "rnn.add_to: accum", self._around)
        if value is None:
            if len(self._sequences) != 1:
                raise ProgramError(
                    f"rnn.add_to: None stands for the step input, of which there are {len(self._sequences)}", location=here()
                )
            (value,) = self._sequences.values()
        (value,) = require_returned([require_type(value, "rnn.add_to: value")], body, "rnn.add_to")
        if accum.shape is not None or accum.op is not None or accum in self._accumulators or accum.block is not self._around:
            raise ArgumentError(
                f'rnn.add_to: "{accum.name}" cannot become the sum over the steps',
                location=here(),
                contract="it is a tensor without a value, of the block in which the loop is written, and added to once",
                given=[accum.describe()],
                hint="accum = ol.framework.tensor(); a state that starts as a value is rnn.memory(init=value)",
            )
        if not _is_fixed(value) and self._sequence_like(value) is None:
            raise ShapeError(
                f"rnn.add_to: the state would start as zeros of {value.type_text}, which cannot be made before the first step",
                location=here(),
                contract="zeros have sizes that are numbers, or the type of a step input",
                given=[value.describe()],
                hint="state = rnn.memory(init=zeros)",
            )
        previous = body.new_var(body.program.unique("memory"), value.dtype, value.shape)
        self.memories.append(Memory(accum, previous, add_values(previous, value)))
        self._accumulators[accum] = self.memories[-1]
        return self.memories[-1].updated  # type: ignore[return-value]

    def _sequence_like(self, value: Var) -> Var | None:
        """A sequence whose step has the type of `value`."""
        steps = self._sequences.items()
        return next((sequence for sequence, step in steps if (step.dtype, step.shape) == (value.dtype, value.shape)), None)

    def output(self, *values: Var) -> None:
        """Output `values`; their steps are stacked, T[*d] -> T[t *d]. In a ragged loop, T[n *d] -> T[t *d], ragged too.

        Raises ShapeError for a value whose size differs from step to step.
        """
        body = self._require_open("output")
        vars = require_returned([require_type(value, "rnn.output: value") for value in values], body, "rnn.output")
        require_even(vars, body, "rnn.output")
        self._outputs += vars

    def __call__(self) -> Var | tuple[Var, ...]:
        """Close the loop and return its outputs: one, or a tuple. `final_memory` gives the states after the last step.

        Raises ProgramError where a memory is never updated or there is nothing to step through, ShapeError where the types
        of a step do not fit; the step is taken back then.
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
                    "rnn: a memory is never updated", location=memory.previous.location, hint="rnn.update_memory(memory, value) in the step"
                )
        if not self._sequences:
            raise nothing_to_step_through()

    def _close(self, body: Block) -> list[Var]:
        """Append the op; return what it stacks."""
        name = body.name.partition(".")[0]
        body.inputs = [*self._sequences.values(), *(memory.previous for memory in self.memories)]
        body.outputs = [*self._outputs, *(memory.updated for memory in self.memories if memory.updated is not None)]
        constants = [] if self._splits is None else self._cut_to_rows(body, name)
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

    def _cut_to_rows(self, body: Block, name: str) -> list[Var]:
        """Make a step one on the rows that still have a step; return what it captures by rows, which becomes memories that never change."""
        rows = self._rows()
        self._wholes.require_known(rows)
        require_uncut(body, rows)
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
            contract=f"a step sees, of what has a row for each of the {rows} sequences in front, the rows that still have a step",
            hint="bring what is needed into that form before the loop",
        )
        return constants

    def _zeros(self, memory: Memory) -> Var:
        """Zeros of the type of a memory, made before the loop."""
        previous = memory.previous
        like = self._sequence_like(previous)
        if _is_fixed(previous) or like is None:
            with self._around:
                return full(shape=previous.shape, value=0.0, dtype=previous.dtype)
        if all(isinstance(size, int) for size in previous.shape[1:]):  # type: ignore[index]
            return self._full_batch_size_like(like, previous.shape[1:], previous.dtype)  # type: ignore[index, arg-type]
        with self._around:  # only a sum over the steps has all the sizes
            total = reduce_sum(like, axis=0) if self._splits is None else sequence_sum(like, self._splits)
            return full_like(total, value=0.0, dtype=previous.dtype)

    def final_memory(self, memory: Memory) -> Var:
        """The state after the last step, of each row its own; what it started as where there was none."""
        if not self._called:
            raise ProgramError("rnn.final_memory: call rnn() first", location=here())
        self._require_own(memory, "final_memory")
        return self.finals[self.memories.index(memory)]


def _is_fixed(var: Var) -> bool:
    return var.shape is not None and all(isinstance(size, int) for size in var.shape)


def innermost_recurrence(var: Var | None, what: str) -> Recurrence:
    """The recurrence whose step is being written, in the program of `var`. Raises ProgramError where there is none."""
    for recurrence in reversed(_writing.get()):
        if var is None or recurrence._around.program is var.block.program:
            return recurrence
    raise ProgramError(f"{what}: no step is being written", location=here(), hint="call it inside `with rnn.step():`")


def rnn(*, reverse: bool = False) -> Recurrence:
    """A recurrent network whose step is about to be written; with `reverse`, it starts at each sequence's last step."""
    return Recurrence(reverse=reverse)
