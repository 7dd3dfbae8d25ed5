"""Group normalization and RMS normalization."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.normalization import by_channel


@export("rows_by_group")
def rows_by_group(g: Graph, x: Value, *, groups: int) -> str:
    """Reshape each group to a row: [n groups k]."""
    each = g("Div", g.count(x.sizes[1:]), g.ints(groups))
    return g.reshape(x, g("Concat", g.dim(x, 0), g.ints([groups]), g.unsqueeze(each, 0), axis=0))


@export("group_norm")
def group_norm(
    g: Graph, x: Value, scale: Value | None = None, bias: Value | None = None, *, groups: int, epsilon: float
) -> tuple[str, str, str]:
    if any(size == 0 for size in x.sizes):
        nothing = g.filled(0, x.dtype, g("Concat", g.dim(x, 0), g.ints([groups, 1]), axis=0))
        return g.filled(0, x.dtype, g.shape(x)), nothing, nothing
    rows = rows_by_group(g, x, groups=groups)
    mean = g.reduce("ReduceMean", rows, [2], keepdim=True)
    centred = g("Sub", rows, mean)
    variance = g.reduce("ReduceMean", g("Mul", centred, centred), [2], keepdim=True)
    rstd = g("Reciprocal", g("Sqrt", g("Add", variance, g.scalar(epsilon, x.dtype))))
    y = g.reshape(g("Mul", centred, rstd), g.shape(x))
    y = y if scale is None else g("Mul", y, by_channel(g, scale, x))
    return (y if bias is None else g("Add", y, by_channel(g, bias, x))), mean, rstd


@export("rms_norm")
def rms_norm(g: Graph, x: Value, scale: Value | None = None, *, epsilon: float) -> tuple[str, str]:
    squares = g.reduce("ReduceMean", g("Mul", x, x), [-1], keepdim=True)
    rstd = g("Reciprocal", g("Sqrt", g("Add", squares, g.scalar(epsilon, x.dtype))))
    y = g("Mul", x, rstd)
    return (y if scale is None else g("Mul", y, scale)), rstd


@export("rms_norm_scale_grad")
def rms_norm_scale_grad(g: Graph, x: Value, rstd: Value, dy: Value) -> str:
    return g.reduce("ReduceSum", g("Mul", g("Mul", dy, x), rstd), list(range(x.rank - 1)))


@export("rms_norm_grad")
def rms_norm_grad(g: Graph, x: Value, rstd: Value, dy: Value, scale: Value | None = None) -> str:
    """Return ``rstd * (g - x * rstd**2 * mean(g * x))`` with ``g = dy * scale``."""
    arriving = dy.name if scale is None else g("Mul", dy, scale)
    along = g.reduce("ReduceMean", g("Mul", arriving, x), [-1], keepdim=True)
    return g("Mul", rstd, g("Sub", arriving, g("Mul", x, g("Mul", g("Mul", rstd, rstd), along))))
