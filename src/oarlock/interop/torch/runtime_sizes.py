"""Sizes as variables, for operators that compute with PyTorch's integer arithmetic on shapes."""

from collections.abc import Iterator
from functools import reduce

from oarlock.interop.torch.rules.registry import Unsupported
from oarlock.ir.block_stack import current_block
from oarlock.ir.dtype import DType
from oarlock.ir.polynomial import find_division, find_least
from oarlock.ir.program import Program
from oarlock.ir.size import Size, terms
from oarlock.ir.var import Var
from oarlock.op.choice import minimum
from oarlock.op.creation import full
from oarlock.op.elementwise import add, floor_divide, multiply
from oarlock.registry.catalogue import standard
from oarlock.registry.creator import create

__all__ = ["variable_of_size"]


def variable_of_size(size: Size, program: Program) -> Var:
    """Return `size` as an int64[] variable: a constant, the size of a variable along an axis, or arithmetic on these.

    Raises Unsupported if it cannot be computed at run time.
    """
    if isinstance(size, int):
        return full(shape=(), value=float(size), dtype=DType.INT64)
    for var in _seen(program):
        if var.shape and size in var.shape:
            found = create(standard.get("size"), (var,), {"axis": var.shape.index(size)})
            assert isinstance(found, Var)
            return found
    if terms(size) == {(size,): 1}:
        division, choices = find_division(size), find_least(size)
        if division is not None:
            return floor_divide(*(variable_of_size(part, program) for part in division))
        if choices is not None:
            return reduce(minimum, (variable_of_size(choice, program) for choice in choices))
        raise Unsupported(f"no variable has the size {size}, so it cannot be computed at run time")
    total: Var | None = None
    for factors, coefficient in terms(size).items():
        product = None if coefficient == 1 and factors else variable_of_size(coefficient, program)
        for factor in factors:
            value = variable_of_size(factor, program)
            product = value if product is None else multiply(product, value)
        assert product is not None
        total = product if total is None else add(total, product)
    assert total is not None
    return total


def _seen(program: Program) -> Iterator[Var]:
    """Iterate over the variables visible in the current block, inputs first. Variables of inner blocks differ in each iteration."""
    yield from program.main.inputs
    for block in current_block().enclosing():
        yield from block.vars.values()
