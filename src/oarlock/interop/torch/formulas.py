"""Replace formulas that modules spell out by the operators that compute them: fewer ops, and one gradient kernel each.

Before                                                   After
    s = mean(square(x), axis=-1, keepdim=true)               y = rms_norm(x, w, epsilon=1e-6)
    y = multiply(w, multiply(x, rsqrt(add(s, 1e-6))))

    t = tanh(0.79788 * (x + 0.044715 * x * x * x))           y = gelu(x, approximate=true)
    y = multiply(0.5 * x, add(t, 1))

    y = multiply(0.5 * x, add(erf(x / 1.41421), 1))          y = gelu(x)

Applied if no other op reads the intermediate values and gradients pass through them. Results differ in the last bits.
"""

import math
from collections import Counter
from collections.abc import Iterable

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var, is_among
from oarlock.passes.canonicalization import number_of
from oarlock.passes.rewriter import declare
from oarlock.registry.catalogue import standard

__all__ = ["write_formulas_whole"]

_NEAR = 1e-6  # relative: the constants are rounded to a few digits, and some are float32


def write_formulas_whole(program: Program, start: int, outputs: Iterable[object]) -> int:
    """Replace formulas in the main block, from op `start` on, by single operators; return the number of replacements.

    The intermediate ops stay in the block, unread. `outputs` are additional variables that count as read.
    """
    readers = Counter(var for op in walk(program.main) for var in op.reads)
    readers.update(var for block in program.blocks for var in block.outputs)
    readers.update(var for var in (*program.targets.values(), *outputs) if isinstance(var, Var))
    main, count = program.main, 0
    for number in range(start, main.tail_start):
        found = _Formula(main.ops[number], readers).find()
        if found is not None:
            main.ops[number] = found
            count += 1
    return count


class _Formula:
    """Recognizes the formula that an op computes, from the ops before it."""

    def __init__(self, op: Op, readers: Counter[Var]):
        self.op = op
        self.readers = readers

    def find(self) -> Op | None:
        """Return a single op that computes the same result; None if there is none."""
        if self.op.type != "multiply" or not self.op.writes[0].dtype.is_floating:
            return None
        for one, other in (self.op.reads, self.op.reads[::-1]):
            made = self._scaled_norm(one, other) or self._norm(one, other) or self._gelu(one, other)
            if made is not None:
                return made
        return None

    def _norm(self, x: Var, rstd: Var) -> Op | None:
        """Match ``x / sqrt(mean(x**2) + epsilon)``."""
        shifted = self._argument(rstd, "rsqrt")
        mean, epsilon = self._with_number(shifted, "add")
        averaged = None if mean is None else self._between(mean, "mean")
        if averaged is None or epsilon is None or epsilon < 0 or not x.shape or self.op.writes[0].shape != x.shape:
            return None
        axis = averaged.attributes.get("axis")
        last = axis in (-1, len(x.shape) - 1, (-1,), (len(x.shape) - 1,))
        if not last or averaged.attributes.get("keepdim") is not True or self._squared(averaged.reads[0]) is not x:
            return None
        return self._made("rms_norm", {"x": x}, {"epsilon": epsilon}, x)

    def _scaled_norm(self, scale: Var, y: Var) -> Op | None:
        """Match such a normalization, multiplied by a scale for each column."""
        norm = self._between(y, "rms_norm")
        if norm is None or "scale" in norm.inputs or not y.shape or scale.shape != y.shape[-1:] or scale.dtype is not y.dtype:
            return None
        (x,) = norm.inputs["x"]
        return self._made("rms_norm", {"x": x, "scale": scale}, norm.attributes, x)

    def _gelu(self, half: Var, weight: Var) -> Op | None:
        """Match ``x / 2 (1 + tanh(c (x + 0.044715 x**3)))`` or ``x / 2 (1 + erf(x / sqrt(2)))``."""
        x, number = self._with_number(half, "multiply")
        bent, one = self._with_number(weight, "add")
        if x is None or bent is None or number != 0.5 or one != 1.0:
            return None
        scaled = self._argument(bent, "erf")
        if scaled is not None:
            root, factor = self._with_number(scaled, "multiply")
            divided, divisor = self._with_number(scaled, "divide")
            exact = (root is x and _near(factor, math.sqrt(0.5))) or (divided is x and _near(divisor, math.sqrt(2.0)))
            return self._made("gelu", {"x": x}, {"approximate": False}, x) if exact else None
        cubic, factor = self._with_number(self._argument(bent, "tanh"), "multiply")
        terms = None if cubic is None else self._between(cubic, "add")
        if terms is None or not is_among(x, terms.reads) or not _near(factor, math.sqrt(2.0 / math.pi)):
            return None
        third = next((var for var in terms.reads if var is not x), None)
        cube, weighed = self._with_number(third, "multiply")
        if not _near(weighed, 0.044715) or self._cubed(cube) is not x:
            return None
        return self._made("gelu", {"x": x}, {"approximate": True}, x)

    def _between(self, var: Var | None, type: str) -> Op | None:
        """Return the op of that type that computes `var`, if it is the only reader's input and gradients pass."""
        op = None if var is None else var.op
        alone = op is not None and op.block is self.op.block and self.readers[var] == 1 and not var.stop_gradient  # type: ignore[index, union-attr]
        return op if alone and op.type == type else None  # type: ignore[union-attr]

    def _argument(self, var: Var | None, type: str) -> Var | None:
        op = self._between(var, type)
        return None if op is None else op.reads[0]

    def _with_number(self, var: Var | None, type: str) -> tuple[Var | None, float | None]:
        """Match a binary op with a constant: return the other operand and the constant."""
        op = self._between(var, type)
        for one, other in () if op is None else (op.reads, op.reads[::-1])[: 1 if type == "divide" else 2]:
            number = number_of(other)
            if number is not None and one.shape == op.writes[0].shape:  # type: ignore[union-attr]
                return one, number
        return None, None

    def _squared(self, var: Var | None) -> Var | None:
        op = self._between(var, "square") or self._between(var, "multiply")
        return op.reads[0] if op is not None and len(set(op.reads)) == 1 else None

    def _cubed(self, var: Var | None) -> Var | None:
        op = self._between(var, "multiply")
        for one, other in () if op is None else (op.reads, op.reads[::-1]):
            if self._squared(one) is other:
                return other
        return None

    def _made(self, type: str, inputs: dict[str, Var], attributes: dict[str, object], x: Var) -> Op | None:
        """Create the replacement op, with the output of the original."""
        op, operator = self.op, standard.get(type)
        (y,) = op.writes
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            return None
        outputs = {"y": (y,)}
        if type == "rms_norm":
            outputs["rstd"] = (declare(y, (*x.shape[:-1], 1), "RSTD"),)  # type: ignore[index]
        made = Op(
            op.block,
            type,
            {slot: (var,) for slot, var in inputs.items()},
            outputs,
            operator.convert_attributes(attributes),
            role=op.role,
            location=op.location,
        )
        for var in made.writes:
            var.op = made
        self.readers.subtract(op.reads)
        self.readers.update(made.reads)
        return made


def _near(number: float | None, expected: float) -> bool:
    return number is not None and math.isclose(number, expected, rel_tol=_NEAR)
