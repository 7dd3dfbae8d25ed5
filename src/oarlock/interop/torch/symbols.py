"""Convert PyTorch's sympy symbols to sizes, and sizes to variables for operators that compute with them."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import sympy
import torch

from oarlock.interop.torch.rules.registry import Unsupported
from oarlock.ir import size
from oarlock.ir.block_stack import current_block
from oarlock.ir.dtype import DType
from oarlock.ir.polynomial import find_division, find_least
from oarlock.ir.program import Program
from oarlock.ir.size import Shape, Size, terms
from oarlock.ir.var import Var
from oarlock.op.choice import maximum, minimum
from oarlock.op.creation import full
from oarlock.op.elementwise import add, floor_divide, multiply, remainder
from oarlock.registry.catalogue import standard
from oarlock.registry.creator import create

__all__ = ["Symbols", "variable_of_size"]

_HIGHEST_POWER = 8


class Symbols:
    """The meaning of each symbol of an exported graph: a size, or an int64[] variable whose value is known at run time."""

    def __init__(self) -> None:
        self._sizes: dict[sympy.Symbol, Size] = {}
        self._values: dict[sympy.Symbol, Var] = {}

    def bind(self, symbol: sympy.Symbol, meant: Size | Var) -> None:
        """Bind `symbol` to a size or to a variable that holds its value. The first binding of each kind is kept."""
        if isinstance(meant, Var):
            self._values.setdefault(symbol, meant)
        else:
            self._sizes.setdefault(symbol, meant)

    def find_size(self, number: object) -> Size | None:
        """Convert an int, a SymInt or an expression to a size; None if sizes do not support it, or a symbol is not bound to a size."""
        expression = number.node.expr if isinstance(number, torch.SymInt) else number
        return self._read(expression) if isinstance(expression, sympy.Basic) else expression  # type: ignore[return-value]

    def find_shape(self, shape: Sequence[object]) -> Shape | None:
        """Convert `shape` to sizes; None if one of them cannot be converted."""
        sizes = [self.find_size(item) for item in shape]
        return None if None in sizes else tuple(sizes)  # type: ignore[arg-type]

    def _read(self, expression: sympy.Basic) -> Size | None:
        if isinstance(expression, sympy.Symbol):
            return self._sizes.get(expression)
        if isinstance(expression, sympy.Integer):
            return int(expression)
        if isinstance(expression, sympy.Add):
            return self._fold(size.add, 0, expression.args)
        if isinstance(expression, sympy.Mul):
            number = math.prod((item for item in expression.args if isinstance(item, sympy.Rational)), start=sympy.Integer(1))
            product = self._fold(size.multiply, int(number.p), [item for item in expression.args if not isinstance(item, sympy.Rational)])
            return product if product is None or number.q == 1 else size.floor_divide(product, int(number.q))
        if isinstance(expression, sympy.Pow):
            base, power = expression.args
            low = isinstance(power, sympy.Integer) and 0 <= int(power) <= _HIGHEST_POWER
            return self._fold(size.multiply, 1, [base] * int(power)) if low else None  # type: ignore[arg-type]
        if _kind(expression) in _BOUNDS and expression.args:
            return self._fold(_BOUNDS[_kind(expression)], self._read(expression.args[0]), expression.args[1:])
        if _kind(expression) in _DIVISIONS:
            return self._divide(*expression.args)
        if _kind(expression) in _REMAINDERS:
            quotient, dividend = self._divide(*expression.args), self._read(expression.args[0])
            if quotient is not None and dividend is not None:
                return size.add(dividend, size.multiply(-int(expression.args[1]), quotient))  # type: ignore[arg-type]
        return None

    def _fold(self, operation: Callable[[Size, Size], Size], start: Size | None, parts: Sequence[sympy.Basic]) -> Size | None:
        total = start
        for part in parts:
            read = self._read(part)
            if read is None or total is None:
                return None
            total = operation(total, read)
        return total

    def _divide(self, dividend: sympy.Basic, divisor: sympy.Basic) -> Size | None:
        read = self._read(dividend)
        return size.floor_divide(read, int(divisor)) if read is not None and isinstance(divisor, sympy.Integer) and divisor > 0 else None

    def evaluate(self, expression: sympy.Basic, variable_of: Callable[[Size], Var]) -> Var | None:
        """Compute `expression` as an int64[] variable; None if it has an unknown operation.

        `variable_of` returns a size as a variable.
        """
        if isinstance(expression, sympy.Integer):
            return variable_of(int(expression))
        if isinstance(expression, sympy.Symbol):
            value, known = self._values.get(expression), self._sizes.get(expression)
            return value if known is None else variable_of(known)
        operation = _ARITHMETIC.get(_kind(expression))
        parts = [self.evaluate(part, variable_of) for part in expression.args] if operation else [None]
        if operation is None or None in parts:
            return None
        total = parts[0]
        for part in parts[1:]:
            total = operation(total, part)
        return total


_DIVISIONS, _REMAINDERS = ("FloorDiv", "CleanDiv"), ("Mod", "PythonMod")  # private classes of PyTorch
_BOUNDS: dict[str, Callable[[Size, Size], Size]] = {"Min": size.minimum, "Max": size.maximum}
_ARITHMETIC: dict[str, Callable[..., Var]] = {
    "Add": add,
    "Mul": multiply,
    "Min": minimum,
    "Max": maximum,
    **dict.fromkeys(_DIVISIONS, floor_divide),
    **dict.fromkeys(_REMAINDERS, remainder),
}


def _kind(expression: sympy.Basic) -> str:
    return type(expression).__name__


# Sizes as variables


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
