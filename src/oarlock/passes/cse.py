"""Common subexpression elimination: ops that compute the same of the same values are computed once."""

from collections.abc import Mapping

from oarlock.ir.attribute import format_attribute
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.op.control.layout import Layout
from oarlock.passes.rewriter import is_pure, rewrite
from oarlock.registry.catalogue import Catalogue

__all__ = ["cse"]


def cse(program: Program, catalogue: Catalogue) -> int:
    """Share common subexpressions of `program`; return how many ops are not computed any more.

    Before                             After
        db = linear_dbias(dz)              db = linear_dbias(dz)
        dbeta = linear_dbias(dz)           b@NEXT = sgd(b, db, rate)
        b@NEXT = sgd(b, db, rate)          beta@NEXT = sgd(beta, db, rate)
        beta@NEXT = sgd(beta, dbeta, rate)

    Legal for ops of one type, with the same inputs, equal attributes and results of one declared type, of which the first stands before the
    other in the same block or in one around it: it has run then, and has refused its values if they are to be refused. Values keep their
    bits. What a block returns twice is returned once. Costs the memory of a value until its last reader has read it. Does not apply to
    random ops, to ops with blocks and to those that ask the run. One look-up per op.
    """
    return rewrite(program, _Sharing(catalogue))


class _Sharing:
    def __init__(self, catalogue: Catalogue):
        self.catalogue = catalogue
        self.first: dict[object, Op] = {}

    def __call__(self, op: Op, before: list[Op]) -> Mapping[Var, Var]:
        if op.blocks:
            return _returned_twice(op)
        if op.is_commit or not is_pure(self.catalogue.get(op.type), op):
            return {}
        key = _structure(op)
        first = self.first.get(key)
        if first is not None and first.block in op.block.enclosing():  # else it stands in a block that has ended
            return dict(zip(op.writes, first.writes, strict=True))
        self.first[key] = op
        return {}


def _returned_twice(owner: Op) -> dict[Var, Var]:
    """Of the stacks, and of the sums, of one value of a block, the first in place of the others."""
    layout = Layout.of(owner)
    replaced: dict[Var, Var] = {}
    for pairs in (layout.stacked, layout.summed):
        first: dict[Var, Var] = {}
        replaced |= {outer: first[inner] for inner, outer in pairs if first.setdefault(inner, outer) is not outer}
    return replaced


def _structure(op: Op) -> object:
    """The key that two ops share exactly where they compute the same."""
    inputs = frozenset(op.inputs.items())
    attributes = frozenset((name, _exactly(value)) for name, value in op.attributes.items())
    types = tuple((slot, tuple((var.dtype, var.shape) for var in vars)) for slot, vars in op.outputs.items())
    return op.type, inputs, attributes, types


def _exactly(value: object) -> object:
    """An attribute so that 1, 1.0 and true are three values, 0.0 and -0.0 two."""
    return value if isinstance(value, Var) else (type(value), format_attribute(value))
