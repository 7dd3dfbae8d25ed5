"""Terms of a sum, found through intermediates that nothing else reads."""

from collections import Counter
from collections.abc import Container
from typing import NamedTuple

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Shape, names_in
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var
from oarlock.passes.canonicalization import number_of

__all__ = ["FUSED", "OPERANDS", "SUMS", "Operand", "Readers", "Sum", "Term"]

Operand = Var | int
"""A variable; a number stands for the result of an op that is yet to be written."""

FUSED = {"multiply": "addcmul", "linear": "addmm", "linear_dx": "addmm_nt"}
"""The operator that adds what another one gives to a base; after the base it takes the operands of that one."""

OPERANDS = {"multiply": ("x", "y"), "linear": ("x", "w"), "linear_dx": ("w", "dout")}
"""The slots of the operators that are fused."""

SUMS = ("add", "subtract", "neg", "sum", *FUSED.values())

_PRODUCTS = {fused: product for product, fused in FUSED.items()}


class Term(NamedTuple):
    """A summand: what `product` gives of its operands; where that is None, a value."""

    product: str | None
    operands: tuple[Operand, ...]
    negative: bool


class Readers:
    """Of a whole program: which op defines a variable, and how many read it."""

    def __init__(self, program: Program):
        ops = list(walk(program.main))
        self.definitions = {var: op for op in ops for var in op.writes if not var.persistable}
        self.uses = Counter(var for op in ops for var in op.reads)
        self.uses.update(var for block in program.blocks for var in block.outputs)
        self.uses.update(program.targets.values())
        self._fed = {name for var in program.main.inputs for size in var.shape or () for name in names_in(size)}

    def remove(self, op: Op) -> None:
        self.uses.subtract(op.reads)
        for var in op.writes:
            del self.definitions[var]

    def insert(self, op: Op) -> None:
        self.uses.update(op.reads)
        self.definitions.update((var, op) for var in op.writes)

    def alone(self, var: Var, reader: Op, types: Container[str]) -> Op | None:
        """The op of the block of `reader` that defines `var` for one reader alone, where its type is among `types`."""
        op = self.definitions.get(var)
        return op if op is not None and op.block is reader.block and op.type in types and self.uses[var] == 1 else None

    def is_tensor(self, var: Var) -> bool:
        """Whether `var` is known to be no uneven stack: a kernel gives it, or each of its sizes is one throughout a run."""
        op = self.definitions.get(var)
        if op is not None and not op.blocks and op.type not in ("sum", "assign"):
            return True
        return all(name in self._fed for size in var.shape or () for name in names_in(size))

    def complement(self, var: Var) -> Var | None:
        """The variable that `var` is 1 minus of; None where it is something else."""
        op = self.definitions.get(var)
        if op is None or op.type != "subtract":
            return None
        (one,), (other,) = op.inputs["x"], op.inputs["y"]
        return other if number_of(one) == 1 and other.shape == var.shape else None


class Sum:
    """The sum that `root` computes: its `terms`, and the `ops` that compute it and nothing else.

    There are no terms where it cannot be rewritten: for a result that is no float, of unknown shape, or maybe an uneven stack.
    """

    def __init__(self, root: Op, readers: Readers):
        self.root = root
        self.readers = readers
        (self.result,) = root.writes
        self.ops: list[Op] = []
        self.terms: list[Term] = []
        if self.result.dtype.is_floating and self.result.shape is not None and self._is_whole(root):
            self._collect()
            if not any(op.type != "sum" or any(map(readers.is_tensor, op.reads)) for op in self.ops):
                self.terms = []

    @property
    def shape(self) -> Shape:
        return self.result.shape or ()

    def _is_whole(self, op: Op) -> bool:
        """Whether an operand has the shape of the sum. Others may broadcast."""
        return any(var.shape == self.result.shape for var in op.reads)

    def _collect(self) -> None:
        pending = self._take_sum(self.root, negative=False)
        while pending:
            var, negative = pending.pop()
            op = self.readers.alone(var, self.root, (*SUMS, *OPERANDS)) if var.shape == self.result.shape else None
            if op is not None and op.type in SUMS and self._is_whole(op):
                pending += self._take_sum(op, negative)
            elif op is not None and (op.type in ("linear", "linear_dx") or self.is_product(op)):
                self._take_product(op, negative)
            else:
                self.terms.append(Term(None, (var,), negative))

    def is_product(self, op: Op) -> bool:
        """Whether `op` multiplies, element by element, a factor of the shape of the sum and another."""
        return op.type == "multiply" and any(factor.shape == self.result.shape for factor in op.reads)

    def _take_sum(self, op: Op, negative: bool) -> list[tuple[Var, bool]]:
        """The variables that `op` adds up, and whether each is subtracted: the last first."""
        self.ops.append(op)
        if op.type in _PRODUCTS:
            (base,), *operands = op.inputs.values()
            sign = negative != op.attributes.get("subtracted", False)
            self._add_product(_PRODUCTS[op.type], tuple(var for (var,) in operands), sign)
            return [(base, negative)]
        if op.type == "subtract":
            return [(op.inputs["y"][0], not negative), (op.inputs["x"][0], negative)]
        return [(var, negative != (op.type == "neg")) for var in reversed(op.reads)]

    def _take_product(self, op: Op, negative: bool) -> None:
        self.ops.append(op)
        self._add_product(op.type, tuple(op.inputs[slot][0] for slot in OPERANDS[op.type]), negative)
        self.terms += [Term(None, (bias,), negative) for bias in op.inputs.get("bias", ())]

    def _add_product(self, product: str, operands: tuple[Var, ...], negative: bool) -> None:
        """Add a term. Factors that are negative are not: the term is."""
        if product == "multiply":
            for factor in operands:
                op = self.readers.alone(factor, self.root, ("neg",))
                if op is not None:
                    self.ops.append(op)
                    negative = not negative
                    operands = tuple(op.reads[0] if each is factor else each for each in operands)
        self.terms.append(Term(product, operands, negative))
