"""Arithmetic on shapes at import. Sizes known only at run time stay symbols: `(n, t, 768)` becomes `(n*t, 768)`.

A fold maps known values to a known value. It returns None if it cannot; the model then computes the value at run time.
"""

import math

import numpy

from oarlock.interop.onnx.known_value import MOST_ELEMENTS, Known, known_sizes
from oarlock.interop.onnx.rule import fold
from oarlock.interop.onnx.tensors import DTYPES
from oarlock.ir import size
from oarlock.ir.dtype import DType

_INTEGERS = (DType.INT64, DType.INT32, DType.BOOL)


def _known(found: object, like: Known | DType) -> Known | None:
    dtype = like if isinstance(like, DType) else like.dtype
    array = found if isinstance(found, numpy.ndarray) else numpy.empty((), dtype=object)
    if array is not found:
        array[()] = found
    if dtype not in _INTEGERS or array.size > MOST_ELEMENTS:
        return None
    array = array if array.dtype == object else array.astype(object)
    if not all(isinstance(item, str) or dtype.holds(item) for item in array.reshape(-1)):
        return None
    return known_sizes(array, dtype)


def _elementwise(function, *items: Known, dtype: DType | None = None) -> Known | None:
    """Apply a function to elements, with broadcasting; None if it returns None for any of them."""
    arrays = numpy.broadcast_arrays(*(item.array for item in items))
    result = numpy.empty(arrays[0].shape, dtype=object)
    for place in numpy.ndindex(result.shape):
        found = function(*(array[place] for array in arrays))
        if found is None:
            return None
        result[place] = found
    return _known(result, dtype or items[0])


@fold("Identity")
def identity(x):
    return x


@fold("Cast")
def cast(x, *, to, saturate=1, round_mode="up"):
    if to not in DTYPES or x.dtype is DType.BOOL or DTYPES[to] not in (DType.INT64, DType.INT32):
        return None
    return _known(x.array, DTYPES[to])


@fold("Add")
def add(x, y):
    return _elementwise(size.add, x, y)


@fold("Sub")
def subtract(x, y):
    return _elementwise(lambda a, b: size.add(a, size.multiply(b, -1)), x, y)


@fold("Mul")
def multiply(x, y):
    return _elementwise(size.multiply, x, y)


@fold("Neg")
def negative(x):
    return _elementwise(lambda a: size.multiply(a, -1), x)


@fold("Div")
def divide(x, y):
    return _elementwise(_divided, x, y)


def _divided(left, right):
    """Divide, rounding towards 0. For sizes, which are not negative, this rounds down."""
    if left == right and isinstance(left, str):
        return 1
    if not isinstance(right, int) or right == 0 or (isinstance(left, str) and right < 0):
        return None
    if isinstance(left, int):
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return left if right == 1 else size.floor_divide(left, right)


@fold("Mod")
def remainder(x, y, *, fmod=0):
    if fmod:
        return None
    return _elementwise(lambda a, b: a % b if isinstance(a, int) and isinstance(b, int) and b else _no_rest(a, b), x, y)


def _no_rest(left, right):
    """Return 0 if a size is always a multiple of a number, else None."""
    if not isinstance(right, int) or right < 1 or not isinstance(left, str):
        return None
    return 0 if size.multiply(size.floor_divide(left, right), right) == left else None


@fold("Equal")
def equal(x, y):
    return _elementwise(_equal, x, y, dtype=DType.BOOL)


def _equal(left, right):
    if left == right:
        return True
    if isinstance(left, str) and isinstance(right, str):
        return None
    number, other = (left, right) if isinstance(left, int) else (right, left)
    if isinstance(other, int):
        return False
    return False if number < 0 and size.names_in(other) == {other} else None  # a size cannot be negative


@fold("Not")
def negated(x):
    return _elementwise(lambda a: not a, x)


@fold("And")
def both(x, y):
    return _elementwise(lambda a, b: a and b, x, y)


@fold("Or")
def either(x, y):
    return _elementwise(lambda a, b: a or b, x, y)


def _compared(function):
    return lambda x, y: _elementwise(
        lambda a, b: function(a, b) if isinstance(a, int) and isinstance(b, int) else None, x, y, dtype=DType.BOOL
    )


fold("Greater")(_compared(lambda a, b: a > b))
fold("GreaterOrEqual")(_compared(lambda a, b: a >= b))
fold("Less")(_compared(lambda a, b: a < b))
fold("LessOrEqual")(_compared(lambda a, b: a <= b))


@fold("Where")
def where(condition, x, y):
    return _elementwise(lambda c, a, b: a if c else b, condition, x, y, dtype=x.dtype)


@fold("Max")
def largest(*items):
    return _elementwise(lambda *a: max(a) if all(isinstance(item, int) for item in a) else a[0] if len(set(a)) == 1 else None, *items)


@fold("Min")
def smallest(*items):
    return _elementwise(lambda *a: min(a) if all(isinstance(item, int) for item in a) else a[0] if len(set(a)) == 1 else None, *items)


@fold("Gather")
def gather(x, index, *, axis=0):
    found = index.array
    if not all(isinstance(item, int) for item in found.reshape(-1)):
        return None
    return _known(numpy.take(x.array, found.astype(numpy.int64), axis=axis), x)


@fold("Slice")
def slice_of(x, starts, ends, axes=None, steps=None):
    places = [slice(None)] * len(x.shape)
    numbers = range(len(starts.items())) if axes is None else axes.items()
    for number, axis in enumerate(numbers):
        bounds = [item.items()[number] for item in (starts, ends)] + [steps.items()[number] if steps is not None else 1]
        if not all(isinstance(bound, int) for bound in bounds):
            return None
        places[axis] = slice(*_clipped(*bounds))
    return _known(x.array[tuple(places)], x)


def _clipped(start, end, step):
    return start, None if step < 0 and end < -(2**31) else end, step


@fold("Concat")
def concat(*items, axis):
    return _known(numpy.concatenate([item.array for item in items], axis=axis), items[0])


@fold("Split")
def split(x, lengths=None, *, axis=0, num_outputs=None, split=None):
    if lengths is None or not all(isinstance(item, int) for item in lengths.items()):
        return None
    ends = numpy.cumsum(lengths.items())
    if ends[-1] != x.shape[axis]:
        return None
    return [_known(part, x) for part in numpy.split(x.array, ends[:-1].astype(int), axis=axis)]


@fold("Squeeze")
def squeeze(x, axes=None):
    return _known(numpy.squeeze(x.array, None if axes is None else tuple(axes.items())), x)


@fold("Unsqueeze")
def unsqueeze(x, axes):
    return _known(numpy.expand_dims(x.array, tuple(axes.items())), x)


@fold("Reshape")
def reshape(x, shape, *, allowzero=0):
    sizes = shape.items()
    if not all(isinstance(item, int) for item in sizes) or (0 in sizes and not allowzero):
        return None
    return _known(x.array.reshape(sizes), x)


@fold("Transpose")
def transpose(x, *, perm=None):
    return _known(numpy.transpose(x.array, perm), x)


@fold("Expand")
def expand(x, shape):
    sizes = shape.items()
    if not all(isinstance(item, int) for item in sizes) or math.prod(max(item, 1) for item in sizes) > MOST_ELEMENTS:
        return None
    return _known(numpy.broadcast_to(x.array, numpy.broadcast_shapes(x.shape, tuple(sizes))), x)


@fold("ReduceProd")
def product(x, axes=None, *, keepdims=1, noop_with_empty_axes=0):
    if len(x.shape) != 1 or (axes is None and noop_with_empty_axes) or (axes is not None and axes.items() not in ([0], [-1])):
        return None
    return _known(numpy.array(size.product(x.items()), dtype=object).reshape((1,) if keepdims else ()), x)


@fold("ReduceSum")
def total(x, axes=None, *, keepdims=1, noop_with_empty_axes=0):
    if len(x.shape) != 1 or (axes is None and noop_with_empty_axes) or (axes is not None and axes.items() not in ([0], [-1])):
        return None
    return _known(numpy.array(size.sum_of(x.items()), dtype=object).reshape((1,) if keepdims else ()), x)


@fold("Range")
def numbers(start, limit, delta):
    bounds = [item.item() for item in (start, limit, delta)]
    if not all(isinstance(bound, int) for bound in bounds) or not bounds[2] or len(range(*bounds)) > MOST_ELEMENTS:
        return None
    return _known(numpy.array(range(*bounds), dtype=object), start)


@fold("Size")
def count(x):
    return _known(numpy.array(x.count, dtype=object), DType.INT64)
