"""Branches: `ol.ifelse` by rows, `ol.switch`, `ol.cond` and `ol.case` by scalars."""

from collections.abc import Callable, Sequence

import oarlock as ol
from generated.blocks import alike, construct, fill, shadow
from generated.statements import forbidden
from generated.writing import LIMIT, Writing
from oarlock.ir.block import Block
from oarlock.ir.block_stack import current_block

__all__ = ["if_else", "switch"]


@construct(10)
def if_else(w: Writing) -> None:
    """Rows by a condition that is mixed, or holds everywhere, or nowhere; roots and logarithms only where they are defined."""
    first = w.value(lambda var: w.has_rows(var.shape), w.of_shape("n", w.width))
    length = first.shape[0]
    rows = [first, *(w.value(lambda var: w.has_rows(var.shape) and var.shape[0] == length, first) for _ in range(w.choices.below(2)))]
    score = first
    while len(score.shape) > 1:
        score = ol.op.reduce_sum(score, axis=-1)
    kind = w.choices.pick(("mixed", "mixed", "mixed", "all true", "all false", "all true", "all false"))
    score = w.keep(score if kind == "mixed" else ol.op.square(score), 2 * LIMIT) if score is not first else score
    poison = None
    if kind == "mixed" and w.may_be_fed((length,)) and isinstance(length, str) and w.choices.chance(40):
        score, poison = w.guarded(length, w.choices.pick((float("nan"), -1.0, 0.0)))
        w.features.add("if_else: poisoned input")
    condition = ol.op.greater(score, w.number({"mixed": 0.0719, "all true": -100.0, "all false": 100.0}[kind]))
    if length != 0 and w.choices.chance(30):
        condition = ol.op.reshape(condition, shape=(length, 1))
    w.features |= {f"if_else: {kind}", f"if_else: {w.count(length)} rows"}
    ie = ol.ifelse()
    blocks = []
    for holds in (True, False):
        with w.inside("if_else", length), ie.true_block() if holds else ie.false_block():
            blocks.append(current_block())
            given = _given(w, ie, rows, holds=holds)
            if holds and poison is not None:
                _read_poison(w, poison)
            elif holds and kind == "mixed" and isinstance(length, str):
                _poison(w, score)
            fill(w)
            ie.output(*alike(w, given))
    results = ie(condition)
    for var in results if isinstance(results, tuple) else [results]:
        w.keep(var, LIMIT)
    for block in blocks:
        shadow(w, block)


def _given(w: Writing, ie: object, rows: Sequence[ol.Var], *, holds: bool) -> list[ol.Var]:
    """The values in the block that its outputs resemble: `rows` as they are seen in it."""
    if isinstance(rows[0].shape[0], str):
        if w.choices.chance(15):
            w.keep(ie.whole(rows[-1]), LIMIT)  # type: ignore[attr-defined]
            w.features.add("if_else: whole")
        return list(rows)
    w.features.add("if_else: rows of a number")
    return [w.keep(ie.input(var), LIMIT) for var in rows]  # type: ignore[attr-defined]


def _poison(w: Writing, score: ol.Var) -> None:
    """Write a value that is NaN for the rows that do not take this block; it must not be seen in the gradients."""
    name = w.choices.pick(("none", "sqrt", "log"))
    if name != "none":
        w.keep(getattr(ol.op, name)(score), 3.0)
        w.features.add("if_else: poison")


def _read_poison(w: Writing, poison: ol.Var) -> None:
    """Read in this block what is NaN, negative or zero only for the rows that take the other one."""
    name = w.choices.pick(("sqrt", "log", "divide", "multiply"))
    y = getattr(ol.op, name)(w.number(0.7), poison) if name in ("divide", "multiply") else getattr(ol.op, name)(poison)
    w.keep(y, 1.5)


@construct(10)
def switch(w: Writing) -> None:
    """Conditions that are values or blocks themselves, and spellings of the same thing."""
    wanted = [w.value(lambda var: len(var.shape) <= 2, (w.width,)) for _ in range(1 + w.choices.below(2))]
    spelling = w.choices.pick(("switch", "switch", "cond", "case"))
    blocks: list[Block] = []
    w.features.add(f"switch: {spelling}")

    def write(runs: bool = True) -> list[ol.Var]:
        blocks.append(current_block())
        with w.where(runs):
            fill(w)
            return alike(w, wanted)

    with w.inside("switch"):
        if spelling == "cond":
            kind = _kind(w)
            results = ol.cond(_condition(w, kind), lambda: write(kind != "false"), lambda: write(kind != "true"))
        elif spelling == "case":
            results = ol.case([(_condition(w, _kind(w)), write) for _ in range(1 + w.choices.below(2))], write)
        else:
            results = _switch(w, write)
    for var in results if isinstance(results, tuple) else [results]:
        w.keep(var, LIMIT)
    for block in blocks:
        shadow(w, block)


def _switch(w: Writing, write):
    choice = ol.switch()
    open = True  # whether, for all that is known, no case was chosen yet
    for _ in range(1 + w.choices.below(3)):
        late, kind = w.choices.chance(40), _kind(w)
        w.features |= {"switch: condition in a block"} if late else set()
        with choice.case(_in_block(w, kind, open) if late else _condition(w, kind)):
            choice.output(*write(open and kind != "false"))
        open = open and kind != "true"
    with choice.default():
        choice.output(*write(open))
    return choice()


def _in_block(w: Writing, kind: str, runs: bool) -> Callable[[], ol.Var]:
    """A condition that is a block, which never runs where an earlier case is chosen whatever the data."""

    def write() -> ol.Var:
        with w.where(runs):
            if not w.runs:
                forbidden(w)
            return _condition(w, kind)

    return write


def _kind(w: Writing) -> str:
    kind = w.choices.pick(("by data", "by data", "true", "false"))
    w.features.add(f"switch: {kind}")
    return kind


def _condition(w: Writing, kind: str) -> ol.Var:
    """bool[], that data decide; that holds, or does not, whatever the data."""
    limit = {"by data": 0.0537, "true": -100.0, "false": 100.0}[kind]
    return ol.op.greater(w.scalar(), w.number(limit))
