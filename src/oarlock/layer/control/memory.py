"""Memories of a recurrence: values carried from step to step."""

from dataclasses import dataclass
from typing import ClassVar

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.var import Var

__all__ = ["Memory"]


@dataclass(eq=False)
class Memory:
    """The state of a recurrence: its initial value, and its values before and after a step. It is not a variable."""

    initial: Var
    previous: Var
    updated: Var | None = None
    read_hint: ClassVar[str] = (
        "use rnn.previous_memory(memory) for its value before the step, rnn.final_memory(memory) for the value after the last"
    )

    def _refuse(self, *_: object) -> Var:
        raise ArgumentError(
            "a memory is not a variable: it has a value before and a value after each step", location=here(), hint=self.read_hint
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = __neg__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __and__ = __rand__ = __or__ = __ror__ = __invert__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __eq__(self, other: object) -> bool:
        return self._refuse() if isinstance(other, Var | int | float) else self is other  # type: ignore[return-value]

    __hash__ = object.__hash__
