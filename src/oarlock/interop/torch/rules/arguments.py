"""Convert ATen arguments for rules: axes, sizes per axis, shapes, dtypes and numbers."""

from collections.abc import Iterable, Sequence

import torch

from oarlock import op
from oarlock.interop.torch.rules.registry import Unsupported
from oarlock.ir import size
from oarlock.ir.attribute import Sizes
from oarlock.ir.block_stack import current_block
from oarlock.ir.dtype import DType
from oarlock.ir.names import CONSTANT
from oarlock.ir.size import Shape, Size
from oarlock.ir.var import HeldValue, Var

__all__ = [
    "Number",
    "as_dtype",
    "as_floating",
    "as_integer",
    "as_variable",
    "axes_of",
    "axis_of",
    "broadcasted",
    "constant_value",
    "filled",
    "find_dtype",
    "is_one",
    "like",
    "nonzero_in",
    "numbers",
    "permuted",
    "rank_of",
    "refuse",
    "repeated",
    "reshaped",
    "shape_of",
    "squeezed",
    "unsqueezed",
    "variables_with_sizes",
]

Number = int | float | bool


def refuse(condition: object, why: str) -> None:
    """Raise Unsupported with the reason `why` if `condition` holds."""
    if condition:
        raise Unsupported(why)


def shape_of(x: Var) -> Shape:
    """Return the shape of `x`. Raises Unsupported if its rank is unknown."""
    if x.shape is None:
        raise Unsupported(f'the rank of "{x.name}" is unknown')
    return x.shape


def rank_of(x: Var) -> int:
    """Return the number of dimensions of `x`. Raises Unsupported if it is unknown."""
    return len(shape_of(x))


def axis_of(x: Var, dim: int, *, more: int = 0) -> int:
    """Return the axis `dim` of `x` counted from the front, or of a result with `more` axes. A scalar counts as one axis, as in PyTorch."""
    return dim % max(rank_of(x) + more, 1)


def axes_of(x: Var, dim: int | Sequence[int] | None) -> tuple[int, ...]:
    """Return axes of `x` counted from the front, in ascending order; all axes if `dim` is None or empty."""
    if isinstance(dim, int):
        dim = (dim,)
    return tuple(range(rank_of(x))) if not dim else tuple(sorted(axis_of(x, item) for item in dim))


def repeated(value: int | Sequence[int] | None, count: int, default: Sequence[int] = ()) -> tuple[int, ...]:
    """Return one number for each of `count` axes. A single number is repeated; `default` replaces None or an empty list."""
    items = [value] if isinstance(value, int) else list(default if value is None or len(value) == 0 else value)
    return numbers(items * count if len(items) == 1 else items, "a size of a window, a stride or a padding")


def numbers(items: Sequence[object], what: str) -> tuple[int, ...]:
    """Return numbers that must be known at build time. Raises Unsupported for sizes known only at run time, called `what` in it."""
    for item in items:
        if not isinstance(item, int):
            raise Unsupported(f"{what} is {item}, which is only known at run time")
    return tuple(int(item) for item in items)  # type: ignore[call-overload]


def find_dtype(dtype: object) -> DType | None:
    """Convert a dtype of PyTorch or Oarlock, or None. Raises Unsupported for a dtype that programs do not support."""
    if dtype is None or isinstance(dtype, DType):
        return dtype
    name = str(dtype).removeprefix("torch.")
    if name not in {str(known) for known in DType}:
        raise Unsupported(f"programs do not support {name}")
    return DType.of(name)


def as_dtype(x: Var, dtype: object) -> Var:
    """Cast `x` to `dtype`; return `x` itself if it has that dtype or `dtype` is None."""
    wanted = find_dtype(dtype)
    return x if wanted is None or wanted is x.dtype else op.cast(x, dtype=wanted)


def as_floating(x: Var, dtype: object = None) -> Var:
    """Cast `x` to `dtype`; without one, keep float and complex dtypes and cast others to float32, PyTorch's default."""
    return as_dtype(x, dtype or (x.dtype if x.dtype.is_inexact else DType.FLOAT32))


def as_integer(x: Var) -> Var:
    """Cast `x` to int64 if it is an integer or bool."""
    return as_dtype(x, None if x.dtype.is_floating else DType.INT64)


def constant_value(x: Var) -> torch.Tensor | None:
    """Return the tensor of `x` if it is a constant of the module's code; None for state and computed values."""
    start = x.initializer
    return start.attributes["value"] if CONSTANT in x.name and isinstance(start, HeldValue) else None  # type: ignore[return-value]


def like(number: Number | Var, x: Var) -> Var:
    """Return a number as a scalar variable of the dtype of `x`; return a variable unchanged."""
    return number if isinstance(number, Var) else op.full(shape=(), value=float(number), dtype=x.dtype)


def nonzero_in(x: Var) -> Var:
    """Return whether each element of `x` is nonzero."""
    return x if x.dtype is DType.BOOL else op.not_equal(x, like(0, x))


def is_one(number: object) -> bool:
    """Return whether a factor such as alpha is the number 1, so that the multiplication can be omitted."""
    return not isinstance(number, Var) and number == 1


def filled(shape: Sequence[Size | Var], value: Number, dtype: DType) -> Var:
    """Create a tensor filled with `value`. The sizes may be symbols or variables."""
    if all(isinstance(item, int) for item in shape):
        return op.full(shape=tuple(shape), value=float(value), dtype=dtype)  # type: ignore[arg-type]
    return broadcasted(op.full(shape=(), value=float(value), dtype=dtype), shape)


def broadcasted(x: Var, shape: Sequence[Size | Var]) -> Var:
    """Broadcast `x` to `shape`; return `x` itself if it has that shape."""
    return x if tuple(shape) == x.shape else op.broadcast_to(x, like=variables_with_sizes(shape, x), shape=_attribute(shape))


def reshaped(x: Var, shape: Sequence[Size | Var]) -> Var:
    """Reshape `x` to `shape`; return `x` itself if it has that shape."""
    if tuple(shape) == x.shape:
        return x
    undetermined = [item for item in shape if isinstance(item, str) and not _determines([x], item)]
    if len(undetermined) + (-1 in shape) <= 1 or any(isinstance(item, Var) for item in shape):
        return op.reshape(x, shape=_attribute(shape))
    return op.view(x, like=variables_with_sizes(shape, x), shape=_attribute(shape))  # type: ignore[arg-type]


def _attribute(shape: Sequence[Size | Var]) -> Sizes | Var:
    """Convert a shape to an attribute: sizes, or a vector variable if some are known only at run time."""
    if not any(isinstance(item, Var) for item in shape):
        return Sizes(shape)  # type: ignore[arg-type]
    return op.stack([as_variable(item) for item in shape])


def as_variable(item: Size | Var) -> Var:
    """Return a size as an int64[] variable."""
    if isinstance(item, Var):
        return item
    if isinstance(item, int):
        return op.full(shape=(), value=float(item), dtype=DType.INT64)
    (var,) = variables_with_sizes([item])
    refuse(item not in (var.shape or ()), f"no variable has the size {item}, so it cannot be computed at run time")
    return op.size(var, axis=var.shape.index(item))  # type: ignore[union-attr]


def variables_with_sizes(wanted: Iterable[object], *known: Var) -> list[Var]:
    """Return visible variables whose shapes determine the symbols in `wanted` that the shapes of `known` do not."""
    missing = [item for item in dict.fromkeys(wanted) if isinstance(item, str) and not _determines(known, item)]
    found: list[Var] = []
    for item in missing:
        if not _determines(found, item):
            found += _find_determining(item)
    return found


def _determines(variables: Sequence[Var], symbol: str) -> bool:
    """Return whether the shapes of variables determine a symbol, directly or through all names it is made of."""
    sizes = {item for var in variables for item in var.shape or () if isinstance(item, str)}
    known = sizes | {found[0] for found in map(size.linear, sizes) if found}
    return symbol in known or size.names_in(symbol) <= known


def _find_determining(symbol: str) -> list[Var]:
    """Return a variable that determines a symbol, or one for each name it is made of. Raises Unsupported if there is none."""
    block = current_block()
    seen = [*block.program.main.inputs, *(var for around in block.enclosing() for var in around.vars.values())]
    whole = next((var for var in seen if _determines([var], symbol)), None)
    if whole is not None:
        return [whole]
    parts = [next((var for var in seen if _determines([var], name)), None) for name in sorted(size.names_in(symbol))]
    refuse(None in parts, f"no variable has the size {symbol}, so it cannot be computed at run time")
    return [var for var in parts if var is not None]


def squeezed(x: Var, axes: Sequence[int]) -> Var:
    """Remove axes of size 1 from `x`."""
    return reshaped(x, [item for axis, item in enumerate(shape_of(x)) if axis not in axes])


def unsqueezed(x: Var, *axes: int) -> Var:
    """Insert axes of size 1 into `x`. `axes` are positions in the result, in ascending order."""
    shape = list(shape_of(x))
    for axis in axes:
        shape.insert(axis, 1)
    return reshaped(x, shape)


def permuted(x: Var, axes: Sequence[int]) -> Var:
    """Permute the axes of `x`. Swapping the last two axes is a view."""
    axes = tuple(axes)
    rank = len(axes)
    if axes == tuple(range(rank)):
        return x
    if axes == (*range(rank - 2), rank - 1, rank - 2):
        return op.matrix_transpose(x)
    return op.transpose(x, axes=axes)
