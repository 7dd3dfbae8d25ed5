"""Losses of ragged or padded sequences: CTC, and linear-chain conditional random fields with decoding."""

from typing import NamedTuple

from oarlock.errors import ArgumentError, DTypeError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.initializer import Rule, uniform
from oarlock.layer.parameter import layer_name, new_parameter, output_name, require_number
from oarlock.layer.parameter_options import Given, require_unnamed
from oarlock.op import crf as operators
from oarlock.op import ctc
from oarlock.op.choice import maximum, where
from oarlock.op.comparison import less
from oarlock.op.composed.crf import crf_loss
from oarlock.op.composed.loss_reduction import reduced, require_reduction
from oarlock.op.composed.shape import unsqueeze
from oarlock.op.cumulative import cumsum
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import divide
from oarlock.op.indexing import gather, nonzero, scatter_add
from oarlock.op.manipulation import reshape
from oarlock.op.padding import pad
from oarlock.op.rounding import isinf
from oarlock.op.sequence import sequence_lengths
from oarlock.op.told_shape import arange, broadcast_to, size, view
from oarlock.registry.creator import block_for, require_type

__all__ = ["crf", "crf_decode", "ctc_loss"]


class _Elements(NamedTuple):
    """Sequences: their concatenated elements, [t ...d], row splits, [n+1], and for padded rows the positions of the elements, [t]."""

    values: Var
    splits: Var
    places: Var | None


def ctc_loss(
    log_p: Var,
    label: Var,
    *,
    lengths: Var | None = None,
    label_lengths: Var | None = None,
    blank: int = 0,
    zero_infinity: bool = False,
    reduction: str = "mean",
) -> Var:
    """Return the connectionist temporal classification loss, summed over all alignments (Graves et al., 2006).

    `log_p`, the log-probabilities of k classes from `log_softmax`, is ragged, float[t k], or padded, float[n w k], with `lengths`,
    int64[n], by default all w. `label` is ragged, int64[l], or padded, int64[n s], with `label_lengths`. If no alignment fits, the loss is
    infinite, or 0 with `zero_infinity`, and its gradient is 0. The reduction "mean" first divides each loss by its number of labels, as in
    PyTorch. Raises ShapeError, ArgumentError, and the errors of `ol.op.ctc_loss`.

        cost = ol.layer.ctc_loss(ol.layer.log_softmax(memory), ids)
    """
    require_reduction(reduction)
    log_p, label = require_type(log_p, "ctc_loss: log_p"), require_type(label, "ctc_loss: label")
    with undone_on_error(log_p.block.program):
        steps, labels = _elements(log_p, lengths, 2, "ctc_loss: log_p"), _elements(label, label_lengths, 1, "ctc_loss: label")
        loss = ctc.ctc_loss(steps.values, steps.splits, labels.values, labels.splits, blank=blank)
        if zero_infinity:
            loss = where(isinf(loss), 0.0, loss)
        if reduction == "mean":
            loss = divide(loss, cast(maximum(sequence_lengths(labels.splits), 1), dtype=loss.dtype))
        return reduced(loss, reduction)


def crf(
    emissions: Var,
    label: Var,
    *,
    lengths: Var | None = None,
    initializer: Rule | None = None,
    weight: Given | None = None,
    name: str | None = None,
) -> Var:
    """Return the negative log-likelihood of each label sequence under a linear-chain conditional random field: float[n].

    `emissions`, the score of each label at each element, are ragged, float[t k], with labels int64[t] of the same row splits, such as
    `ol.layer.data(..., batch="words.t")`; or padded, float[n w k], with labels int64[n w] and `lengths`, int64[n], by default all w
    (Lafferty, McCallum and Pereira, 2001). Parameters are `<name>.transitions` [k, k], from a label to the next, `<name>.start` [k] and
    `<name>.end` [k], uniform within ±0.1 by default (see `initializer`); `weight` accepts `ParameterOptions` for all. A `crf_decode` of the
    same name shares them. Raises ShapeError or ArgumentError.

        y = ol.layer.crf(vectors, ids)
    """
    emissions, label = require_type(emissions, "crf: emissions"), require_type(label, "crf: label")
    program = emissions.block.program
    with undone_on_error(program):
        name = layer_name(program, name, "crf")
        steps = _elements(emissions, lengths, 2, "crf: emissions")
        labels = label if steps.places is None else gather(reshape(label, shape=(-1,)), steps.places)
        weights = _weights(emissions, initializer, weight, name, "crf")
        result = output_name(program, name)
        loss = crf_loss(steps.values, steps.splits, labels, *weights)
    loss.block.rename(loss, result)
    return loss


def crf_decode(
    emissions: Var,
    *,
    lengths: Var | None = None,
    initializer: Rule | None = None,
    weight: Given | None = None,
    name: str | None = None,
) -> tuple[Var, Var]:
    """Return the most likely labels of each sequence, and their score, float[n], under the `crf` of the same name (Viterbi, 1967).

    Ragged emissions, float[t k], yield labels int64[t]; padded ones, float[n w k], yield int64[n w], with 0 after the end of each sequence.

        best, score = ol.layer.crf_decode(vectors)
    """
    emissions = require_type(emissions, "crf_decode: emissions")
    program = emissions.block.program
    with undone_on_error(program):
        name = layer_name(program, name, "crf")
        steps = _elements(emissions, lengths, 2, "crf_decode: emissions")
        best, score = operators.viterbi_decode(steps.values, steps.splits, *_weights(emissions, initializer, weight, name, "crf_decode"))
        if steps.places is None:
            return best, score
        n, w = emissions.shape[:2]  # type: ignore[index]
        cells = reshape(broadcast_to(size(emissions, axis=0), [emissions], shape=(n, w)), shape=(-1,))
        return view(scatter_add(best, steps.places, cells), [emissions], shape=(n, w)), score


def _weights(emissions: Var, rule: Rule | None, given: Given | None, name: str, what: str) -> tuple[Var, Var, Var]:
    require_unnamed(what, given)
    k, block = require_number(emissions.shape, -1, what, emissions), block_for([emissions], what)
    shapes = {"transitions": (k, k), "start": (k,), "end": (k,)}
    transitions, start, end = (
        new_parameter(block, f"{name}.{part}", shape, emissions.dtype, rule or uniform(-0.1, 0.1), given) for part, shape in shapes.items()
    )
    return transitions, start, end


def _as_int64(lengths: Var, what: str) -> Var:
    """Return lengths as int64. Raises DTypeError if they are not integers."""
    lengths = require_type(lengths, f"{what}: lengths")
    if not lengths.dtype.is_integer:
        raise DTypeError(f"{what}: lengths must be integers, not {lengths.dtype}", location=here(), given=[lengths.describe()])
    return lengths if lengths.dtype is DType.INT64 else cast(lengths, dtype=DType.INT64)


def _elements(x: Var, lengths: Var | None, rank: int, what: str) -> _Elements:
    """Return the sequences of ``x``, ragged of that rank or padded of one more. Raises ShapeError; ArgumentError for lengths of a ragged
    ``x``.
    """
    shape = x.shape or ()
    splits = block_for([x], what).splits_of(shape[0]) if shape else None
    if splits is not None:
        if lengths is not None:
            raise ArgumentError(f"{what} is ragged and already has lengths", location=here(), given=[x.describe(), lengths.describe()])
        if len(shape) == rank:
            return _Elements(x, splits, None)
    elif len(shape) == rank + 1:
        counts = broadcast_to(size(x, axis=1), [x], shape=shape[:1]) if lengths is None else _as_int64(lengths, what)
        inside = less(arange([x], stop=shape[1:2]), unsqueeze(counts, 1))
        places = nonzero(reshape(inside, shape=(-1,)))
        values = gather(reshape(x, shape=(-1, *shape[2:])), places)
        return _Elements(values, pad(cumsum(counts, axis=0), before=(1,), after=(0,)), places)
    raise ShapeError(
        f'{what}: "{x.name}" is not a batch of sequences',
        location=here(),
        contract=f"ragged of {rank} dimension{'s' if rank > 1 else ''}, the first with row splits, or padded of {rank + 1}",
        given=[x.describe()],
    )
