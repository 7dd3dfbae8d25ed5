"""Sequence metrics: edit distance, and precision, recall and F1 of chunks."""

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
    """Return the edits that turn hypotheses into references, divided by the reference elements: int64[t], int64[u] -> float64[].

    Both are ragged, with the same number of sequences. An edit inserts, deletes or replaces one element; for words, this is the word error
    rate. Edits and elements are summed over all batches. The result may exceed 1; it is infinite if all references are empty and some
    hypothesis is not, and NaN without elements. With `normalized=False` it is the mean number of edits per sequence. State
    `<name>.distance`, `<name>.count` int64[]. Raises ArgumentError if an input is not ragged.
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
    """Return the F1 of `chunk_scores`: float64[]."""
    return _chunks("chunk_f1", predict, label, types, scheme, name)[2]


def chunk_scores(predict: Var, label: Var, types: int, *, scheme: str = "IOB", name: str | None = None) -> tuple[Var, Var, Var]:
    """Return precision, recall and F1 of the chunks encoded by ragged tags: int64[t], int64[t] -> float64[], float64[], float64[].

    A chunk is correct if `predict` and `label` both have a chunk of its type with the same first and last tag. Precision is the fraction of
    chunks of `predict` that are correct, recall that of chunks of `label`, over all batches; each is 0 if there are no chunks (Tjong Kim
    Sang and Buchholz, 2000). `scheme` is "IOB", "IOE", "IOBES" or "plain" and determines the tags of the `types` of chunks, listed in
    `ol.op.chunk_counts`. State `<name>.counts` int64[3]: chunks of `predict`, of `label`, and of both. Raises ArgumentError if an input is
    not ragged.
    """
    return _chunks("chunk_scores", predict, label, types, scheme, name)


def _chunks(kind: str, predict: Var, label: Var, types: int, scheme: str, name: str | None) -> tuple[Var, Var, Var]:
    predict, label = require_type(predict, f"metric.{kind}: predict"), require_type(label, f"metric.{kind}: label")
    splits = splits_of(label, f"metric.{kind}: label")
    with measuring(kind, name, predict, label) as state:
        counts = cast(
            state.add("counts", measurement.chunk_counts(predict, label, splits, types=types, scheme=scheme)), dtype=DType.FLOAT64
        )
        predicted, true, both = (reshape(count, shape=()) for count in split(counts, sections=3, axis=0))
        scores = ratio(both, predicted), ratio(both, true), ratio(add(both, both), add(predicted, true))
        return scores[0], scores[1], state.out(scores[2])
