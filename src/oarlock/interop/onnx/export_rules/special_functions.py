"""Special functions, counts and patches: most of them have no words in ONNX."""

from oarlock.interop.onnx.export_graph import Graph, Unsupported, Value
from oarlock.interop.onnx.export_rule import export


@export("erfc")
def erfc(g: Graph, x: Value) -> str:
    """``1 - erf(x)``, which loses the digits of a result that is nearly 0."""
    return g("Sub", g.scalar(1, x.dtype), g("Erf", x))


@export(
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "digamma",
    "erfcx",
    "erfinv",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "lgamma",
    "log_ndtr",
    "ndtri",
    "polygamma",
)
def special_functions(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX has no operator for this function, and no sum of few others is it")


@export("chunk_counts", "contingency_table", "edit_distance")
def counts(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX has no operator that counts labels")


@export("unfold", "unfold_dx", "fold", "fold_dx")
def patches(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX has no operator that takes patches out of images")
