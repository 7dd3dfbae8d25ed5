"""Which variables a run of a plan lends: others may hold the memory of their values when it has ended."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from oarlock.ir.var import Var
from oarlock.runtime.plan.alias_sets import AliasSets

__all__ = ["Lent", "find_lent"]


class Lent(NamedTuple):
    """The numbers of the inputs that are lent: `by_ops` in any case, `by_fetches` where what is fetched is returned as it is."""

    by_ops: frozenset[int]
    by_fetches: frozenset[int]

    def numbers(self, *, returns: bool) -> frozenset[int]:
        return self.by_ops | self.by_fetches if returns else self.by_ops


def find_lent(
    inputs: Sequence[Var],
    following: Mapping[Var, int],
    outputs: Sequence[Var],
    fetches: int,
    alias_sets: AliasSets,
) -> Lent:
    """Those of `inputs` that are lent. Some inputs are written over: by the output of the number that is `following`.

    The first outputs are `fetches`, the rest are the new values of variables. An input is lent where its memory may be shared with
    something that is fetched, that another variable holds, or that a kernel may hold.
    """
    by_ops, by_fetches = set[int](), set[int]()
    holders = Counter(alias_set for var in outputs[fetches:] for alias_set in alias_sets.wholes(var))
    for number, var in enumerate(inputs):
        if var.persistable:
            own = following.get(var)
            value, alone = (var, 0) if own is None else (outputs[own], 1)
            if any(holders[alias_set] > alone for alias_set in alias_sets.wholes(value)) or alias_sets.is_lent(value):
                by_ops.add(number)
            if alias_sets.may_share([value], outputs[:fetches]):
                by_fetches.add(number)
    return Lent(frozenset(by_ops), frozenset(by_fetches))
