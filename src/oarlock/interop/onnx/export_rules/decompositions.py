"""Matrix decompositions and lattice sums. ONNX only has the determinant."""

from oarlock.interop.onnx.export_graph import Graph, Unsupported, Value
from oarlock.interop.onnx.export_rule import export


@export("det")
def det(g: Graph, x: Value) -> str:
    return g("Det", x)


@export("inverse", "solve_columns", "solve_triangular_columns", "cholesky", "slogdet", "cofactors")
def linear_systems(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX has no operator for systems of linear equations")


@export("qr", "svd", "eigh", "lu", "pinv", "matrix_exp")
def decompositions(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX has no operator for decompositions of matrices")


@export("ctc_loss", "ctc_occupancy_change", "crf_log_partition", "crf_share_changes", "viterbi_decode")
def lattices(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX has no operator for sums over sequences of labels")


@export("power_iteration")
def power_iteration(g: Graph, x: Value, u: Value, *, iterations: int, epsilon: float) -> tuple[str, str]:
    """Return the vectors of inference: ``u`` is unchanged, and ``v`` is normalized."""

    def unit(vector: str) -> str:
        length = g.reduce("ReduceL2", vector, None, keepdim=True)
        return g("Div", vector, g("Max", length, g.scalar(epsilon, x.dtype)))

    return g("Identity", u), unit(g("MatMul", unit(u.name), x))
