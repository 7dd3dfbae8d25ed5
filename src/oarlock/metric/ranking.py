"""Ranking metrics: area under the ROC curve, from histograms of the scores."""

from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.metric.state import measuring
from oarlock.op.comparison import equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.cumulative import cumsum
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import divide, multiply, subtract
from oarlock.op.manipulation import split
from oarlock.op.measurement import contingency_table
from oarlock.op.reduction import reduce_sum
from oarlock.op.rounding import floor
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["auc"]


def auc(predict: Var, label: Var, *, bins: int = 1000, ignore_index: int = -100, name: str | None = None) -> Var:
    """Return the area under the ROC curve of scores for the classes 0 and 1: float[...s], int64[...s] -> float64[].

    It is the probability that a row of class 1 has a higher score than a row of class 0; ties count half. Scores must be in [0, 1], such as
    probabilities, and are counted in `bins` bins of equal width; scores in the same bin count as ties. It equals scikit-learn's
    `roc_auc_score` if different scores never share a bin; otherwise it differs by at most half the fraction of pairs that do. NaN until
    there are rows of both classes. Labels equal to `ignore_index` are not counted; a score outside [0, 1], or a label other than 0 and 1,
    makes the run raise KernelError. State `<name>.counts` int64[2 bins].
    """
    require_count("metric.auc: bins", bins, least=2)
    predict, label = require_type(predict, "metric.auc: predict"), require_type(label, "metric.auc: label")
    with measuring("auc", name, predict, label) as state:
        score = cast(predict, dtype=DType.FLOAT64)
        last = cast(equal(score, constant_like(1.0, score)), dtype=DType.FLOAT64)  # 1 belongs to the last bin
        part = cast(subtract(floor(multiply(score, constant_like(float(bins), score))), last), dtype=DType.INT64)
        counts = state.add("counts", contingency_table(label, part, rows=2, columns=bins, ignore_index=ignore_index))
        negative, positive = split(cast(counts, dtype=DType.FLOAT64), sections=2, axis=0)
        below = subtract(cumsum(negative, axis=1), multiply(negative, constant_like(0.5, negative)))
        return state.out(divide(reduce_sum(multiply(positive, below)), multiply(reduce_sum(positive), reduce_sum(negative))))
