"""Rewrite rotary embeddings (Su et al., 2021): swapping the halves of the columns and negating one becomes a roll.

Before                                                       After
    y = multiply(concat([neg(second), first]), sines)            y = multiply(roll(x, half), concat([neg(sines'), sines"]))

Here ``first`` and ``second`` are the halves of the columns of x. The sign moves to the sines, which layers share: they are changed once,
instead of the queries and keys of each layer. Results are bit-identical.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Shape
from oarlock.ir.var import Var, are_same
from oarlock.passes.rewriter import declare, new_op, reader_counts
from oarlock.registry.catalogue import standard

__all__ = ["roll_halves"]

_NONE: Mapping[str, object] = MappingProxyType({})


class _Rotated(NamedTuple):
    """The input `x` of a rotation that puts the negated second half of its columns before the first half."""

    x: Var
    half: int


def roll_halves(program: Program, start: int, outputs: Iterable[object]) -> None:
    """Rewrite products with rotated halves in the main block, from op `start` on. `outputs` are additional variables that count as read."""
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
