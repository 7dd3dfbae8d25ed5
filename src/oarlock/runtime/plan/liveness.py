"""When each value that a straight line of ops computes is read for the last time."""

from collections.abc import Iterable, Sequence

from oarlock.ir.operation import Op
from oarlock.ir.var import Var
from oarlock.registry.catalogue import Catalogue

__all__ = ["NEVER", "Liveness"]

NEVER = 1 << 62


class Liveness:
    """The ends of values: after which op each may go. Those in `kept` stay; a shape that is read later does not keep its value."""

    def __init__(self, ops: Sequence[Op], kept: Iterable[Var], catalogue: Catalogue):
        self._end: dict[Var, int] = {}
        self._shape_end: dict[Var, int] = {}
        computed: set[Var] = set()
        for number, op in enumerate(ops):
            computed.update(op.writes)
            self._end.update(dict.fromkeys(op.writes, number))  # at first: a value that nobody reads ends where it begins
            signature = catalogue.get(op.type).signature
            shape_only = {slot.name for slot in signature.inputs if slot.shape_only}
            for slot, vars in op.inputs.items():
                (self._shape_end if slot in shape_only else self._end).update((var, number) for var in vars)
            self._end.update((value, number) for value in op.attributes.values() if isinstance(value, Var))
        self._end.update((var, NEVER) for var in kept)
        self._ending: dict[int, list[Var]] = {}
        for var, number in self._end.items():
            if var in computed and number != NEVER:
                self._ending.setdefault(number, []).append(var)

    def ending(self, number: int) -> list[Var]:
        """The values computed here that nobody reads after op `number`, but did until then."""
        return self._ending.get(number, [])

    def end(self, var: Var) -> int:
        """The number of the op that reads `var` last; -1 where none does, `NEVER` where it stays."""
        return self._end.get(var, -1)

    def has_ended(self, var: Var, number: int) -> bool:
        """Whether nobody reads the value of `var` after op `number`."""
        return self._end.get(var, -1) <= number

    def needs_shape_after(self, var: Var, number: int) -> bool:
        """Whether the shape of `var` is read after op `number`."""
        return self._shape_end.get(var, -1) > number
