"""Splat propagation: a tensor of one repeated number is kept as that number, and factors that are numbers are multiplied first."""

import math
from collections.abc import Mapping

from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.passes.rewriter import declare, is_elementwise, new_op, reader_counts, rewrite, sees
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import Operator
from oarlock.registry.value_checks import checks_values

__all__ = ["splat_propagation"]


def splat_propagation(program: Program, catalogue: Catalogue) -> int:
    """Scalarize what is one number repeated in `program`; return how many ops read a number in place of a tensor, or one factor for two.

    Before, the gradient of mean(square(x))    After
        one = full(1.0)                            count = numel(x)
        dy = mean_dx(one, x)                       one, two = full(1.0), full(2.0)
        two = full(2.0)                            factor = divide(multiply(one, two), count)
        dx = multiply(multiply(dy, x), two)        dx = multiply(x, factor)

    Legal for an op that broadcasts, where another input gives the result its shape; the numbers are computed by the same operators. Of
    `multiply`, `divide` and `neg` in a row, the numbers go first where nobody else reads the product between: products are rounded in
    another order, so values change in their last bits, and what is too large or too small on the way is so elsewhere. Costs a few ops on
    one number each. Does not apply to the mean of float16 and bfloat16, whose count those do not hold, or where all inputs are numbers.
    """
    scalars = _Scalars(program, catalogue)
    rewrite(program, scalars)
    return scalars.count


_REPEATERS = {
    "reduce_sum_dx": "dy",
    **dict.fromkeys(("broadcast_to_like", "flatten", "reshape", "reshape_like", "assign", "stop_gradient"), "x"),
}
"""Operators that repeat the elements of an input, or put them elsewhere."""


class _Scalars:
    def __init__(self, program: Program, catalogue: Catalogue):
        self.catalogue = catalogue
        self.readers = reader_counts(program)
        self.count = 0
        self.number: dict[Var, Var] = {}  # a tensor -> the number that it repeats
        self.scaled: dict[Var, tuple[Var, Var]] = {}  # a product -> the tensor and the number
        self.quotients: dict[Var, tuple[Var, Var]] = {}  # a number -> the numbers whose quotient it is

    def __call__(self, op: Op, before: list[Op]) -> Mapping[Var, Var]:
        if op.blocks or op.is_commit or len(op.writes) != 1 or op.writes[0].shape is None:
            return {}
        operator = self.catalogue.get(op.type)
        if op.writes[0].shape:
            number = self._repeated(operator, op, before)
            if number is not None:
                self.number[op.writes[0]] = number
            elif _broadcasts(operator, op):
                self._read_numbers(op)
            self._gather(op, before)
        return {}

    def _number(self, var: Var, op: Op) -> Var | None:
        """The number that `var` is or repeats, if `op` may read it."""
        number = var if var.shape == () else self.number.get(var)
        return number if number is not None and sees(op.block, number) else None

    def _emit(
        self, op: Op, before: list[Op], type: str, inputs: Mapping[str, Var], like: Var, attributes: Mapping[str, object] | None = None
    ) -> Var:
        """The number that an op of this type gives, which is put before `op`."""
        result = declare(like, (), block=op.block)
        (slot,) = self.catalogue.get(type).signature.outputs
        before.append(new_op(op, type, inputs, {slot.name: result}, self.catalogue, attributes or {}))
        return result

    def _constant(self, op: Op, before: list[Op], value: object, like: Var) -> Var:
        return self._emit(op, before, "full", {}, like, {"shape": Sizes(), "value": value, "dtype": like.dtype})

    # What is one number repeated

    def _repeated(self, operator: Operator, op: Op, before: list[Op]) -> Var | None:
        """The number that every element of what `op` gives is."""
        (result,) = op.writes
        if op.type in ("full", "full_like", "full_batch_size_like"):
            value = op.attributes["value"]
            return None if isinstance(value, Var) else self._constant(op, before, value, result)
        if op.type in _REPEATERS:
            return self._number(op.inputs[_REPEATERS[op.type]][0], op)
        if op.type == "mean_dx":
            return self._share_of_mean(op, before)
        if (
            not is_elementwise(operator, op)
            or checks_values(operator, op)
            or any(isinstance(value, Var) for value in op.attributes.values())
        ):
            return None
        numbers = {slot: self._number(var, op) for slot, vars in op.inputs.items() for var in vars}
        known = {slot: number for slot, number in numbers.items() if number is not None}
        return self._emit(op, before, op.type, known, result, op.attributes) if len(known) == len(numbers) else None

    def _share_of_mean(self, op: Op, before: list[Op]) -> Var | None:
        """The gradient of each element of a mean over everything."""
        (dy,), (like,) = op.inputs["dy"], op.inputs["x_shape"]
        number = self._number(dy, op)
        if number is None or op.attributes.get("axis") is not None or dy.dtype not in (DType.FLOAT32, DType.FLOAT64):
            return None
        if all(isinstance(size, int) for size in like.shape or ()):
            count = self._constant(op, before, float(math.prod(like.shape or ())), dy)  # type: ignore[arg-type]
        else:
            count = self._emit(op, before, "numel", {"like": like}, dy, {"dtype": dy.dtype})
        return self._quotient(op, before, number, count)

    # Who reads it

    def _read_numbers(self, op: Op) -> None:
        """Let an op that broadcasts read numbers, as long as another input gives its result the shape."""
        (result,) = op.writes
        if not any(var.shape == result.shape and var not in self.number for var in op.reads):
            return
        numbers = {
            var: number for var, number in ((var, self._number(var, op)) for var in op.reads) if number is not None and number is not var
        }
        if numbers:
            op.inputs = {slot: tuple(numbers.get(var, var) for var in vars) for slot, vars in op.inputs.items()}
            self.count += 1

    # Factors in a row

    def _gather(self, op: Op, before: list[Op]) -> None:
        """Of a product with a number, remember both; of such a product with one more number, multiply the numbers."""
        (result,) = op.writes
        if op.type not in ("multiply", "divide", "neg"):
            return
        x, y = op.inputs["x"][0], next(iter(op.inputs.get("y", ())), None)
        if op.type == "multiply" and x.shape == ():
            x, y = y, x
        if x is None or x.shape != result.shape or (y is not None and y.shape != ()):
            return
        tensor, number = self.scaled.get(x, (x, None))
        if number is not None and self.readers.get(x) == 1 and x.block is op.block and sees(op.block, tensor):
            factor = self._combined(op, before, number, y)
            before.append(new_op(op, "multiply", {"x": tensor, "y": factor}, {"z": result}, self.catalogue))
            self.scaled[result] = tensor, factor
            self.count += 1
        elif op.type == "multiply" and y is not None:
            self.scaled[result] = x, y

    def _combined(self, op: Op, before: list[Op], number: Var, other: Var | None) -> Var:
        """The factor that `op` makes of the factor of its first operand. Constants meet where a quotient is scaled."""
        if other is None:
            return self._emit(op, before, "neg", {"x": number}, number)
        if op.type == "divide":
            return self._quotient(op, before, number, other)
        over, under = self.quotients.get(number, (number, None))
        if under is not None and not (sees(op.block, over) and sees(op.block, under)):
            over, under = number, None
        product = self._emit(op, before, "multiply", {"x": over, "y": other}, number)
        return product if under is None else self._quotient(op, before, product, under)

    def _quotient(self, op: Op, before: list[Op], over: Var, under: Var) -> Var:
        quotient = self._emit(op, before, "divide", {"x": over, "y": under}, over)
        self.quotients[quotient] = over, under
        return quotient


def _broadcasts(operator: Operator, op: Op) -> bool:
    """Whether each input of `op` may have fewer elements than the result, and none of them alone gives the result its shape."""
    if any(slot.like for slot in operator.signature.outputs):
        return False
    return is_elementwise(operator, op) and all(slot.axes and slot.axes[0].kind == "broadcast" for slot in operator.signature.inputs)
