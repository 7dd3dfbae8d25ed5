"""Rewrites of an imported program: formulas become single operators, rotary embeddings become rolls, and constants are evaluated."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import torch

from oarlock.interop.torch.rules.arguments import constant_value
from oarlock.interop.torch.state import Constant, State
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Shape
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var, are_same, is_among
from oarlock.passes.canonicalization import number_of
from oarlock.passes.rewriter import declare, is_pure, new_op, reader_counts, rewrite
from oarlock.registry.catalogue import standard
from oarlock.registry.value_checks import checks_values

__all__ = ["compute_constants", "replace_formulas", "roll_halves"]

# Formulas


_NEAR = 1e-6  # relative: the constants are rounded to a few digits, and some are float32


def replace_formulas(program: Program, start: int, outputs: Iterable[object]) -> int:
    """Replace formulas in the main block, from op `start` on, by single operators; return the number of replacements.

    Before                                                   After
        s = mean(square(x), axis=-1, keepdim=true)               y = rms_norm(x, w, epsilon=1e-6)
        y = multiply(w, multiply(x, rsqrt(add(s, 1e-6))))

        t = tanh(0.79788 * (x + 0.044715 * x * x * x))           y = gelu(x, approximate=true)
        y = multiply(0.5 * x, add(t, 1))

        y = multiply(0.5 * x, add(erf(x / 1.41421), 1))          y = gelu(x)

    This needs fewer ops, and one gradient kernel each. Applied if no other op reads the intermediate values and gradients pass through
    them; these ops stay in the block, unread. Results differ in the last bits. `outputs` are additional variables that count as read.
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


# Rotary embeddings


_NONE: Mapping[str, object] = MappingProxyType({})


class _Rotated(NamedTuple):
    """The input `x` of a rotation that puts the negated second half of its columns before the first half."""

    x: Var
    half: int


def roll_halves(program: Program, start: int, outputs: Iterable[object]) -> None:
    """Rewrite rotary embeddings (Su et al., 2021) in the main block, from op `start` on: rotated halves of columns become a roll.

    Before                                                       After
        y = multiply(concat([neg(second), first]), sines)            y = multiply(roll(x, half), concat([neg(sines'), sines"]))

    Here ``first`` and ``second`` are the halves of the columns of x. The sign moves to the sines, which layers share: they are changed
    once, instead of the queries and keys of each layer. Results are bit-identical. `outputs` are additional variables that count as read.
    """
    main, counts = program.main, reader_counts(program)
    for var in outputs:
        if isinstance(var, Var):
            counts[var] = counts.get(var, 0) + 1
    ops = main.ops[:start]
    for op in main.ops[start:]:
        if op.type == "multiply":
            ops += _rolled(op, counts)
        ops.append(op)
    main.ops[:] = ops
    program.changed()


def _rolled(op: Op, counts: dict[Var, int]) -> list[Op]:
    """Rewrite the product `op` to read rolled columns if one factor is a rotation; return the new ops, or none."""
    for slot, other in (("x", "y"), ("y", "x")):
        (factor,), (sines,) = op.inputs[slot], op.inputs[other]
        rotated = _read_rotated(factor, counts)
        if rotated is None or not sines.shape or sines.shape[-1] != 2 * rotated.half:
            continue
        made: list[Op] = []
        half, last = rotated.half, len(sines.shape) - 1
        part = (*sines.shape[:-1], half)
        first = _write(made, op, "slice", (sines,), part, {"axis": last, "start": 0, "stop": half})
        second = _write(made, op, "slice", (sines,), part, {"axis": last, "start": half, "stop": 2 * half})
        turned = _write(made, op, "concat", (_write(made, op, "neg", (first,), part), second), sines.shape, {"axis": last})
        rolled = _write(made, op, "roll", (rotated.x,), factor.shape, {"shifts": (half,), "axes": (-1,)})
        op.inputs = {**op.inputs, slot: (rolled,), other: (turned,)}
        return made
    return []


def _write(made: list[Op], op: Op, type: str, read: tuple[Var, ...], shape: Shape | None, attributes: Mapping[str, object] = _NONE) -> Var:
    """Append an op to `made` and return its result."""
    signature = standard.get(type).signature
    result = declare(read[0], shape, "ROTATED", op.block)
    made.append(new_op(op, type, {}, {signature.outputs[0].name: result}, standard, attributes))
    made[-1].inputs = {signature.inputs[0].name: read}
    return result


def _read_rotated(var: Var, counts: dict[Var, int]) -> _Rotated | None:
    """Match a rotation of column halves; None if `var` is something else or has other readers."""
    concat = _source(var, "concat", counts)
    if concat is None or len(concat.inputs["xs"]) != 2 or not var.shape or concat.attributes.get("axis", 0) not in (-1, len(var.shape) - 1):
        return None
    negative, first = concat.inputs["xs"]
    neg = _source(negative, "neg", counts)
    second = None if neg is None else _source(neg.inputs["x"][0], "slice", counts)
    leading = _source(first, "slice", counts)
    if second is None or leading is None or not are_same(second.inputs["x"], leading.inputs["x"]):
        return None
    (x,) = leading.inputs["x"]
    width = None if x.shape is None else x.shape[-1]
    if not isinstance(width, int) or width % 2 or _part(leading) != (0, width // 2) or _part(second) != (width // 2, width):
        return None
    return _Rotated(x, width // 2)


def _source(var: Var, type: str, counts: dict[Var, int]) -> Op | None:
    """Return the op that computes `var` if it has this type and `var` has a single reader."""
    op = var.op
    return op if op is not None and op.type == type and counts.get(var) == 1 and not var.stop_gradient else None


def _part(slice: Op) -> tuple[int, int] | None:
    """Return the range of columns of a slice, as (start, stop); None if it slices another axis or has a step."""
    (x,), attributes = slice.inputs["x"], slice.attributes
    assert x.shape is not None
    start, stop, axis = attributes.get("start") or 0, attributes.get("stop"), attributes.get("axis", 0)
    if axis not in (-1, len(x.shape) - 1) or attributes.get("step") not in (None, 1):
        return None
    return (start, x.shape[-1] if stop is None else stop)  # type: ignore[return-value]


# Constants


_MOST_ELEMENTS = 2**16
_MOVES = {"concat", "neg", "reshape", "slice", "transpose"}


def compute_constants(program: Program, state: State) -> None:
    """Evaluate ops that only move elements of constants or change their sign.

    Each result becomes a constant; equal results share one. The replaced ops stay in the program, unread, until the caller drops them.
    """

    def visit(op: Op, before: list[Op]) -> Mapping[Var, Var]:
        if not _is_constant(op):
            return {}
        with torch.no_grad(), torch.device("cpu"):
            (made,) = standard.get(op.type).run(op, constant_value, lambda var: torch.Size(var.shape))  # type: ignore[arg-type]
        return {op.writes[0]: state.held(Constant(made))}

    rewrite(program, visit)


def _is_constant(op: Op) -> bool:
    operator = standard.get(op.type)
    if op.type not in _MOVES or not is_pure(operator, op) or checks_values(operator, op) or not _is_small(op.writes[0].shape):
        return False
    return all(constant_value(var) is not None for var in op.reads)


def _is_small(shape: Shape | None) -> bool:
    return shape is not None and all(isinstance(size, int) for size in shape) and math.prod(shape) <= _MOST_ELEMENTS  # type: ignore[arg-type]
