"""Precomputation: the ops of a plan that depend on nothing but persistable variables that it does not write."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from oarlock.backend.torch.variants import variants_of
from oarlock.ir.operation import Op
from oarlock.ir.traversal import needed_ops, walk_ops
from oarlock.ir.var import Var
from oarlock.passes.rewriter import is_pure
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.value_checks import checks_values
from oarlock.runtime.plan.alias_sets import AliasSets
from oarlock.runtime.plan.constants import find_constants
from oarlock.runtime.plan.liveness import Liveness
from oarlock.runtime.plan.numbers import Numbers

__all__ = ["Precomputation", "find_precomputation"]


class Precomputation(NamedTuple):
    """The ops that are precomputed, and the ops that are left for runs.

    Runs are given the values `kept` of `ops`, and the inputs that are `packed`, by op and slot. `read` are the inputs that all of these are
    computed from.
    """

    left: Sequence[Op]
    ops: list[Op]
    kept: list[Var]
    packed: list[tuple[Op, str]]
    read: list[Var]


def find_precomputation(
    ops: Sequence[Op], inputs: Sequence[Var], outputs: Sequence[Var], written: Collection[str], catalogue: Catalogue, numbers: Numbers
) -> Precomputation:
    """Find those of `ops` that can be precomputed.

    They are ops of ours in the outermost block that are pure, cannot fail by values and have sizes that are numbers. All that they read is
    persistable and not `written`, constant, or precomputed itself. A value that a run may return is computed anew each time, and so is
    every value made of variables that it may return, for others may write over both. An op that may return a view is not precomputed for
    a run, but for another op. No op gives more than it reads, and the kept and packed values take no more memory than the variables that
    they are made of: the last ops are left to the runs until that holds. So an inference takes at most twice the memory of its parameters.
    Integers that are dequantized count as the floats that they stand for: to make these anew in each run would take longer than the rest.
    """
    floats = {op.inputs["q"][0]: op.writes[0].dtype.itemsize for op in ops if op.type == "dequantize"}
    alias_sets = AliasSets(Liveness(ops, outputs, catalogue), catalogue)
    for op in ops:
        alias_sets.define(op)
    sources = [var for var in inputs if var.persistable and var.name not in written and _is_static(var)]
    sources = [var for var in sources if not alias_sets.may_share([var], outputs) and not alias_sets.is_lent(var)]
    constants = find_constants(ops, catalogue)
    known = {*sources, *constants}
    made: list[Op] = []
    for op in ops:
        operator = catalogue.get(op.type)
        if (
            not known.isdisjoint(op.reads)
            and known.issuperset(op.reads)
            and is_pure(operator, op)
            and operator.is_trusted
            and not checks_values(operator, op)
            and not any(isinstance(value, Var) for value in op.attributes.values())
            and not any(numbers.has(var) or numbers.vanishes(var) for var in (*op.reads, *op.writes))
            and all(map(_is_static, op.writes))
            and not any(map(alias_sets.stays, op.writes))
            and _bytes(op.writes) <= _bytes(set(op.reads), floats)
        ):
            made.append(op)
            known.update(op.writes)
    constant_ops = [op for op in ops if not constants.isdisjoint(op.writes)]
    while True:
        found = _precomputation(ops, made, constant_ops, sources, outputs, catalogue)
        taken = _bytes(found.kept) + _bytes({op.inputs[slot][0] for op, slot in found.packed})
        if not made or taken <= _bytes(found.read, floats):
            return found
        made.pop()


def _precomputation(
    ops: Sequence[Op], made: Sequence[Op], constant_ops: Sequence[Op], sources: Sequence[Var], outputs: Sequence[Var], catalogue: Catalogue
) -> Precomputation:
    """The same, where the ops `made` are precomputed."""
    gone = {op for op in made if not catalogue.get(op.type).aliases}
    left = needed_ops([op for op in ops if op not in gone], outputs)
    own = {var for op in gone for var in op.writes}
    kept = list(dict.fromkeys(var for op in left for var in op.reads if var in own))
    packable = {*sources, *kept}
    packed = [
        (op, slot)
        for op in walk_ops(left)
        for slot in variants_of(catalogue.get(op.type)).prepacked
        if packable.issuperset(op.inputs[slot]) and not any(isinstance(value, Var) for value in op.attributes.values())
    ]
    needed = needed_ops([*constant_ops, *made], kept)
    read = {var for op in needed for var in op.reads} | {op.inputs[slot][0] for op, slot in packed}
    return Precomputation(left, needed, kept, packed, [var for var in sources if var in read])


def _is_static(var: Var) -> bool:
    return var.shape is not None and all(isinstance(size, int) for size in var.shape)


def _bytes(vars: Iterable[Var], floats: Mapping[Var, int] = MappingProxyType({})) -> int:
    """The bytes of some variables; of those in `floats` with other sizes of an element."""
    return sum(math.prod(var.shape or ()) * floats.get(var, var.dtype.itemsize) for var in vars)  # type: ignore[arg-type]
