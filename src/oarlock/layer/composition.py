"""Layers in sequence, layers over the steps of a sequence, and the identity."""

from collections.abc import Callable

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.size import multiply
from oarlock.ir.var import Var
from oarlock.op.composed.named_activation import Activation, activate, require_activation
from oarlock.op.composed.shape import known_shape
from oarlock.op.told_shape import view
from oarlock.registry.creator import require_type

__all__ = ["identity", "sequential", "time_distributed"]

Layer = Callable[[Var], Var]


def identity(x: Var) -> Var:
    """Return `x` itself: T[...s]. No op is created.

    y = ol.layer.sequential(rows, ol.layer.identity, "tanh")
    """
    return require_type(x, "identity: x")


def sequential(x: Var, *layers: Activation) -> Var:
    """Apply layers in order. Each is a function of a variable or the name of an activation.

    To pass settings, use a function: ``lambda x: ol.layer.fc(x, 64)``, or ``functools.partial(ol.layer.fc, size=64)``. If one of the layers
    raises, the program is left unchanged. Raises their errors, and ArgumentError for a layer that does not return a variable.

        y = ol.layer.sequential(rows, lambda x: ol.layer.fc(x, 32), "relu", lambda x: ol.layer.fc(x, 10))
    """
    x = require_type(x, "sequential: x")
    for layer in layers:
        require_activation(layer)
    with undone_on_error(x.block.program):
        for number, layer in enumerate(layers):
            x = _require_var(activate(x, layer), f"sequential: layer {number}")
        return x


def time_distributed(x: Var, layer: Layer, *, axes: int = 2) -> Var:
    """Apply `layer` to each step of each sequence, treating the steps as rows: T[n t ...d] -> T[n t ...e].

    The first `axes` dimensions are merged, `layer` is called on T[n*t ...d], and the dimensions are split again. Layers that accept any
    leading dimensions, such as `ol.layer.fc`, do not need it; convolution and pooling do. Raises ShapeError if `x` has fewer dimensions, or
    if the layer changes the number of rows.

        clips = ol.layer.data("clips", ["t", 3, 12, 12])
        y = ol.layer.time_distributed(clips, lambda images: ol.layer.conv2d(images, 8, 3))
    """
    x = require_type(x, "time_distributed: x")
    shape = known_shape(x, "time_distributed")
    if not isinstance(axes, int) or not 1 <= axes <= len(shape):
        raise ShapeError(f"time_distributed: {axes!r:.60} axes of {x.type_text} cannot be merged", location=here(), given=[x.describe()])
    rows = shape[0]
    for size in shape[1:axes]:
        rows = multiply(rows, size)
    with undone_on_error(x.block.program):
        y = _require_var(layer(view(x, [], shape=(rows, *shape[axes:]))), "time_distributed: the layer")
        if not y.shape or y.shape[0] != rows:
            raise ShapeError(
                f"time_distributed: the layer returned {y.type_text} for {rows} rows",
                location=here(),
                given=[x.describe(), y.describe()],
            )
        return view(y, [x], shape=(*shape[:axes], *y.shape[1:]))


def _require_var(value: object, what: str) -> Var:
    if not isinstance(value, Var):
        raise ArgumentError(f"{what} returned {type(value).__name__}, not a variable", location=here())
    return value
