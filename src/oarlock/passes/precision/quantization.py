"""`quantize`: weights, and on demand what they are multiplied by, as integers of 8 bits. For inference."""

from typing import Literal, NamedTuple

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.size import Shape
from oarlock.ir.substitution import replace_reads
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var, are_same
from oarlock.op.control.layout import Layout

__all__ = ["LEAST_PRODUCT", "Mode", "QuantizedWeight", "quantize"]

Mode = Literal["dynamic", "weights"]

LEAST_PRODUCT = 2**17
"""The elements of a weight from which a product of integers takes no longer for a single row than one of floats."""

_WEIGHTS = {"linear": ("w", 1), "conv1d": ("filter", 0), "conv2d": ("filter", 0), "conv3d": ("filter", 0), "gather": ("x", 0)}
"""The input that is a weight, and the axis whose every index has a scale of its own: the outputs of a product, the rows of a table."""


class QuantizedWeight(NamedTuple):
    """A weight that became integers and scales: the names of all three, the axis of the scales, and whether the integers are transposed."""

    weight: str
    integers: str
    scales: str
    axis: int
    is_transposed: bool


def quantize(
    program: Program, mode: Mode = "dynamic", *, at_least: int = 4096, products_at_least: int = LEAST_PRODUCT
) -> list[QuantizedWeight]:
    """Let `program` keep its weights as int8; return what became of each, for whoever has their values.

    Before                          After, dynamic
        y = linear(x, w, b)             q, scale = quantize_rows(x)
                                        y = linear_int8(q, scale, w@INT8, w@SCALE, b)
                                    After, weights
                                        w@FLOAT = dequantize(w@INT8, w@SCALE)
                                        y = linear(x, w@FLOAT, b)

    With "weights", products are computed in floats as before, of rounded weights; what depends on parameters alone is computed once, so
    that a step takes as long as before and files shrink to a quarter. With "dynamic", each row that `linear` multiplies by a weight
    is quantised when it runs, and the product is one of integers (Jacob et al., 2018; Dettmers et al., 2022); weights of convolutions
    and tables that are looked up are as with "weights". Each output of a product has a scale, each row of a table.

    Weights of fewer than `at_least` elements stay as they are. Those of fewer than `products_at_least` are as with "weights" in either
    mode: to quantise one row takes longer than its product with them. `program` is changed, its old weights are gone:
    `ol.quantize` does both, the program and its values. Raises ProgramError for a program that trains, ArgumentError for another mode.
    """
    if not isinstance(program, Program):
        raise ArgumentError(f"quantize takes a program, not {program!r:.60}", location=here(), hint="ol.quantize(model) takes a model")
    if mode not in ("dynamic", "weights"):
        raise ArgumentError(f'the mode is "dynamic" or "weights", not {mode!r:.60}', location=here())
    if program.is_training or any(op.role is Role.BACKWARD for op in walk(program.main)):
        raise ProgramError(
            "this program trains, and integers have no gradients",
            location=here(),
            hint="quantize what predicts: ol.prune(program, [predict]), or a model saved with ol.save_model(predict, parameters, path)",
        )
    return _Quantization(program, mode, at_least, products_at_least).run()


class _Quantization:
    """One application to a program."""

    def __init__(self, program: Program, mode: Mode, at_least: int, products_at_least: int):
        self.program = program
        kept = set(program.targets.values()) | {var for op in program.main.tail for var in (*op.reads, *op.writes)}
        self.weights = [var for var in program.persistables() if var not in kept and _is_large(var, at_least)]
        self.multiplied = {var for var in self.weights if mode == "dynamic" and _is_large(var, products_at_least)}
        self.integers: dict[Var, tuple[Var, Var]] = {}  # a weight -> its integers and scales
        self.unread: set[Var] = set()  # the transposes that products read before
        self.transposed: set[Var] = set()  # the weights whose integers are: kernels multiply those faster

    def run(self) -> list[QuantizedWeight]:
        axes = {var: axis for var in self.weights if (axis := self._axis(var)) is not None}
        self.transposed = {
            var for var, axis in axes.items() if var in self.multiplied and axis == 1 and all(_is_multiplied(var, op) for op in var.readers)
        }
        for var, axis in axes.items():
            self._declare(var, axis)
        if self.multiplied:
            self._rewrite_products(self.program.main, axes)
            self._drop_unread()
        read = {var for op in walk(self.program.main) if not op.blocks for var in op.reads}
        floats = {var: self._dequantized(var, axis) for var, axis in axes.items() if var in read}
        replace_reads(self.program.main, floats)
        self.program.main.ops[:0] = [op for made in floats.values() if (op := made.op) is not None]
        for op in reversed(list(walk(self.program.main))):
            if op.blocks:
                Layout.of(op).write()
        for var in axes:
            del self.program.main.vars[var.name]
        self.program.changed()
        return [
            QuantizedWeight(var.name, self.integers[var][0].name, self.integers[var][1].name, axis, var in self.transposed)
            for var, axis in axes.items()
        ]

    def _axis(self, var: Var) -> int | None:
        """The axis of the scales: that of the outputs where `var` is multiplied, else that of the rows where it is looked up."""
        found: list[int] = []
        for op in walk(self.program.main):
            slot, axis = _WEIGHTS.get(op.type, ("", 0))
            if not slot:
                continue
            (given,) = op.inputs[slot]
            if given is var and op.attributes.get("axis") in (None, 0):
                found.insert(0 if op.type == "linear" else len(found), axis)
            elif op.type == "linear" and given.op is not None and given.op.type == "matrix_transpose" and given.op.reads[0] is var:
                found.insert(0, 0)
        return found[0] if found else None

    def _declare(self, var: Var, axis: int) -> None:
        shape: Shape = var.shape or ()
        types = {"INT8": (DType.INT8, shape[::-1] if var in self.transposed else shape), "SCALE": (var.dtype, shape[axis : axis + 1])}
        integers, scales = (
            self.program.main.new_var(
                f"{var.name}@{suffix}",
                dtype,
                sizes,
                persistable=True,
                parameter=True,
                stop_gradient=True,
                place=var.place,
                location=var.location,
            )
            for suffix, (dtype, sizes) in types.items()
        )
        self.integers[var] = (integers, scales)

    def _rewrite_products(self, block: Block, axes: dict[Var, int]) -> None:
        ops: list[Op] = []
        for op in block.ops:
            for inner in op.blocks:
                self._rewrite_products(inner, axes)
            if op.type == "linear" and self._multiplies_quantized(op, axes):
                ops += self._product_of_integers(op)
            else:
                ops.append(op)
        block.ops = ops

    def _drop_unread(self) -> None:
        """Drop the transposes of floats that products read before."""
        read = {var for op in walk(self.program.main) for var in op.reads} | set(self.program.targets.values())
        for block in self.program.blocks:
            unread = {var for var in self.unread if var.block is block} - read - set(block.outputs)
            block.ops = [op for op in block.ops if unread.isdisjoint(op.writes)]
            for var in unread:
                del block.vars[var.name]

    def _multiplies_quantized(self, op: Op, axes: dict[Var, int]) -> bool:
        (w,), (x,) = op.inputs["w"], op.inputs["x"]
        if not x.shape or x.dtype is not w.dtype:
            return False
        turned = _transposed(w)
        return axes.get(w) == 1 and w in self.multiplied if turned is None else axes.get(turned) == 0 and turned in self.multiplied

    def _product_of_integers(self, op: Op) -> list[Op]:
        block, (w,), (x,) = op.block, op.inputs["w"], op.inputs["x"]
        stem = x.name.partition("@")[0]
        q = block.new_var(self.program.unique(f"{stem}@INT8"), DType.INT8, x.shape, location=op.location)
        scale = block.new_var(self.program.unique(f"{stem}@SCALE"), x.dtype, (x.shape or ())[:-1], location=op.location)
        ops = [_op(block, "quantize_rows", {"x": (x,)}, {"q": (q,), "scale": (scale,)}, {}, op)]
        found = _transposed(w)
        weight = w if found is None else found
        integers, scales = self.integers[weight]
        if found is not None:
            self.unread.add(w)
        if found is not None or w in self.transposed:
            turned = block.new_var(self.program.unique(f"{weight.name}@INT8"), DType.INT8, w.shape, location=op.location)
            ops.append(_op(block, "matrix_transpose", {"x": (integers,)}, {"y": (turned,)}, {}, op))
            integers = turned
        inputs = {"q": (q,), "scale": (scale,), "w": (integers,), "w_scale": (scales,)}
        inputs |= {"bias": op.inputs["bias"]} if "bias" in op.inputs else {}
        return [*ops, _op(block, "linear_int8", inputs, op.outputs, {}, op)]

    def _dequantized(self, var: Var, axis: int) -> Var:
        main = self.program.main
        integers, scales = self.integers[var]
        made = main.new_var(self.program.unique(f"{var.name}@FLOAT"), var.dtype, var.shape, location=var.location)
        made.op = Op(
            main,
            "dequantize",
            {"q": (integers,), "scale": (scales,)},
            {"x": (made,)},
            {"axis": axis},
            role=Role.FORWARD,
            location=var.location,
        )
        return made


def _is_large(var: Var, at_least: int) -> bool:
    count = 1
    for size in var.shape or ():
        count *= size if isinstance(size, int) else 0
    return var.parameter and var.dtype.is_floating and bool(var.shape) and len(var.shape) > 1 and count >= at_least


def _is_multiplied(var: Var, op: Op) -> bool:
    """Whether all that `op` does with `var` is to multiply rows by it; one with blocks hands it to ops inside."""
    return bool(op.blocks) or (
        op.type == "linear"
        and sum(read is var for read in op.reads) == 1
        and are_same(op.inputs["w"], (var,))
        and op.inputs["x"][0].ndim != 0
    )


def _transposed(var: Var) -> Var | None:
    """The weight of which `var` is the transpose; None where it is none."""
    return var.op.reads[0] if var.op is not None and var.op.type == "matrix_transpose" and var.op.reads[0].persistable else None


def _op(block: Block, type: str, inputs: dict, outputs: dict, attributes: dict[str, object], like: Op) -> Op:
    made = Op(block, type, inputs, dict(outputs), attributes, role=like.role, location=like.location)
    for var in made.writes:
        var.op = made
    return made
