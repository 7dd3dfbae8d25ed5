"""The states of a program after passes, one after another: each state is made once, however many sequences lead there."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import oarlock as ol
from generated.running import DisagreementError
from oarlock.passes.pipeline import apply, begin, in_turn
from oarlock.registry.catalogue import standard

__all__ = ["Rewritings", "State"]


class State:
    """A program after some passes, as bytes. `program` is for passes to change; whoever does not may read it."""

    def __init__(self, program: ol.Program):
        self.data = program.to_bytes(source=False)
        self.following: dict[str, State] = {}
        self.counts: dict[str, int] = {}
        self._program: ol.Program | None = program

    @property
    def program(self) -> ol.Program:
        if self._program is None:
            self._program = ol.Program.from_bytes(self.data)  # which verifies it
        return self._program

    def after(self, name: str) -> ol.Program | None:
        """The program after one more pass, taken from this state; None where the pass had nothing to do."""
        program = self.program
        self.counts[name] = apply(name, program, standard)
        if not self.counts[name]:
            return None
        self._program = None
        return program

    def is_whole(self) -> bool:
        """Whether passes that said that they had nothing to do did nothing."""
        return self._program is None or self._program.to_bytes(source=False) == self.data


class Rewritings:
    """The states that sequences of passes lead to from a program of which some variables, by `names`, are fetched.

    The same state is the same plan but for the names in it, so what was run of one sequence need not be run of another.
    """

    def __init__(self, program: ol.Program, names: Sequence[str]):
        copy = program.clone()
        begin(copy, [copy.main.vars[name] for name in names])
        self.start = State(copy)
        self._states = {self.start.data: self.start}

    def after(self, passes: Collection[str]) -> tuple[State, Counter[str]]:
        """The result of `optimize` on the program by these passes, and how often each applied."""
        state, applied = self.start, Counter(dict.fromkeys(passes, 0))
        for name in in_turn(passes):
            following = self._following(state, name)
            applied[name] += state.counts[name]
            state = following
        return state, applied

    def _following(self, state: State, name: str) -> State:
        if name not in state.following:
            program = state.after(name)
            found = state if program is None else State(program)
            state.following[name] = self._states.setdefault(found.data, found)
        return state.following[name]

    def check(self) -> None:
        """Raise DisagreementError where a pass changed a program and said that it did not."""
        for state in self._states.values():
            if not state.is_whole():
                idle = ", ".join(name for name, count in state.counts.items() if not count)
                raise DisagreementError("passes", f"one of {idle} changes what it says that it does not")

    def __iter__(self) -> Iterator[State]:
        return iter(self._states.values())
