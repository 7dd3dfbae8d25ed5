"""Combination of terms: the fewest ops that compute a sum."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.var import Var
from oarlock.op.control.layout import Layout
from oarlock.passes.fusion.terms import FUSED, OPERANDS, Operand, Readers, Sum, Term
from oarlock.passes.loops import StackedNames, outside_shape
from oarlock.registry.catalogue import standard

__all__ = ["Combination", "Step", "Trips"]


class Trips:
    """Of a block: which of its variables are known before its trips, where it has any."""

    def __init__(self, block: Block, owner: Op | None, names: StackedNames):
        self.block = block
        self.repeats = owner is not None and owner.type in ("recurrent", "while")
        self.steps: dict[Var, Var] = {}
        if owner is not None and owner.type == "recurrent":
            layout, known = Layout.of(owner), names.of(owner.block)
            self.steps = {inner: outer for inner, outer in layout.steps if outside_shape(layout, inner, known) is not None}
        self.inside = {outer: inner for inner, outer in self.steps.items()}

    def leaves(self, var: Var, rank: int) -> bool:
        """Whether what is computed of `var` alone, of this rank, may leave the loop."""
        return self.repeats and (var.block is not self.block or (var in self.steps and var.ndim == rank))

    def complement(self, var: Var, readers: Readers) -> Var | None:
        """The variable of which `var` is 1 minus: in the block, or outside, where the loop steps through both."""
        if var.block is not self.block:
            return None
        if var not in self.steps:
            return readers.complement(var)
        other = readers.complement(self.steps[var])
        return None if other is None else self.inside.get(other)


class Step(NamedTuple):
    """An op to be written. With `leaves`, a later pass takes it out of the loop."""

    type: str
    inputs: dict[str, Operand]
    attributes: dict[str, object]
    leaves: bool


class Combination:
    """The `steps` that compute a sum, the result last, and the `ops` that they stand for; no steps where it stays as it is."""

    def __init__(self, found: Sum, trips: Trips):
        self.found = found
        self.trips = trips
        self.steps: list[Step] = []
        self.ops = list(found.ops)
        terms = dict(enumerate(found.terms))
        self._interpolate(terms)
        self._distribute(terms)
        self._accumulate(list(terms.values()))
        before = sum(len(op.reads) - 1 if op.type == "sum" else not self._may_leave(op.type, op.reads) for op in self.ops)
        after = sum(not step.leaves for step in self.steps)
        if (after, 0) >= (before, sum(op.type == "sum" for op in self.ops)):  # nor fewer kernels, nor one less that adds up a list
            self.steps = []

    def _emit(self, type: str, inputs: dict[str, Operand], **attributes: object) -> int:
        self.steps.append(Step(type, inputs, attributes, self._may_leave(type, inputs.values())))
        return len(self.steps) - 1

    def _may_leave(self, type: str, operands: Iterable[Operand]) -> bool:
        return type in ("add", "subtract") and all(map(self._leaves, operands))

    def _leaves(self, operand: Operand) -> bool:
        return self.steps[operand].leaves if isinstance(operand, int) else self.trips.leaves(operand, len(self.found.shape))

    def _is_whole(self, operand: Operand) -> bool:
        """Whether it has the shape of the sum, and does not broadcast to it."""
        return isinstance(operand, int) or operand.shape == self.found.shape

    # Terms that become fewer: each goes on under its number

    def _factors(self, term: Term) -> list[tuple[Operand, Operand]]:
        """Each factor of a product of elements, with the other, where none of them broadcasts."""
        if term.product != "multiply" or not all(map(self._is_whole, term.operands)):
            return []
        return [term.operands, term.operands[::-1]]  # type: ignore[list-item]

    def _interpolate(self, terms: dict[int, Term]) -> None:
        """Make `(1 - r) * x + r * y`, and `x + r * (y - x)`, one value."""
        products: dict[tuple[Operand, bool], list[tuple[int, Operand]]] = defaultdict(list)
        values: dict[tuple[Operand, bool], list[int]] = defaultdict(list)
        for number, term in terms.items():
            for factor, other in self._factors(term):
                products[factor, term.negative].append((number, other))
            if term.product is None:
                values[term.operands[0], term.negative].append(number)
        for number, (factor, other) in [(number, pair) for number, term in terms.items() for pair in self._factors(term)]:
            if number not in terms or terms[number].product is None or not isinstance(factor, Var):
                continue  # met already
            negative = terms[number].negative
            weight = self.trips.complement(factor, self.found.readers)
            if weight is not None:
                for partner, end in products.get((weight, negative), ()):
                    if partner in terms and partner != number:
                        del terms[partner]
                        terms[number] = self._between(other, end, weight, negative)
                        break
                continue
            difference = self.found.readers.alone(factor, self.found.root, ("subtract",))
            if difference is None or not all(map(self._is_whole, difference.reads)):
                continue
            minuend, subtrahend = difference.reads
            for start, end, sign in ((subtrahend, minuend, negative), (minuend, subtrahend, not negative)):
                value = next((each for each in values.get((start, sign), ()) if each in terms), None)
                if value is not None:
                    del terms[value]
                    self.ops.append(difference)
                    terms[number] = self._between(start, end, other, sign)
                    break

    def _between(self, start: Operand, end: Operand, weight: Operand, negative: bool) -> Term:
        return Term(None, (self._emit("lerp", {"start": start, "end": end, "weight": weight}),), negative)

    def _distribute(self, terms: dict[int, Term]) -> None:
        """Make `d * p + d * q` `d * (p + q)`, where p and q leave the loop, and d does not."""
        sharing: dict[Operand, list[tuple[int, Operand]]] = defaultdict(list)
        for number, term in terms.items():
            for factor, other in self._factors(term):
                if self._leaves(other) and not self._leaves(factor):
                    sharing[factor].append((number, other))
        for factor, found in sharing.items():
            (first, total), *others = sorted(found, key=lambda pair: terms[pair[0]].negative)
            for number, other in others:
                differ = terms[number].negative != terms[first].negative
                total = self._emit("subtract" if differ else "add", {"x": total, "y": other})
                del terms[number]
            terms[first] = Term("multiply", (factor, total), terms[first].negative)

    # Terms that become ops

    def _accumulate(self, terms: list[Term]) -> None:
        """Add up, first what leaves the loop. Every result has the whole shape; where none of the terms has a sign of +, there is none."""
        values = sorted((term for term in terms if term.product is None), key=self._value_order)
        products = sorted((term for term in terms if term.product is not None), key=lambda term: term.product != "multiply")
        wholes = [term for term in values if self._is_whole(term.operands[0])]
        start = next((term for term in (*wholes, *products, *(values if wholes else ())) if not term.negative), None)
        if start is None:
            self.steps = []  # of what terms became on the way, too
            return
        values = [term for term in values if term is not start]
        if start.product is None and not any(term is start for term in wholes):
            values.sort(key=lambda term: not any(term is whole for whole in wholes))  # a row: what comes next makes it whole
        total = self._begin(start, values)
        for term in (*values, *(term for term in products if term is not start)):
            total = self._add(total, term)

    def _value_order(self, term: Term) -> tuple[bool, bool, bool]:
        (operand,) = term.operands
        return not self._leaves(operand), not self._is_whole(operand), term.negative

    def _begin(self, term: Term, values: list[Term]) -> Operand:
        """The first term; with a linear one goes a bias, if there is one among the `values`."""
        if term.product is None:
            return term.operands[0]
        inputs = dict(zip(OPERANDS[term.product], term.operands, strict=True))
        if term.product == "linear":
            wanted = (inputs["w"].shape or ())[-1:]  # type: ignore[union-attr]
            bias = next((each for each in values if not each.negative and each.operands[0].shape == wanted), None)  # type: ignore[union-attr]
            if bias is not None:
                values[:] = [each for each in values if each is not bias]
                inputs["bias"] = bias.operands[0]
        return self._emit(term.product, inputs)

    def _add(self, total: Operand, term: Term) -> int:
        if term.product is None:
            return self._emit("subtract" if term.negative else "add", {"x": total, "y": term.operands[0]})
        if term.product != "multiply" and term.negative:
            product = self._emit(term.product, dict(zip(OPERANDS[term.product], term.operands, strict=True)))
            return self._emit("subtract", {"x": total, "y": product})
        fused = FUSED[term.product]
        sign = {"subtracted": term.negative} if term.product == "multiply" else {}
        slots = (slot.name for slot in standard.get(fused).signature.inputs)
        return self._emit(fused, dict(zip(slots, (total, *term.operands), strict=True)), **sign)
