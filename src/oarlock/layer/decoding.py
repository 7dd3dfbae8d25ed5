"""Beam search: find the most likely sequences of a step network, with a while loop inside the program.

def step(word, state):                              # word: int64[3*n], state: float[3*n 64]: a row for each hypothesis
    after = ol.layer.fc(ol.layer.concat([ol.layer.embedding(word, (20, 16)), state], axis=1), 64, act="tanh")
    return ol.layer.log_softmax(ol.layer.fc(after, 20)), after

words, scores = ol.layer.beam_search(step, start, beam_size=3, begin=0, end=1, max_length=30)     # start: float[n 64]

The program contains ordinary ops around a `while` op, which records back-pointers, and a `recurrent` op, which follows them from the end. A
decoder is therefore saved, loaded and run like any other program.
"""

import math
from collections.abc import Callable, Sequence

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.block_stack import current_block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.size import Size, format_shape
from oarlock.ir.var import Var
from oarlock.layer.control.rnn import Recurrence
from oarlock.layer.control.while_loop import WhileLoop
from oarlock.op.comparison import equal, greater, less
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.creation import full, full_batch_size_like, full_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, floor_divide, multiply, remainder
from oarlock.op.indexing import arange_like, gather, merge, nonzero
from oarlock.op.logical import any_, logical_and, logical_not, logical_or
from oarlock.op.manipulation import concat, reshape, transpose
from oarlock.op.selection import one_hot, top_k
from oarlock.op.unary import log
from oarlock.registry.creator import describe_value, require_type
from oarlock.registry.range_check import require_count

__all__ = ["beam_search"]


def beam_search(
    step: Callable[..., Var | Sequence[Var]], states: Var | Sequence[Var], *, beam_size: int, begin: int, end: int, max_length: int
) -> tuple[Var, Var]:
    """Return the `beam_size` most likely sequences of each row, best first, and their scores: int64[n beam_size length], float[n
    beam_size].

    `step(token, *states)` is called once, to write one step of the search. It receives the last token of every hypothesis, int64[m] with m
    = n * `beam_size`, and the states of the hypotheses, T[m *d]; it returns the log-probabilities of the next token, float[m v], and the
    next states. A state that it returns unchanged is constant. `states`, one or several T[n *d], are the initial states; every input that
    has a row for each of the n sequences must be one of them.

    All hypotheses start with the token `begin`, which is not part of the result. A hypothesis is finished by `end`: it keeps its score, the
    sum of its log-probabilities, and is filled up with `end`. The search ends when all hypotheses are finished, or after `max_length`
    tokens. If fewer than `beam_size` hypotheses exist, the score of the others is minus infinity and their tokens are meaningless.

    Raises ArgumentError, ShapeError or DTypeError for invalid arguments or step results; the program is then unchanged.
    """
    states, length = _require_states(states)
    for value, what in ((beam_size, "beam_size"), (max_length, "max_length")):
        require_count(f"beam_search: {what}", value)
    for value, what in ((begin, "begin"), (end, "end")):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ArgumentError(f"beam_search: {what} is the id of a token, not {value!r:.60}", location=here())
    if not callable(step) or isinstance(step, Var):
        raise ArgumentError(f"beam_search: step is a function that writes a step, not {describe_value(step)}", location=here())
    with undone_on_error(states[0].block.program):
        numbers = reshape(arange_like(states[0]), shape=(length, 1))
        owners = reshape(add(numbers, full(shape=(beam_size,), value=0.0, dtype=DType.INT64)), shape=(-1,))
        states = [gather(state, owners) for state in states]
        firsts = multiply(numbers, constant_like(beam_size, numbers))
        tokens, parents, scores = _search(step, states, owners, firsts, beam_size, begin, end, max_length)
        return _follow(tokens, parents, owners, beam_size), scores


def _search(
    step: Callable[..., Var | Sequence[Var]],
    states: list[Var],
    owners: Var,
    firsts: Var,
    beam_size: int,
    begin: int,
    end: int,
    max_length: int,
) -> tuple[Var, Var, Var]:
    """Write the loop; return the tokens, int64[trips n k], their parent hypotheses, int64[trips n*k], and the scores, float[n k].

    `owners`, int64[n*k], is the row of each hypothesis; `firsts`, int64[n 1], is the first hypothesis of each row.
    """
    around = current_block()
    last = full_like(owners, value=begin, dtype=DType.INT64)
    finished = full_like(owners, value=0.0, dtype=DType.BOOL)
    trips = full(shape=(), value=0.0, dtype=DType.INT64)
    loop = WhileLoop(less(trips, constant_like(max_length, trips)))
    with loop.block():
        logs, following = _call_step(step, last, states)
        size: int = logs.shape[-1]  # type: ignore[index, assignment]
        if end >= size:
            raise ArgumentError(f"beam_search: end is {end}, but step returns {size} tokens, numbered from 0", location=here())
        with around:
            # Initially only the first hypothesis of each row counts: the others would be duplicates.
            first = [full_batch_size_like(firsts, shape=(1,), value=0.0, dtype=logs.dtype)]
            others = [full_batch_size_like(firsts, shape=(beam_size - 1,), value=-math.inf, dtype=logs.dtype)] if beam_size > 1 else []
            scores = concat(first + others, axis=1)
        continued = _extend_finished(logs, finished, end)
        totals = add(reshape(continued, shape=(-1, beam_size, size)), reshape(scores, shape=(-1, beam_size, 1)))
        best, places = top_k(reshape(totals, shape=(-1, beam_size * size)), k=beam_size)
        columns = constant_like(size, places)
        token = remainder(places, columns)
        parent = reshape(add(floor_divide(places, columns), firsts), shape=(-1,))
        flat = reshape(token, shape=(-1,))
        now_finished = logical_or(gather(finished, parent), equal(flat, constant_like(end, flat)))
        exists = reshape(greater(best, constant_like(-math.inf, best)), shape=(-1,))
        trip = add(trips, constant_like(1, trips))
        unfinished = any_(logical_and(exists, logical_not(now_finished)))
        loop.update_condition(logical_and(unfinished, less(trip, constant_like(max_length, trip))))
        loop.carry(scores, best)
        loop.carry(last, flat)
        loop.carry(finished, now_finished)
        loop.carry(trips, trip)
        for state, after in zip(states, following, strict=True):
            if after is not state:
                loop.carry(state, gather(after, parent))
        loop.output(token, parent)
    found: tuple[Var, ...] = loop()  # type: ignore[assignment]
    return found[-2], found[-1], found[0]


def _extend_finished(logs: Var, finished: Var, end: int) -> Var:
    """Return `logs`, float[m v], with 0 for `end` and minus infinity for all other tokens of finished hypotheses."""
    only_end = log(one_hot(full(shape=(1,), value=end, dtype=DType.INT64), depth=logs.shape[-1]))  # type: ignore[index]
    if only_end.dtype is not logs.dtype:
        only_end = cast(only_end, dtype=logs.dtype)
    same = full_like(nonzero(finished), value=0.0, dtype=DType.INT64)
    return merge(finished, gather(only_end, same), gather(logs, nonzero(finished, value=False)))


def _follow(tokens: Var, parents: Var, owners: Var, beam_size: int) -> Var:
    """Return the tokens of each final hypothesis, first to last: int64[trips n k], int64[trips n*k] -> int64[n k trips]."""
    back = Recurrence(reverse=True)
    last = arange_like(owners)
    with back.step():
        token, parent = back.step_input(tokens), back.step_input(parents)
        place = back.memory(init=last)
        here_now = back.previous_memory(place)
        back.output(reshape(gather(reshape(token, shape=(-1,)), here_now), shape=(-1, beam_size)))
        back.update_memory(place, gather(parent, here_now))
    return transpose(back(), axes=(1, 2, 0))  # type: ignore[arg-type]


def _require_states(states: object) -> tuple[list[Var], Size]:
    """Return the states as a list, and their number of rows. Raises ArgumentError or ShapeError."""
    given = list(states) if isinstance(states, list | tuple) else [states]
    several = [require_type(state, "beam_search: states") for state in given]
    if not several:
        raise ArgumentError(
            "beam_search: there are no states, so the number of rows is unknown",
            location=here(),
            hint="pass states=start, a variable with a row for each sequence",
        )
    for state in several:
        if not state.shape or state.shape[:1] != (several[0].shape or ())[:1]:
            raise ShapeError(
                f'beam_search: state "{state.name}" is {state.type_text}, which does not have a row for each sequence',
                location=here(),
                contract="states have a row for each of the n sequences: T[n *d]",
                given=[item.describe() for item in dict.fromkeys((several[0], state))],
            )
    return several, several[0].shape[0]  # type: ignore[index]


def _call_step(step: Callable[..., Var | Sequence[Var]], last: Var, states: list[Var]) -> tuple[Var, list[Var]]:
    """Call `step`; return the log-probabilities and the next states. Raises ArgumentError or ShapeError."""
    returned = step(last, *states)
    values = list(returned) if isinstance(returned, list | tuple) else [returned]
    if len(values) != 1 + len(states):
        raise ArgumentError(
            f"beam_search: step returns {len(values)} value{'' if len(values) == 1 else 's'}, but must return log-probabilities and "
            f"{len(states)} state{'' if len(states) == 1 else 's'}",
            location=here(),
            hint="return ol.layer.log_softmax(logits), state",
        )
    logs, *following = (require_type(value, "beam_search: a result of step") for value in values)
    shape = logs.shape or ()
    if not logs.dtype.is_floating or len(shape) != 2 or shape[0] != last.shape[0] or not isinstance(shape[1], int):  # type: ignore[index]
        wanted = format_shape((*(last.shape or ()), "v"))
        raise ShapeError(
            f'beam_search: step returns "{logs.name}" as {logs.type_text}, but log-probabilities are float{wanted}',
            location=here(),
            contract="a row for each hypothesis, a column for each token",
            given=[logs.describe()],
        )
    for state, after in zip(states, following, strict=True):
        if (after.dtype, after.shape) != (state.dtype, state.shape):
            raise ShapeError(
                f"beam_search: a state is {state.type_text} before the step but {after.type_text} after it",
                location=here(),
                given=[state.describe(), after.describe()],
            )
    return logs, following
