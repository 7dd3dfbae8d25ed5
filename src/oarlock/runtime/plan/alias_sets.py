"""Which values of a straight line of ops share memory, and whose memory may be written over."""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from oarlock.ir.operation import Op
from oarlock.ir.traversal import walk_ops
from oarlock.ir.var import Var
from oarlock.op.control.layout import Layout
from oarlock.registry.catalogue import Catalogue
from oarlock.runtime.plan.liveness import NEVER, Liveness

__all__ = ["AliasSets", "are_trusted"]

_Sets = frozenset[object]


def are_trusted(ops: Iterable[Op], catalogue: Catalogue) -> bool:
    """Whether no kernel of `ops`, and of what stands in their blocks, may hold what it reads or makes."""
    return all(catalogue.get(op.type).is_trusted for op in walk_ops(ops))


class _Part(NamedTuple):
    """A part of an alias set, which shares no element with the parts of other numbers."""

    whole: object
    number: int


class AliasSets:
    """The alias sets that the values of a line of ops lie in, as far as operators declare it.

    A kernel's result has memory of its own, unless its operator says that it may be a view of an input. What comes from
    elsewhere - fed, captured, a parameter - is not ours to write over, but for the values in `given`; nor are `constants`, which
    may be held from one run to the next. Of a value that an op cuts into disjoint outputs, each is a part. An alias set is cut once: what
    others cut of it counts as the whole, what they cut of a part as that part.

    A kernel that is not trusted may hold what it is given and what it gives: nobody ever writes over the alias sets in which that lies.
    """

    def __init__(self, liveness: Liveness, catalogue: Catalogue, given: Collection[Var] = (), constants: AbstractSet[Var] = frozenset()):
        self._liveness = liveness
        self._catalogue = catalogue
        self._constants = constants
        self._sets: dict[Var, _Sets] = {var: frozenset([var]) for var in given}
        self._given = frozenset(given)
        self._owned: set[object] = set(given)
        self._ends: dict[object, int] = {var: liveness.end(var) for var in given}  # of all that lies in an alias set, the latest
        self._ends_of_parts: dict[object, int] = {}  # of all that lies in parts of an alias set that is cut
        self._lent: set[object] = set()  # alias sets that kernels may hold

    def define(self, op: Op) -> None:
        """Note where the results of `op` lie."""
        if op.blocks:
            self._define_returned(op)
            return
        operator = self._catalogue.get(op.type)
        viewed = [var for slot in operator.aliases for var in op.inputs.get(slot, ())]
        sets = self._sets_of(viewed)
        cuts = operator.disjoint and not any(isinstance(alias_set, _Part) or alias_set in self._ends_of_parts for alias_set in sets)
        if cuts:
            self._ends_of_parts.update(dict.fromkeys(sets, -1))
        for number, var in enumerate(op.writes):
            parts = frozenset(_Part(alias_set, number) for alias_set in sets) if cuts else sets
            self._place(var, parts if viewed else self._new(var))
        self.lend(op)

    def lend(self, op: Op) -> None:
        """Note that the kernel of `op` may hold what it reads and writes, unless it is trusted."""
        operator = self._catalogue.get(op.type)
        if not operator.is_trusted:
            read = [var for slot in operator.signature.inputs if not slot.shape_only for var in op.inputs.get(slot.name, ())]
            self._lent |= self._wholes_of([*read, *op.writes])

    def is_lent(self, var: Var) -> bool:
        """Whether a kernel that is not trusted may hold memory in which `var` lies."""
        return not self._lent.isdisjoint(self._wholes_of([var]))

    def reuse(self, result: Var, source: Var) -> None:
        """Note that `result` is computed in the memory of `source`."""
        self._place(result, self._sets_of([source]))

    def is_free(self, var: Var, number: int, reader: Op, *, ours: bool = False) -> bool:
        """Whether op `number`, the `reader`, may write over `var`: nobody reads its memory afterwards, nor as another input.

        With `ours`, the memory of `var` itself counts as ours, though it came from elsewhere.
        """
        sets = self._sets_of([var])
        return self.has_ended(var, number, ours=ours) and sum(_overlap(self._sets_of([other]), sets) for other in reader.reads) == 1

    def has_ended(self, var: Var, number: int, *, ours: bool = False) -> bool:
        """Whether the memory of `var` is ours, and nobody reads it after op `number`."""
        return self._liveness.has_ended(var, number) and all(
            (_whole(alias_set) in self._owned or (ours and alias_set is var)) and self._end(alias_set) <= number
            for alias_set in self._sets_of([var])
        )

    def _define_returned(self, op: Op) -> None:
        """Define the outputs of a block: one may have been there before; a stack is new, but may hold memories."""
        layout = Layout.of(op)
        inside = AliasSets(Liveness(layout.body.ops, (), self._catalogue), self._catalogue)
        for inner in layout.body.ops:
            inside.define(inner)
        carried = inside._wholes_of(var for each in layout.carried for var in (each.inside, each.following))
        given = {inner: self._sets_of([outer]) for inner, outer in layout.steps}
        given |= {each.inside: self._sets_of([each.initial]) for each in layout.carried}

        def new(var: Var) -> _Sets:
            """The memory that an iteration allocates for `var`: the memories of a loop count as one alias set."""
            of_body = (alias_set for alias_set in inside._wholes_of([var]) if alias_set in carried or alias_set in inside._owned)
            return frozenset(op if alias_set in carried else alias_set for alias_set in of_body)

        def old(var: Var) -> _Sets:
            """The earlier memory that `var` may lie in."""
            seen = (alias_set for alias_set in inside._wholes_of([var]) if alias_set not in inside._owned)
            return frozenset().union(*(given.get(alias_set) or self._sets_of([alias_set]) for alias_set in seen))  # type: ignore[list-item, arg-type]

        held = -1
        while held != (held := sum(map(len, given.values()))):  # what one memory began as goes on as others, trip by trip
            for each in layout.carried:
                given[each.inside] |= old(each.following)
        for each in layout.carried:
            self._return(each.final, new(each.following) | {op}, given[each.inside])
        for inner, outer in layout.summed:
            self._return(outer, new(inner), old(inner))
        for inner, outer in layout.stacked:
            if "when" in op.inputs:
                self._place(outer, self._new(outer))  # a copy
            elif op.type == "conditional_block" or "splits" in op.inputs:
                self._return(outer, new(inner), old(inner))  # the value itself
            else:
                self._return(outer, new(inner) or self._new(outer))
        self._lend_returned(layout, inside, given)

    def _lend_returned(self, layout: Layout, inside: "AliasSets", given: Mapping[Var, _Sets]) -> None:
        """Note what kernels in a block may hold: of what it is given, and what it returns."""
        count = -1
        while count != (count := len(inside._lent)):  # a memory is what the trip before has made of it, or of another
            for each in layout.carried:
                if inside.is_lent(each.inside) or inside.is_lent(each.following):
                    inside._lent |= inside._wholes_of([each.inside, each.following])
        for alias_set in inside._lent - inside._owned:
            self._lent.update(map(_whole, given.get(alias_set) or self._sets_of([alias_set])))  # type: ignore[arg-type, list-item]
        returned = [*layout.stacked, *layout.summed, *((each.following, each.final) for each in layout.carried)]
        self._lent |= self._wholes_of(outer for inner, outer in returned if inside.is_lent(inner))

    def _return(self, var: Var, inside: _Sets, around: _Sets = frozenset()) -> None:
        self._owned |= inside
        self._place(var, inside | around)

    def end(self, var: Var) -> int:
        """The number of the op that reads last what may lie in the memory of `var`; -1 where none does, `NEVER` where something stays."""
        return max([self._liveness.end(var), *map(self._end, self._wholes_of([var]))])

    def stays(self, var: Var) -> bool:
        """Whether something that lies in the memory of `var` is kept."""
        return any(self._end(alias_set) == NEVER for alias_set in self._sets_of([var]))

    def is_new_or_over(self, var: Var, over: Var) -> bool:
        """Whether `var` lies in memory that was taken here, or in that of `over`, which is one of `given`; nowhere else."""
        return all(alias_set is over or (alias_set in self._owned and alias_set not in self._given) for alias_set in self._wholes_of([var]))

    def wholes(self, var: Var) -> frozenset[object]:
        """The alias sets in which `var` may lie, or a part of which."""
        return self._wholes_of([var])

    def may_share(self, vars: Iterable[Var], others: Iterable[Var]) -> bool:
        """Whether something of `vars` may lie in the memory of something of `others`."""
        return _overlap(self._sets_of(vars), self._sets_of(others))

    def _new(self, var: Var) -> _Sets:
        if var not in self._constants:
            self._owned.add(var)
        return frozenset([var])

    def _place(self, var: Var, sets: _Sets) -> None:
        self._sets[var] = sets
        for alias_set in sets:
            self._ends[alias_set] = max(self._ends.get(alias_set, -1), self._liveness.end(var))
            if isinstance(alias_set, _Part):
                self._ends_of_parts[alias_set.whole] = max(self._ends_of_parts[alias_set.whole], self._liveness.end(var))

    def _end(self, alias_set: object) -> int:
        """When what may lie in `alias_set` is read last: in it, in its parts, or in the whole that it is a part of. What is lent stays."""
        if _whole(alias_set) in self._lent:
            return NEVER
        return max(self._ends.get(alias_set, -1), self._ends_of_parts.get(alias_set, -1), self._ends.get(_whole(alias_set), -1))

    def _sets_of(self, vars: Iterable[Var]) -> _Sets:
        return frozenset(alias_set for var in vars for alias_set in self._sets.get(var, (var,)))

    def _wholes_of(self, vars: Iterable[Var]) -> _Sets:
        return frozenset(map(_whole, self._sets_of(vars)))


def _whole(alias_set: object) -> object:
    return alias_set.whole if isinstance(alias_set, _Part) else alias_set


def _overlap(some: _Sets, others: _Sets) -> bool:
    """Whether what lies in these sets may share an element."""
    wholes, other_wholes = (frozenset(each.whole for each in sets if isinstance(each, _Part)) for sets in (some, others))
    return not (some.isdisjoint(others) and some.isdisjoint(other_wholes) and others.isdisjoint(wholes))
