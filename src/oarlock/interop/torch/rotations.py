"""Positions of rotary embeddings (Su et al., 2021): half of the columns change places with the other half and their sign.

Before                                                       After
    y = multiply(concat([neg(second), first]), sines)            y = multiply(roll(x, half), concat([neg(sines'), sines"]))

Here ``first`` and ``second`` are halves of the columns of x. The sign goes to the sines, which layers share: they are changed once, where
queries and keys of each layer were. No element is rounded otherwise.
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
    """The columns of `x`, of which the second half, negative, stands before the first."""

    x: Var
    half: int


def roll_halves(program: Program, start: int, outputs: Iterable[object]) -> None:
    """Rewrite the products with such halves among the ops of the main block from `start` on. `outputs` are read too."""
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
    """Let the product `op` read rolled columns where one factor is such; return the ops that make them."""
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
    """The result of an op that is added to `made`."""
    signature = standard.get(type).signature
    result = declare(read[0], shape, "ROTATED", op.block)
    made.append(new_op(op, type, {}, {signature.outputs[0].name: result}, standard, attributes))
    made[-1].inputs = {signature.inputs[0].name: read}
    return result


def _read_rotated(var: Var, counts: dict[Var, int]) -> _Rotated | None:
    """The columns that `var` has in the other order and sign; None where it is something else, or something else reads it."""
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
    """The op of a type that makes `var` for one reader alone."""
    op = var.op
    return op if op is not None and op.type == type and counts.get(var) == 1 and not var.stop_gradient else None


def _part(slice: Op) -> tuple[int, int] | None:
    """The first column of a part and the one behind it; None where the part is of other axes, or has gaps."""
    (x,), attributes = slice.inputs["x"], slice.attributes
    assert x.shape is not None
    start, stop, axis = attributes.get("start") or 0, attributes.get("stop"), attributes.get("axis", 0)
    if axis not in (-1, len(x.shape) - 1) or attributes.get("step") not in (None, 1):
        return None
    return (start, x.shape[-1] if stop is None else stop)  # type: ignore[return-value]
