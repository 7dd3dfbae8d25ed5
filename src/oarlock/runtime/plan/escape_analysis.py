"""Which variables a run of a plan lends: others may hold the memory of their values when it has ended."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from oarlock.ir.operation import Op
from oarlock.ir.var import Var
from oarlock.ir.walk import walk_ops
from oarlock.registry.catalogue import Catalogue
from oarlock.runtime.plan.alias_sets import AliasSets
from oarlock.runtime.plan.liveness import Liveness

__all__ = ["Lent", "find_lent", "given_to_others", "kept_from"]


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
    others: Collection[Var],
    alias_sets: AliasSets,
) -> Lent:
    """Those of `inputs` that are lent. Some inputs are written over: by the output of the number that is `following`.

    The first outputs are `fetches`, the rest are the new values of variables. An input is lent where its memory may be shared with
    something that is fetched, that another variable holds, or that `others` were given.
    """
    by_ops, by_fetches = set[int](), set[int]()
    holders = Counter(alias_set for var in outputs[fetches:] for alias_set in alias_sets.wholes(var))
    for number, var in enumerate(inputs):
        if var.persistable:
            own = following.get(var)
            value, alone = (var, 0) if own is None else (outputs[own], 1)
            if any(holders[alias_set] > alone for alias_set in alias_sets.wholes(value)) or alias_sets.may_share([value], others):
                by_ops.add(number)
            if alias_sets.may_share([value], outputs[:fetches]):
                by_fetches.add(number)
    return Lent(frozenset(by_ops), frozenset(by_fetches))


def given_to_others(ops: Sequence[Op], catalogue: Catalogue) -> set[Var]:
    """The inputs and outputs of kernels that are not ours: they may hold on to both."""
    foreign = (op for op in ops if not all(catalogue.get(inner.type).is_trusted for inner in walk_ops([op])))
    return {var for op in foreign for var in (*op.reads, *op.writes)}


def kept_from(others: Collection[Var], vars: Collection[Var], ops: Sequence[Op], outputs: Sequence[Var], catalogue: Catalogue) -> set[Var]:
    """Those of `vars` in whose memory nothing lies that `others` may hold on to."""
    if not others:
        return set(vars)
    alias_sets = AliasSets(Liveness(ops, outputs, catalogue), catalogue)
    for op in ops:
        alias_sets.define(op)
    return {var for var in vars if not alias_sets.may_share([var], others)}
