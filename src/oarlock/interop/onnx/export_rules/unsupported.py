"""Operators that ONNX cannot express, and the reasons. Their export is refused with the reason."""

from collections.abc import Sequence

from oarlock.interop.onnx.export_graph import Graph, Unsupported
from oarlock.interop.onnx.export_rule import Rule, export, export_of_complex

__all__: list[str] = []

_OPERATORS: dict[str, Sequence[str]] = {
    "ONNX does not define which of several equal elements is selected": ("kthvalue", "median", "nanmedian", "mode"),
    "ONNX has no operator for cumulative maxima, minima and logsumexp": ("cummax", "cummin", "logcumsumexp"),
    "ONNX has no operator for decompositions of matrices": ("qr", "svd", "eigh", "lu", "pinv", "matrix_exp"),
    "ONNX has no operator for gradients of the gradients of attention": ("attention_changes", "attention_bias_changes"),
    "ONNX has no operator for sums over sequences of labels": (
        *("ctc_loss", "ctc_occupancy_change", "crf_log_partition", "crf_share_changes", "viterbi_decode"),
    ),
    "ONNX has no operator for systems of linear equations": (
        *("inverse", "solve_columns", "solve_triangular_columns", "cholesky", "slogdet", "cofactors"),
    ),
    "ONNX has no operator for the gradients of GridSample": ("grid_sample_dx", "grid_sample_dgrid", "grid_sample_changes"),
    "ONNX has no operator for this function": (
        *("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "digamma", "erfcx", "erfinv", "i0", "i0e", "i1", "i1e"),
        *("k0", "k0e", "k1", "k1e", "lgamma", "log_ndtr", "ndtri", "polygamma"),
    ),
    "ONNX has no operator that counts labels": ("chunk_counts", "contingency_table", "edit_distance"),
    "ONNX has no operator that extracts patches of images": ("unfold", "unfold_dx", "fold", "fold_dx"),
    "ONNX has no operators for common divisors and adjacent floats": ("gcd", "lcm", "nextafter"),
    "ONNX has no operators for exchanges between workers": (
        *("all_gather", "all_reduce", "all_reduce_done", "all_reduce_start", "all_to_all", "broadcast"),
        *("pad_shard", "reduce_scatter", "shard", "worker_index"),
        *("gather_shares", "put_share", "reduce_to_shares", "rows_of_share", "take_share"),
        *("sync_batch_norm", "sync_batch_norm_grad"),
    ),
}
_OPERATORS_ON_COMPLEX_NUMBERS: dict[str, Sequence[str]] = {
    "ONNX has no inverse of a one-sided Fourier transform": ("real_fourier_dx", "real_fourier_inverse", "real_fourier_inverse_dx"),
    "ONNX has no operator for the angle of complex numbers": ("angle", "sgn"),
}


def _refusing(reason: str) -> Rule:
    """Return a rule that raises Unsupported with a reason."""

    def refuse(g: Graph, *_: object, **__: object) -> str:
        raise Unsupported(reason)

    return refuse


for _reason, _types in _OPERATORS.items():
    export(*_types)(_refusing(_reason))
for _reason, _types in _OPERATORS_ON_COMPLEX_NUMBERS.items():
    export_of_complex(*_types)(_refusing(_reason))
