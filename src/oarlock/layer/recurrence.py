"""Recurrent networks: write one step, run it over a sequence.

rnn = ol.rnn()
with rnn.step():
    word = rnn.step_input(words)            # words: float[t n d]; word: float[n d]
    state = rnn.memory(init=start)          # names the state; its value before the step is read explicitly
    before = rnn.previous_memory(state)
    after = ol.layer.fc(ol.layer.concat([word, before], axis=1), 64, act="tanh")
    rnn.update_memory(state, after)
    rnn.output(after)
states = rnn()                              # float[t n 64]
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from oarlock.errors import ProgramError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.current import current_block
from oarlock.ir.location import here
from oarlock.ir.variable import Var
from oarlock.ir.walk import free_vars
from oarlock.op.control.recurrence import recurrent
from oarlock.registry.creator import require_type

__all__ = ["Memory", "Recurrence", "rnn"]


@dataclass(eq=False)
class Memory:
    """The state of a recurrence: what it starts as, its value before a step, and after."""

    initial: Var
    previous: Var
    updated: Var | None = None


class Recurrence:
    """A loop over the steps of sequences. `step()` opens its block, calling it closes the loop."""

    def __init__(self, *, reverse: bool = False):
        self.reverse = reverse
        self.memories: list[Memory] = []
        self.finals: list[Var] = []
        self._sequences: dict[Var, Var] = {}
        self._outputs: list[Var] = []
        self._body: Block | None = None
        self._open = False
        self._called = False

    def step(self) -> AbstractContextManager[None]:
        """The block of one step. Raises ProgramError when opened a second time; an exception inside discards it."""
        if self._body is not None:
            raise ProgramError("rnn: it has a step block already", location=here())
        return self._write_step()

    @contextmanager
    def _write_step(self) -> Iterator[None]:
        around = current_block()
        program = around.program
        body = program.new_block(f"{program.unique('rnn')}.body", around)
        self._body = body
        self._open = True
        try:
            with body:
                yield
        except BaseException:
            program.discard_block(body)
            self._body = None
            for written in (self.memories, self._sequences, self._outputs):
                written.clear()
            raise
        finally:
            self._open = False

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
        """Return this step of a sequence: T[t *d] -> T[*d]."""
        body = self._require_open("step_input")
        self._require_outside(require_type(sequence, "rnn.step_input: sequence"), "step_input")
        if not sequence.shape:
            raise ShapeError(
                f"rnn.step_input: {sequence.name} has no dimension to step through", location=here(), given=[sequence.describe()]
            )
        if sequence not in self._sequences:
            name = body.program.unique(f"{sequence.name.partition('@')[0]}.step")
            self._sequences[sequence] = body.new_var(name, sequence.dtype, sequence.shape[1:])
        return self._sequences[sequence]

    def memory(self, init: Var) -> Memory:
        """A state that starts as `init`. Read it by `previous_memory`, set it by `update_memory`."""
        body = self._require_open("memory")
        self._require_outside(require_type(init, "rnn.memory: init"), "memory")
        previous = body.new_var(body.program.unique("memory"), init.dtype, init.shape)
        self.memories.append(Memory(init, previous))
        return self.memories[-1]

    def previous_memory(self, memory: Memory) -> Var:
        """The state before this step."""
        self._require_open("previous_memory")
        self._require_own(memory, "previous_memory")
        return memory.previous

    def update_memory(self, memory: Memory, value: Var) -> None:
        """Make `value` the state after this step. Raises ProgramError the second time, ShapeError for another type."""
        self._require_open("update_memory")
        self._require_own(memory, "update_memory")
        require_type(value, "rnn.update_memory: value")
        if memory.updated is not None:
            raise ProgramError("rnn.update_memory: this memory is updated already", location=here(), given=[memory.updated.describe()])
        if (value.dtype, value.shape) != (memory.initial.dtype, memory.initial.shape):
            raise ShapeError(
                f"rnn.update_memory: the state starts as {memory.initial.type_text} but becomes {value.type_text}",
                location=here(),
                given=[memory.initial.describe(), value.describe()],
            )
        memory.updated = value

    def output(self, *values: Var) -> None:
        """Hand out `values`; their steps are stacked, T[*d] -> T[t *d]."""
        self._require_open("output")
        self._outputs += [require_type(value, "rnn.output: value") for value in values]

    def __call__(self) -> Var | tuple[Var, ...]:
        """Close the loop and return its outputs: one, or a tuple. `final_memory` gives the states after the last step."""
        body = self._body
        if body is None or self._open or self._called:
            raise ProgramError("rnn(): close it once, after its step block", location=here())
        for memory in self.memories:
            if memory.updated is None:
                raise ProgramError(
                    "rnn: a memory is never updated", location=memory.previous.location, hint="rnn.update_memory(memory, value) in the step"
                )
        if not self._sequences:
            raise ProgramError("rnn: nothing to step through", location=here(), hint="rnn.step_input(sequence) in the step")
        self._called = True
        body.inputs = [*self._sequences.values(), *(memory.previous for memory in self.memories)]
        body.outputs = [*self._outputs, *(memory.updated for memory in self.memories if memory.updated is not None)]
        stacked, self.finals, _ = recurrent(
            list(self._sequences),
            [memory.initial for memory in self.memories],
            free_vars(body),
            body=body,
            reverse=self.reverse,
            name=body.name.partition(".")[0],
        )
        return stacked[0] if len(stacked) == 1 else tuple(stacked)

    def final_memory(self, memory: Memory) -> Var:
        """The state after the last step; what it started as where there was none."""
        if not self._called:
            raise ProgramError("rnn.final_memory: call rnn() first", location=here())
        self._require_own(memory, "final_memory")
        return self.finals[self.memories.index(memory)]


def rnn(*, reverse: bool = False) -> Recurrence:
    """A recurrent network whose step is about to be written; with `reverse`, it starts at the last step."""
    return Recurrence(reverse=reverse)
