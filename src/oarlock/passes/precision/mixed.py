"""`mixed_precision`: products in bfloat16 or float16, sums and parameters in float32."""

from collections.abc import Iterable

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var, is_among
from oarlock.op.control.layout import Layout
from oarlock.passes.precision.table import FOLLOWING, REDUCED
from oarlock.registry.catalogue import standard
from oarlock.registry.signature import TensorType

__all__ = ["mixed_precision"]


def mixed_precision(program: Program, dtype: DType | str = DType.BFLOAT16) -> int:
    """Let the forward ops of `program` compute products in `dtype`, bfloat16 or float16; return how many ops compute in it then.

    Before                                     After
        z = linear(x, w, b)                        x@BFLOAT16, w@BFLOAT16, b@BFLOAT16 = cast(x), cast(w), cast(b)
        y = relu(z)                                z = linear(x@BFLOAT16, w@BFLOAT16, b@BFLOAT16)
        cost = mean(square(y))                     y = relu(z)
                                                   cost = mean(square(cast(y)))

    Products, convolutions and attention are computed in `dtype`; what goes element by element, or moves elements, in the dtype of its
    inputs; everything else, sums, norms, softmax and losses above all, in float32. `oarlock.passes.precision.table` has each operator
    with the reason (Micikevicius et al., 2018, "Mixed precision training"; bfloat16: Kalamkar et al., 2019). Casts are ops of the
    program, one for each value, before its first reader; a parameter's stands in the main block, so that a loop does not cast it in
    each trip. Parameters, the master weights, stay in float32, with their gradients, state and updates; so do targets, and whatever a
    block is given and returns.

    Call it before `minimize`: gradients follow the casts. float16, whose small gradients vanish, needs `ol.optimizer.LossScaling` too.
    Values of other dtypes, float64 as well, are left alone. `program` is changed. Raises ProgramError where it has gradients already,
    ArgumentError for another dtype.
    """
    if not isinstance(program, Program):
        raise ArgumentError(f"mixed_precision takes a program, not {program!r:.60}", location=here())
    reduced = DType.of(dtype)
    if reduced not in (DType.BFLOAT16, DType.FLOAT16):
        raise ArgumentError(f"the reduced dtype is bfloat16 or float16, not {reduced}", location=here())
    if any(op.role is Role.BACKWARD for op in walk(program.main)):
        raise ProgramError(
            "this program has gradients already, which read values in float32",
            location=here(),
            hint="call mixed_precision before minimize or append_backward",
        )
    return _MixedPrecision(program, reduced).run()


class _MixedPrecision:
    """One application to a program."""

    def __init__(self, program: Program, dtype: DType):
        self.program = program
        self.dtype = dtype
        self.main_ops: list[Op] = []
        self.casts: dict[tuple[Var, DType, Block], Var] = {}
        self.reduced: set[Var] = set()  # those that were float32
        self.count = 0

    def run(self) -> int:
        self._block(self.program.main, self.main_ops)
        self.program.main.ops = self.main_ops
        self.program.changed()
        return self.count

    def _block(self, block: Block, ops: list[Op]) -> None:
        """Write into `ops` those of `block`, with the casts that they need; the blocks inside are rewritten where they are."""
        fixed = {*block.outputs, *self.program.targets.values(), *(var for op in block.ops if op.is_commit for var in op.reads)}
        for op in block.ops:
            for inner in op.blocks:
                inside: list[Op] = []
                self._block(inner, inside)
                inner.ops = inside
            if op.is_commit or op.role is Role.UPDATE:
                ops.append(op)
            else:
                self._op(op, ops, fixed)

    def _op(self, op: Op, ops: list[Op], fixed: set[Var]) -> None:
        dtype = self.dtype if self._is_reduced(op) else DType.FLOAT32
        given = [var for slot, vars in op.inputs.items() if slot != "free" for var in vars]  # what blocks capture they cast themselves
        replaced = {var: self._as(var, dtype, op, ops) for var in dict.fromkeys(given) if self._is_float32(var)}
        op.inputs = {slot: tuple(replaced.get(var, var) for var in vars) for slot, vars in op.inputs.items()}
        ops.append(op)
        if op.blocks:
            Layout.of(op).write()
        if dtype is self.dtype:
            self.count += 1
            self._reduce_outputs(op, ops, fixed)

    def _is_float32(self, var: Var) -> bool:
        """Whether a variable was float32 before the pass."""
        return var.dtype is DType.FLOAT32 or var in self.reduced

    def _is_reduced(self, op: Op) -> bool:
        """Whether `op` is computed in the reduced dtype."""
        floats = [var for var in op.reads if self._is_float32(var)]
        if not floats or any(var.dtype.is_floating and not is_among(var, floats) for var in op.reads):
            return False
        if op.type in REDUCED:
            return True
        return op.type in FOLLOWING and self._all_reduced(floats)

    def _all_reduced(self, floats: Iterable[Var]) -> bool:
        """Whether some variables are reduced, and the others are single numbers."""
        found = [var for var in floats if var.shape != ()]
        return bool(found) and all(var in self.reduced or self._is_cast_back(var) for var in found)

    def _is_cast_back(self, var: Var) -> bool:
        """Whether a variable stays float32 only for those who look at it from outside: it is cast from a reduced one."""
        return var.op is not None and var.op.type == "cast" and var.op.reads[0] in self.reduced

    def _as(self, var: Var, dtype: DType, op: Op, ops: list[Op]) -> Var:
        """The variable by which `op` reads `var` in `dtype`; a cast is written where there is none."""
        if var.dtype is dtype:
            return var
        if dtype is self.dtype and self._is_cast_back(var):
            assert var.op is not None
            return var.op.reads[0]
        block, into = (self.program.main, self.main_ops) if var.persistable else (op.block, ops)
        for place in block.enclosing():
            if (var, dtype, place) in self.casts:
                return self.casts[var, dtype, place]
        made = block.new_var(
            self.program.unique(f"{var.name.partition('@')[0]}@{dtype.value.upper()}"), dtype, var.shape, location=var.location
        )
        self._cast(var, made, into, op)
        self.casts[var, dtype, block] = made
        return made

    def _cast(self, var: Var, made: Var, ops: list[Op], reader: Op) -> None:
        cast = Op(made.block, "cast", {"x": (var,)}, {"y": (made,)}, {"dtype": made.dtype}, role=Role.FORWARD, location=reader.location)
        made.op = cast
        ops.append(cast)
        if made.dtype is self.dtype:
            self.reduced.add(made)

    def _reduce_outputs(self, op: Op, ops: list[Op], fixed: set[Var]) -> None:
        """Let what `op` gives be of the dtype that follows from its inputs; what must stay float32 is cast back."""
        types = {slot: [TensorType(var.dtype, var.shape) for var in vars] for slot, vars in op.inputs.items()}
        inferred = standard.get(op.type).infer(types, op.attributes, lambda: self.program.unique("size"))
        for slot, vars in op.outputs.items():
            given = []
            for var, type in zip(vars, inferred[slot], strict=True):
                if type.dtype is var.dtype:
                    given.append(var)
                elif var not in fixed:
                    var.dtype = type.dtype
                    self.reduced.add(var)
                    given.append(var)
                else:
                    name = self.program.unique(f"{var.name.partition('@')[0]}@{self.dtype.value.upper()}")
                    made = op.block.new_var(name, type.dtype, var.shape, stop_gradient=var.stop_gradient, location=var.location)
                    self.reduced.add(made)
                    self._cast(made, var, ops, op)
                    made.op = op
                    given.append(made)
            op.outputs = {**op.outputs, slot: tuple(given)}
