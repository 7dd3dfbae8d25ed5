"""New tensors - constants, ranges, triangles - and arithmetic on sizes."""

import operator
from collections.abc import Callable, Sequence

from oarlock import op
from oarlock.interop.torch.rules.arguments import (
    Number,
    as_dtype,
    as_variable,
    axis_of,
    broadcasted,
    filled,
    like,
    rank_of,
    refuse,
    reshaped,
    shape_of,
    unsqueezed,
    variables_with_sizes,
)
from oarlock.interop.torch.rules.registry import rule
from oarlock.ir import size as sizes
from oarlock.ir.dtype import DType
from oarlock.ir.size import Size
from oarlock.ir.var import Var
from oarlock.registry.signature import TensorType


def _constant(value: float) -> Callable[..., Var]:
    def apply(result: TensorType, self: Var | None = None, size: Sequence[Size | Var] = (), dtype: object = None) -> Var:
        if self is not None and result.shape == self.shape:
            return op.full_like(self, value=value, dtype=result.dtype)
        return filled(size if self is None or size else shape_of(self), value, result.dtype)

    return apply


for _value, _names in ((0.0, ("zeros", "new_zeros", "zeros_like")), (1.0, ("ones", "new_ones", "ones_like"))):
    rule(*(f"aten.{_name}.default" for _name in _names))(_constant(_value))


@rule("aten.empty.memory_format", "aten.empty_like.default", "aten.new_empty.default", "aten.empty_permuted.default")
def empty(
    result: TensorType, self: Var | None = None, size: Sequence[Size | Var] = (), dtype: object = None, physical_layout: object = None
):
    """Return zeros, in place of PyTorch's uninitialized memory."""
    return _constant(0.0)(result, self, size)


@rule("aten.empty_strided.default", "aten.new_empty_strided.default")
def empty_strided(result: TensorType, size: Sequence[Size | Var], stride: object = None, self: Var | None = None, dtype: object = None):
    return filled(size, 0.0, result.dtype)


@rule("aten.full.default", "aten.new_full.default", "aten.full_like.default")
def full(result: TensorType, fill_value: Number | Var, self: Var | None = None, size: Sequence[Size | Var] = (), dtype: object = None):
    shape = size if self is None or size else shape_of(self)
    if isinstance(fill_value, Var):
        return broadcasted(as_dtype(fill_value, result.dtype), shape)
    if self is not None and result.shape == self.shape:
        return op.full_like(self, value=float(fill_value), dtype=result.dtype)
    return filled(shape, fill_value, result.dtype)


@rule("aten.fill.Scalar", "aten.fill.Tensor")
def fill(self: Var, value: Number | Var):
    if isinstance(value, Var):
        return broadcasted(as_dtype(value, self.dtype), shape_of(self))
    return op.full_like(self, value=float(value), dtype=self.dtype)


@rule("aten.zero.default")
def zero(self: Var):
    return op.full_like(self, value=0.0, dtype=self.dtype)


@rule("aten.copy.default")
def copy(self: Var, src: Var):
    return broadcasted(as_dtype(src, self.dtype), shape_of(self))


@rule("aten.scalar_tensor.default")
def scalar_tensor(result: TensorType, s: Number | Var, dtype: object = None):
    return as_dtype(s, result.dtype) if isinstance(s, Var) else op.full(shape=(), value=float(s), dtype=result.dtype)


@rule("aten.arange.default", "aten.arange.start", "aten.arange.start_step")
def arange(
    result: TensorType, end: Number | Var, start: Number | Var = 0, step: Number = 1, dtype: object = None, requires_grad: bool = False
):
    """Return a range of the length in the export. If that is unknown, the bounds must be whole numbers, computed at run time."""
    (count,) = result.shape or ("?",)
    if count == "?":
        refuse(not isinstance(step, int), f"a range of unknown length needs a whole step, not {step}")
        first, last = (reshaped(item if isinstance(item, Var) else as_variable(int(item)), [1]) for item in (start, end))
        return op.arange(like=[], stop=last, start=first, step=int(step), dtype=result.dtype)
    if isinstance(start, Var) or float(start) != int(start) or float(step) != int(step):
        rows = as_dtype(numbered(count), result.dtype)
        return op.add(op.multiply(rows, like(step, rows)), as_dtype(like(start, rows), result.dtype))
    last = sizes.add(int(start), sizes.multiply(count, int(step)))
    return op.arange(like=variables_with_sizes([count]), stop=(last,), start=(int(start),), step=int(step), dtype=result.dtype)


def numbered(count: Size) -> Var:
    """Return the integers from 0 up to `count`, exclusive."""
    return op.arange(like=variables_with_sizes([count]), stop=(count,))


@rule("aten.linspace.default")
def linspace(result: TensorType, start: Number, end: Number, steps: int, dtype: object = None):
    rows = as_dtype(numbered(steps), result.dtype)
    step = (float(end) - float(start)) / max(steps - 1, 1)
    return op.add(op.multiply(rows, like(step, rows)), like(start, rows))


@rule("aten.eye.default", "aten.eye.m")
def eye(result: TensorType, n: Size, m: Size | None = None, dtype: object = None):
    rows, columns = (numbered(count) for count in (n, n if m is None else m))
    return op.cast(op.equal(unsqueezed(rows, 1), unsqueezed(columns, 0)), dtype=result.dtype)


@rule("aten.tril.default")
def tril(self: Var, diagonal: int = 0):
    return op.tril(self, diagonal=diagonal)


@rule("aten.triu.default")
def triu(self: Var, diagonal: int = 0):
    return op.triu(self, diagonal=diagonal)


@rule("aten.diag_embed.default")
def diag_embed(self: Var, offset: int = 0, dim1: int = -2, dim2: int = -1):
    refuse(
        (axis_of(self, dim1, more=1), axis_of(self, dim2, more=1)) != (rank_of(self) - 1, rank_of(self)),
        f"axes {dim1} and {dim2} are not the last two",
    )
    refuse(offset != 0, f"offset={offset} is not supported")
    count = shape_of(self)[-1]
    rows = op.arange(like=[self], stop=(count,), start=(0,))
    diagonal = op.equal(unsqueezed(rows, 1), unsqueezed(rows, 0))
    return op.where(diagonal, unsqueezed(self, rank_of(self)), like(0, self))


# Numbers


@rule("aten.sym_size.int")
def sym_size(self: Var, dim: int):
    return shape_of(self)[axis_of(self, dim)]


@rule("aten.sym_numel.default", "aten.numel.default")
def numel(self: Var):
    return sizes.product(shape_of(self))


@rule("aten.item.default", "aten._local_scalar_dense.default")
def item(self: Var):
    return reshaped(self, [])


_ARITHMETIC = {
    "operator.add": op.add,
    "operator.floordiv": op.floor_divide,
    "operator.mod": op.remainder,
    "operator.mul": op.multiply,
    "operator.sub": op.subtract,
}
_COMPARISONS = {
    "operator.eq": op.equal,
    "operator.ge": op.greater_equal,
    "operator.gt": op.greater,
    "operator.le": op.less_equal,
    "operator.lt": op.less,
    "operator.ne": op.not_equal,
}


def _number_rule(operation: Callable[[Var, Var], Var]) -> Callable[[Number | Var, Number | Var], Var]:
    def apply(left: Number | Var, right: Number | Var) -> Var:
        x, y = _with_common_dtype(left, right)
        return operation(x, y)

    return apply


def _with_common_dtype(left: Number | Var, right: Number | Var) -> tuple[Var, Var]:
    """Return two numbers as variables of one dtype: float32 if one of them is a float, else int64."""
    whole = all(item.dtype.is_integer if isinstance(item, Var) else isinstance(item, int) for item in (left, right))
    dtype = DType.INT64 if whole else DType.FLOAT32
    x, y = (as_dtype(item, dtype) if isinstance(item, Var) else op.full(shape=(), value=float(item), dtype=dtype) for item in (left, right))
    return x, y


for _name, _operation in {**_ARITHMETIC, **_COMPARISONS}.items():
    rule(_name)(_number_rule(_operation))


@rule("operator.truediv")
def truediv(left: Number | Var, right: Number | Var):
    x, y = _with_common_dtype(left, right)
    return op.divide(as_dtype(x, DType.FLOAT32), as_dtype(y, DType.FLOAT32))


@rule("operator.neg")
def neg(x: Var):
    return op.neg(x)


@rule("operator.pow")
def pow(x: Number | Var, exponent: Number | Var):
    return op.power(*_with_common_dtype(x, exponent))


@rule("math.sqrt", "torch._sym_sqrt")
def sqrt(x: Number | Var):
    return op.sqrt(as_dtype(x, DType.FLOAT32)) if isinstance(x, Var) else operator.pow(x, 0.5)


@rule("torch.sym_float")
def sym_float(x: Number | Var):
    return as_dtype(x, DType.FLOAT32) if isinstance(x, Var) else float(x)


@rule("torch.sym_int", "math.trunc")
def sym_int(x: Number | Var):
    return as_dtype(x, DType.INT64) if isinstance(x, Var) else int(x)


@rule("torch.sym_max")
def sym_max(left: Number | Var, right: Number | Var):
    return op.maximum(*_with_common_dtype(left, right)) if isinstance(left, Var) or isinstance(right, Var) else max(left, right)


@rule("torch.sym_min")
def sym_min(left: Number | Var, right: Number | Var):
    return op.minimum(*_with_common_dtype(left, right)) if isinstance(left, Var) or isinstance(right, Var) else min(left, right)


@rule("torch.sym_not")
def sym_not(x: bool | Var):
    return op.logical_not(x) if isinstance(x, Var) else not x
