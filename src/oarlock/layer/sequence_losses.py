"""Losses of sequences of any lengths, ragged or padded, and the best labels of one: CTC, and linear-chain conditional random fields."""

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
    """Sequences as their elements one after another, [t ...d], and the splits that cut them, [n+1]; where padded rows have them, [t]."""

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
    """How unlikely sequences of labels are, over all alignments with longer sequences of predictions (Graves et al., 2006).

    `log_p`, logarithms of probabilities of k classes such as `log_softmax` gives, is ragged, float[t k], or padded, float[n w k], with its
    `lengths`, int64[n], all w where that is None; `label` is ragged, int64[l], or padded, int64[n s], with its `label_lengths`. Where
    no alignment fits, the loss is infinite, or 0 with `zero_infinity`; its gradient is 0. A mean is of the losses by their
    numbers of labels, as PyTorch has it. Raises ShapeError, ArgumentError, and what `ol.op.ctc_loss` raises.

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
    """The negative log likelihood of each sequence of labels under a linear-chain conditional random field: float[n].

    `emissions`, a score of each label for each element, are ragged, float[t k], beside labels int64[t] of the same cut, such as
    `ol.layer.data(..., batch="words.t")`, or padded, float[n w k] beside int64[n w], with their `lengths`, int64[n], all w where
    that is None (Lafferty, McCallum and Pereira, 2001). Parameters `<name>.transitions` [k, k], from a label to the next,
    `<name>.start` [k] and `<name>.end` [k], uniform within ±0.1 unless `initializer` says otherwise; `weight` takes `ParameterOptions` for
    all; `crf_decode` of the same name takes them too. Raises ShapeError or ArgumentError.

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
    """The best labels of each sequence by the parameters of the `crf` of that name, and their score, float[n] (Viterbi, 1967).

    Ragged emissions, float[t k], give labels int64[t]; padded ones, float[n w k], int64[n w], with 0 behind each sequence.

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


def _whole(lengths: Var, what: str) -> Var:
    """Lengths as int64. Raises DTypeError for what are no integers."""
    lengths = require_type(lengths, f"{what}: lengths")
    if not lengths.dtype.is_integer:
        raise DTypeError(f"{what}: lengths are integers, not {lengths.dtype}", location=here(), given=[lengths.describe()])
    return lengths if lengths.dtype is DType.INT64 else cast(lengths, dtype=DType.INT64)


def _elements(x: Var, lengths: Var | None, rank: int, what: str) -> _Elements:
    """The sequences of ``x``, ragged of that rank or padded of one more. Raises ShapeError; ArgumentError for ragged ones with lengths."""
    shape = x.shape or ()
    splits = block_for([x], what).splits_of(shape[0]) if shape else None
    if splits is not None:
        if lengths is not None:
            raise ArgumentError(f"{what} is ragged, and has its lengths", location=here(), given=[x.describe(), lengths.describe()])
        if len(shape) == rank:
            return _Elements(x, splits, None)
    elif len(shape) == rank + 1:
        counts = broadcast_to(size(x, axis=1), [x], shape=shape[:1]) if lengths is None else _whole(lengths, what)
        inside = less(arange([x], stop=shape[1:2]), unsqueeze(counts, 1))
        places = nonzero(reshape(inside, shape=(-1,)))
        values = gather(reshape(x, shape=(-1, *shape[2:])), places)
        return _Elements(values, pad(cumsum(counts, axis=0), before=(1,), after=(0,)), places)
    raise ShapeError(
        f'{what}: "{x.name}" is no sequences',
        location=here(),
        contract=f"ragged of {rank} dimension{'s' if rank > 1 else ''}, the first cut by row splits, or padded rows of {rank + 1}",
        given=[x.describe()],
    )
