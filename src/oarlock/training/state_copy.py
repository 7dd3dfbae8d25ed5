"""A copy of the state that the steps of a program write, and restoring it."""

import torch

from oarlock.backend.torch.private import foreach_copy_
from oarlock.ir.names import COUNTER, DRAWS
from oarlock.ir.program import Program
from oarlock.runtime.scope import Scope, lock_of_writing

__all__ = ["StateCopy"]


class StateCopy:
    """The values of the variables that the steps of a program write, as of the last `take`.

    The values are read in place, so that steps can continue to overwrite them. Variables that no step writes are not copied.
    """

    def __init__(self, program: Program, scope: Scope):
        self._scope = scope
        self._names = list(dict.fromkeys([*(op.writes[0].name for op in program.main.tail), COUNTER, DRAWS]))
        self._held: dict[str, object] = {}

    def take(self) -> None:
        """Copy the current values, reusing the memory of the previous copy."""
        copies, values = [], []
        with lock_of_writing(self._scope):
            for name in self._names:
                found, before = self._scope.find_var(name), self._held.get(name)
                held = found.held if found is not None and found.is_set else None
                if not isinstance(held, torch.Tensor):
                    self._held[name] = held
                elif isinstance(before, torch.Tensor) and _can_overwrite(before, held):
                    copies.append(before)
                    values.append(held)
                else:
                    self._held[name] = held.detach().clone()
            if copies:
                with torch.no_grad():
                    foreach_copy_(copies, values)

    def restore(self) -> None:
        """Restore the copied values in the scope."""
        for name, held in self._held.items():
            found = self._scope.find_var(name)
            if found is None:
                continue
            if held is None:
                found.reset()
            else:
                found.give(held.clone() if isinstance(held, torch.Tensor) else held, own=isinstance(held, torch.Tensor))

    def take_from(self, scope: Scope) -> None:
        """Take the values of another scope, such as that of a checkpoint."""
        self._held = {name: scope[name] for name in self._names if scope.find_var(name) is not None}


def _can_overwrite(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left.shape == right.shape and left.dtype is right.dtype and left.device == right.device
