"""Operators that compute rows alone though their signatures do not say so, and which of their inputs all rows share."""

from oarlock.passes.rows import BY_FIRST_AXIS
from oarlock.registry.declaration import Operator
from oarlock.registry.gradient import parameter_source

__all__ = ["EXPANSIONS", "SEQUENCES", "shares_rows"]

_FIRST = BY_FIRST_AXIS - {"batch_norm", "cast", "dropout"}

SEQUENCES: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            *("sequence_lengths", "sequence_sum", "sequence_expand", "sequence_mean", "sequence_max", "sequence_first", "sequence_last"),
            *("sequence_softmax", "edit_distance", "ctc_loss", "ctc_occupancy_change"),
        ),
        frozenset(),
    ),
    **dict.fromkeys(("crf_log_partition", "crf_share_changes", "viterbi_decode"), frozenset({"transitions", "start", "end"})),
}
"""Operators on ragged values and their row splits, each sequence alone, with the inputs that all sequences share."""

_SHARED: dict[str, frozenset[str]] = {
    **dict.fromkeys(_FIRST, frozenset({"filter", "bias", "scale"})),
    **dict.fromkeys((f"global_average_pool{dimensions}d" for dimensions in (1, 2, 3)), frozenset()),
    **dict.fromkeys(("unfold", "fold", "grid_sample", "take_places", "rows_by_group", "merge"), frozenset()),
    **SEQUENCES,
}

EXPANSIONS = frozenset({"broadcast_to_like", "expand_by_channel", "full_batch_size_like", "full_like", "mean_dx", "reduce_sum_dx"})
"""Operators that make rows of what has none: every row of their result is the same, or that of the input."""


def shares_rows(operator: Operator) -> dict[str, bool] | None:
    """Of each slot, input or output, whether it has rows, each computed alone; None of operators that are not listed here.

    The gradient with respect to an input that has rows has them too, each from the same row of what it reads; with respect to one that
    all rows share it is the sum of what each row adds.
    """
    forward = operator.forward
    signature = operator.signature
    if forward is None:
        shared = _SHARED.get(operator.type)
        return None if shared is None else {slot.name: slot.name not in shared for slot in (*signature.inputs, *signature.outputs)}
    rows = shares_rows(forward)
    if rows is None:
        return None
    found: dict[str, bool] = {}
    for slot in signature.inputs:
        source = parameter_source(forward.signature, slot.name)
        found[slot.name] = source is not None and rows[source[1].name]
    return found | dict.fromkeys((slot.name for slot in signature.outputs), rows[operator.wrt or ""])
