"""How near ragged sequences come to others: the edits between them, and the chunks that sequences of tags have in common."""

from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.layer.sequences import splits_of
from oarlock.metric.means import add_up
from oarlock.metric.state import measuring, ratio
from oarlock.op import measurement
from oarlock.op.creation import numel
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, divide
from oarlock.op.manipulation import reshape, split
from oarlock.registry.creator import require_type

__all__ = ["chunk_f1", "chunk_scores", "edit_distance"]


def edit_distance(hypothesis: Var, reference: Var, *, normalized: bool = True, name: str | None = None) -> Var:
    """The edits that make the hypotheses their references, by the elements of the references: int64[t], int64[u] -> float64[].

    Both are ragged, with as many sequences. An edit inserts, deletes or replaces one element; of words, this is the word error rate. It is
    taken over all sequences of all batches together. It may be above 1, and is infinite where all references are empty and some
    hypothesis is not; NaN where there is nothing. With `normalized=False` it is the mean number of edits of a sequence.
    State `<name>.distance`, `<name>.count` int64[]. Raises ArgumentError for what is not ragged.
    """
    hypothesis = require_type(hypothesis, "metric.edit_distance: hypothesis")
    reference = require_type(reference, "metric.edit_distance: reference")
    splits = [splits_of(hypothesis, "metric.edit_distance: hypothesis"), splits_of(reference, "metric.edit_distance: reference")]
    with measuring("edit_distance", name, hypothesis, reference) as state:
        distance = measurement.edit_distance(hypothesis, splits[0], reference, splits[1])
        total = add_up(state, "distance", distance)
        count = state.add("count", numel(reference if normalized else distance, dtype=DType.INT64))
        return state.out(divide(cast(total, dtype=DType.FLOAT64), cast(count, dtype=DType.FLOAT64)))


def chunk_f1(predict: Var, label: Var, types: int, *, scheme: str = "IOB", name: str | None = None) -> Var:
    """The F1 of `chunk_scores`: float64[]."""
    return _chunks("chunk_f1", predict, label, types, scheme, name)[2]


def chunk_scores(predict: Var, label: Var, types: int, *, scheme: str = "IOB", name: str | None = None) -> tuple[Var, Var, Var]:
    """Precision, recall and F1 of the chunks that ragged tags stand for: int64[t], int64[t] -> float64[], float64[], float64[].

    A chunk is found where both have one of a type with the same first and the same last tag. The precision is the share of the chunks of
    `predict` that are found, the recall the share of those of `label`, each 0 where there are none, over all batches (Tjong Kim Sang and
    Buchholz, 2000). `scheme` is "IOB", "IOE", "IOBES" or "plain", and says which tags the `types` of chunks have: `ol.op.chunk_counts`
    lists them. State `<name>.counts` int64[3]: chunks of `predict`, of `label`, and of both. Raises ArgumentError for what is not ragged.
    """
    return _chunks("chunk_scores", predict, label, types, scheme, name)


def _chunks(kind: str, predict: Var, label: Var, types: int, scheme: str, name: str | None) -> tuple[Var, Var, Var]:
    predict, label = require_type(predict, f"metric.{kind}: predict"), require_type(label, f"metric.{kind}: label")
    splits = splits_of(label, f"metric.{kind}: label")
    with measuring(kind, name, predict, label) as state:
        counts = cast(
            state.add("counts", measurement.chunk_counts(predict, label, splits, types=types, scheme=scheme)), dtype=DType.FLOAT64
        )
        told, true, both = (reshape(count, shape=()) for count in split(counts, sections=3, axis=0))
        scores = ratio(both, told), ratio(both, true), ratio(add(both, both), add(told, true))
        return scores[0], scores[1], state.out(scores[2])
