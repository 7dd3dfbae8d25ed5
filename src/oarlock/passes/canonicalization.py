"""Canonicalization: sums with 0, products with 1, shapes that are given anew and opposites that undo each other are removed."""

from collections.abc import Callable, Mapping, Sequence

from oarlock.ir.attribute import Sizes
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.shape_rules import range_within
from oarlock.ir.var import Var, are_same, is_among
from oarlock.passes.rewriter import declare, is_elementwise, rewrite, sees
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import Operator
from oarlock.registry.signature import Slot

__all__ = ["canonicalize", "number_of"]


def canonicalize(program: Program, catalogue: Catalogue) -> int:
    """Simplify `program` by what holds of any value; return how many ops are not read any more, or read less.

    Before                                     After
        zero = full_like(a, 0)                     y = multiply(a, b)
        total = sum([a, zero])
        y = multiply(total, neg(neg(b)))

        a, b = slice(x, stop=2), slice(x, start=2)     dx = concat([da, db])
        dx = sum([slice_dx(x, da), slice_dx(x, db)])

    Legal where the types say that the result is the input: a neutral element that is a constant, and a result of the declared type of the
    other side; `reshape` and its like to the shape that is there, or of one another; `transpose` and `neg` of one another; `sum` and
    `concat` of one; `where` of one value on both sides; gradients of slices that make up a whole of known size. What reads only a shape
    reads it of the first value that has it, so that nothing is computed for its shape. Values keep their bits, but for the sign of a zero
    to which 0 is added. Costs nothing.
    Does not apply to sizes that only values tell.
    """
    simplification = _Simplification(catalogue)
    return rewrite(program, simplification) + simplification.count


def number_of(var: Var) -> float | None:
    """The number that each element of a constant is; None of what is no constant."""
    op = var.op
    value = op.attributes["value"] if op is not None and op.type in ("full", "full_like", "full_batch_size_like") else None
    return value if isinstance(value, float) else None


class _Simplification:
    def __init__(self, catalogue: Catalogue):
        self.catalogue = catalogue
        self.count = 0  # of ops that read another input than before

    def __call__(self, op: Op, before: list[Op]) -> Mapping[Var, Var]:
        if op.blocks or op.is_commit:
            return {}
        self._read_shapes_early(op)
        if op.type == "sum":
            self._join_slices(op, before)
        rule = _RULES.get(op.type)
        found = rule(self, op) if rule is not None else None
        (result,) = op.writes if found is not None else (None,)
        return {} if result is None or found is None or not _same_type(found, result) else {result: found}

    def _read(self, op: Op, slot: str, *vars: Var) -> bool:
        """Let `op` read `vars` in a slot; False where its block does not see them."""
        if not all(sees(op.block, var) for var in vars):
            return False
        if not are_same(op.inputs[slot], vars):
            op.inputs = {**op.inputs, slot: vars}
            self.count += 1
        return True

    def _read_shapes_early(self, op: Op) -> None:
        for slot in self.catalogue.get(op.type).signature.inputs:
            if slot.shape_only and op.inputs.get(slot.name):
                self._read(op, slot.name, *(self._first_of_shape(var) for var in op.inputs[slot.name]))

    def _first_of_shape(self, var: Var) -> Var:
        """The value from which `var` has its shape, element for element or row for row."""
        while var.shape and var.op is not None:
            operator = self.catalogue.get(var.op.type)
            given = var.op.reads if is_elementwise(operator, var.op) else _rows_of(var, operator)
            source = next((read for read in given if read.shape == var.shape), None)
            if source is None:
                break
            var = source
        return var

    def _join_slices(self, op: Op, before: list[Op]) -> None:
        """Let a sum read one `concat` in place of the gradients of slices that stand side by side and make up the whole."""
        by_axis: dict[int, list[tuple[int, int, Op]]] = {}
        for var in op.inputs["xs"]:
            found = _sliced(var)
            if found is not None and sees(op.block, found[3].inputs["dy"][0]):
                axis, *rest = found
                by_axis.setdefault(axis, []).append(tuple(rest))  # type: ignore[arg-type]
        for axis, parts in by_axis.items():
            parts.sort(key=lambda part: part[:2])
            ends = [0, *(start + length for start, length, _ in parts)]
            size = (op.writes[0].shape or ())[axis]
            if len(parts) < 2 or ends[-1] != size or any(start != end for (start, _, _), end in zip(parts, ends, strict=False)):
                continue
            taken = {part.writes[0] for *_, part in parts}
            rest = [var for var in op.inputs["xs"] if var not in taken]
            whole = declare(op.writes[0], op.writes[0].shape, "JOINED", op.block)
            made = Op(
                op.block,
                "concat",
                {"xs": tuple(part.inputs["dy"][0] for *_, part in parts)},
                {"y": (whole,)},
                self.catalogue.get("concat").convert_attributes({"axis": axis}),
                role=op.role,
                location=op.location,
            )
            whole.op = made
            before.append(made)
            self._read(op, "xs", whole, *rest)
            return

    def either(self, op: Op, neutral: float) -> Var | None:
        """The operand beside a neutral one."""
        (x,), (y,) = op.inputs["x"], op.inputs["y"]
        for one, other in ((x, y), (y, x)):
            if number_of(other) == neutral and _same_type(one, op.writes[0]):
                return one
        return None

    def second(self, op: Op, neutral: float) -> Var | None:
        """The first operand, where the second is neutral."""
        return op.inputs["x"][0] if number_of(op.inputs["y"][0]) == neutral else None

    def sum(self, op: Op) -> Var | None:
        """A sum without its zeros; where one term is left, that."""
        terms = op.inputs["xs"]
        kept = tuple(var for var in terms if number_of(var) != 0) or terms[:1]
        self._read(op, "xs", *kept)
        return kept[0] if len(kept) == 1 else None

    def only(self, op: Op) -> Var | None:
        """The operand that is joined with nothing else."""
        return op.inputs["xs"][0] if len(op.inputs["xs"]) == 1 else None

    def source(self, op: Op) -> Var | None:
        """The operand that is cast: it is the result, if that is its type already."""
        return op.inputs["x"][0]

    def reshaped(self, op: Op) -> Var | None:
        """The operand that is reshaped; where it was reshaped before, the first operand."""
        (x,) = op.inputs["x"]
        if x.op is None or x.op.type not in _RESHAPES:
            return x
        (source,) = x.op.inputs["x"]
        if _same_type(source, op.writes[0]) and sees(op.block, source):
            return source
        return source if _reshapes_alike(op, x, source) and self._read(op, "x", source) else x

    def same(self, op: Op) -> Var | None:
        """The value that stands on both sides of a condition."""
        return op.inputs["x"][0] if are_same(op.inputs["x"], op.inputs["y"]) else None

    def undone(self, op: Op) -> Var | None:
        """The operand that is negated twice."""
        (x,) = op.inputs["x"]
        return x.op.inputs["x"][0] if x.op is not None and x.op.type == op.type else None

    def transposed(self, op: Op) -> Var | None:
        """The operand that is transposed; where it was transposed before, both are done at once."""
        (x,) = op.inputs["x"]
        axes: tuple[int, ...] = op.attributes["axes"]  # type: ignore[assignment]
        if x.op is not None and x.op.type == op.type and self._read(op, "x", *x.op.inputs["x"]):
            first: tuple[int, ...] = x.op.attributes["axes"]  # type: ignore[assignment]
            axes = tuple(first[axis] for axis in axes)
            op.attributes = {**op.attributes, "axes": axes}
            (x,) = op.inputs["x"]
        return x if axes == tuple(range(len(axes))) else None


def _sliced(var: Var) -> tuple[int, int, int, Op] | None:
    """The axis, the first place and the length of the slice whose gradient `var` is, and the op of that; None for other values."""
    op = var.op
    if op is None or op.type != "slice_dx" or op.attributes.get("step") is not None or var.shape is None:
        return None
    axis: int = op.attributes["axis"] % len(var.shape)  # type: ignore[operator, assignment]
    if not isinstance(var.shape[axis], int):
        return None
    start, stop, clip = (op.attributes.get(name) for name in ("start", "stop", "clip"))
    first, length = range_within(var.shape[axis], axis, start, stop, clip=bool(clip))  # type: ignore[arg-type]
    return axis, first, length, op


def _rows_of(var: Var, operator: Operator) -> list[Var]:
    """The inputs of an op that have one number for each row `*b`, as its output `var` does."""
    op, group = var.op, operator.row_group
    if op is None or group is None or op.blocks or operator.effects:
        return []

    def of_rows(slots: Sequence[Slot]) -> set[str]:
        return {slot.name for slot in slots if len(slot.axes) == 1 and slot.leading_group == group}  # type: ignore[arg-type]

    outputs, inputs = of_rows(operator.signature.outputs), of_rows(operator.signature.inputs)
    given = any(is_among(var, vars) for slot, vars in op.outputs.items() if slot in outputs)
    return [read for slot, vars in op.inputs.items() if slot in inputs for read in vars] if given else []


def _same_type(one: Var, other: Var) -> bool:
    return one.shape is not None and (one.dtype, one.shape) == (other.dtype, other.shape)


def _reshapes_alike(op: Op, x: Var, source: Var) -> bool:
    """Whether an op gives of `source` what it gives of `x`, the same elements in another shape."""
    if op.type == "flatten":
        start: int = op.attributes["start"]  # type: ignore[assignment]
        return None not in (x.shape, source.shape) and x.shape[:start] == source.shape[:start] != source.shape  # type: ignore[index]
    shape = op.attributes.get("shape")
    return not isinstance(shape, Sizes) or sum(isinstance(size, str) for size in shape) < 2  # which the source may not tell


_RESHAPES = ("flatten", "reshape", "reshape_like")
_RULES: dict[str, Callable[[_Simplification, Op], Var | None]] = {
    "add": lambda pass_, op: pass_.either(op, 0.0),
    "subtract": lambda pass_, op: pass_.second(op, 0.0),
    "multiply": lambda pass_, op: pass_.either(op, 1.0),
    "divide": lambda pass_, op: pass_.second(op, 1.0),
    "neg": _Simplification.undone,
    "sum": _Simplification.sum,
    "concat": _Simplification.only,
    "transpose": _Simplification.transposed,
    "where": _Simplification.same,
    **dict.fromkeys(("assign", "stop_gradient", "cast", "broadcast_to_like", "sum_to_shape"), _Simplification.source),
    **dict.fromkeys(_RESHAPES, _Simplification.reshaped),
}
