"""Variables that carry their own values, as in the 2017 examples; for interactive use and tests.

x = ol.minibatch([10, 20, 30])      # float32[n, 1]
y = ol.var(0.314, param=True)       # a trainable float32[1]
ol.eval(ol.larger_than(x, 15))      # [[False], [True], [True]]
ol.layer.add_scalar(x, y)           # float32[n, 1]
"""

import numpy

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.attribute import Sizes
from oarlock.ir.block_stack import current_block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.layer.initializer import constant
from oarlock.layer.inputs import data
from oarlock.layer.parameter import layer_name, new_parameter
from oarlock.op.comparison import greater
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.creation import full
from oarlock.op.elementwise import add
from oarlock.op.manipulation import reshape
from oarlock.registry.creator import require_type

__all__ = ["add_scalar", "larger_than", "minibatch", "sequence", "var"]


def minibatch(values: object, *, name: str | None = None) -> Var:
    """Declare an input that carries its rows: float32[n, ...]; a list of numbers becomes a column, float32[n, 1]."""
    return _rows(values, name, "minibatch", "n")


def sequence(values: object, *, name: str | None = None) -> Var:
    """Declare an input that carries its steps: float32[t, ...]; a list of numbers becomes float32[t, 1]."""
    return _rows(values, name, "sequence", "t")


def _rows(values: object, name: str | None, kind: str, symbol: str) -> Var:
    array = numpy.asarray(values)
    if array.dtype.kind not in "fiub" or not array.ndim:
        raise ArgumentError(f"{kind}: {values!r:.60} is not rows of numbers", location=here())
    if array.ndim == 1:
        array = array[:, None]
    if array.dtype.kind in "iu" or (array.dtype == numpy.float64 and not isinstance(values, numpy.ndarray)):
        array = array.astype("float32")  # Python numbers have no dtype
    return data(layer_name(current_block().program, name, kind), batch=symbol, value=array)


def var(value: float, *, param: bool = False, name: str | None = None) -> Var:
    """Create one number, float32[1], also for integers: a trainable parameter with `param`, otherwise a constant."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentError(f"var: {value!r:.60} is not a number", location=here())
    block = current_block()
    if param:
        return new_parameter(block, layer_name(block.program, name, "var"), (1,), DType.FLOAT32, constant(value))
    return full(shape=Sizes((1,)), value=float(value), name=layer_name(block.program, name, "var"))


def larger_than(x: Var, y: Var | float) -> Var:
    """Return ``x > y`` element by element, as bool; `y` may be a number."""
    return greater(x, constant_like(y, require_type(x, "larger_than: x")))


def add_scalar(x: Var, y: Var | float) -> Var:
    """Return ``x + y`` in the type of `x`; `y` is a number, or a variable of the same dtype with one element: float32[] or float32[1].

    Raises ArgumentError or DTypeError if `y` cannot be combined with `x`, ShapeError if it has more than one element.
    """
    x = require_type(x, "add_scalar: x")
    scalar = constant_like(y, x)
    if scalar.shape not in ((), (1,)):
        raise ShapeError(
            f"add_scalar: y is one number, {x.dtype}[] or {x.dtype}[1], not {scalar.type_text}",
            location=here(),
            given=[x.describe(), scalar.describe()],
            hint="ol.add(x, y) adds variables of any sizes that broadcast",
        )
    return add(x, reshape(scalar, shape=()) if scalar.shape == (1,) and x.shape == () else scalar)
