"""Counts that metrics add up over batches: pairs of classes, edits between sequences, chunks in sequences of tags. None has gradients."""

import torch

from oarlock.errors import ArgumentError
from oarlock.ir.shape_rules import require_same
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, Rejects
from oarlock.tensor.sequences import cells_of
from oarlock.tensor.splits import lengths_in, require_cut, require_splits, sequences_in

__all__ = ["chunk_counts", "contingency_table", "edit_distance", "require_scheme"]


@operator(
    "x: int64[...s], y: int64[...s] -> counts: int64[{rows} {columns}]",
    checks_values=True,
    cases=[
        Case(x=[0, 1, 1, 1], y=[1, 0, 0, 2], rows=2, columns=3, counts=[[0, 1, 0], [2, 0, 1]]),
        Case(x=[[-100, 1]], y=[[7, 1]], rows=2, columns=2, counts=[[0, 0], [0, 1]]),
        Case(x=[], y=[], rows=1, columns=2, counts=[[0, 0]]),
        Case(x=0, y=0, rows=2, columns=1, ignore_index=0, counts=[[0], [0]]),
        Rejects("x has the number 2, where those from 0 to 1 are counted", x=[2], y=[0], rows=2, columns=2),
        Rejects("y has the number -1, where those from 0 to 1 are counted", x=[0], y=[-1], rows=2, columns=2),
        Rejects("x has the number 0, where none is counted", x=[0], y=[0], rows=0, columns=1),
    ],
)
def contingency_table(x, y, *, rows: int, columns: int, ignore_index: int = -100):
    """How often each pair of numbers stands at the same place: ``counts[i, j]`` is that of i in ``x`` with j in ``y``.

    Places where ``x`` is ``ignore_index`` are not counted.
    """
    kept = x != ignore_index
    x, y = x[kept], y[kept]
    for name, values, count in (("x", x, rows), ("y", y, columns)):
        wrong = (values < 0) | (values >= count)
        if wrong.any():
            counted = f"those from 0 to {count - 1} are" if count > 0 else "none is"
            raise ValueError(f"{name} has the number {int(values[wrong][0])}, where {counted} counted")
    return torch.bincount(x * columns + y, minlength=rows * columns).reshape(rows, columns)


@operator(
    "hypothesis: int64[t], hypothesis_splits: int64[n+1], reference: int64[u], reference_splits: int64[n+1] -> distance: int64[n]",
    checks_values=True,
    cases=[
        Case(
            hypothesis=[11, 9, 20, 20, 5, 14, 1, 2], hypothesis_splits=[0, 6, 6, 8],
            reference=[19, 9, 20, 20, 9, 14, 7, 3, 2, 1], reference_splits=[0, 7, 8, 10], distance=[3, 1, 2],
        ),
        Case(hypothesis=[1, 2, 3], hypothesis_splits=[0, 3], reference=[], reference_splits=[0, 0], distance=[3]),
        Case(hypothesis=[], hypothesis_splits=[0], reference=[], reference_splits=[0], distance=[]),
        Rejects(
            "row splits of 2 elements begin with 0, never fall and end at 2, unlike [0, 3]",
            hypothesis=[1, 2], hypothesis_splits=[0, 3], reference=[1], reference_splits=[0, 1],
        ),
        Rejects(
            "hypothesis_splits cut 2 sequences, and reference_splits 1",
            hypothesis=[1, 2], hypothesis_splits=[0, 1, 2], reference=[1], reference_splits=[0, 1],
        ),
        Rejects(
            "x has 1 elements, where splits cut 0 sequences", hypothesis=[], hypothesis_splits=[0], reference=[1], reference_splits=[0]
        ),
    ],
)  # fmt: skip
def edit_distance(hypothesis, hypothesis_splits, reference, reference_splits):
    """The least number of insertions, deletions and substitutions that make each hypothesis its reference (Levenshtein, 1966)."""
    require_cut_sides(hypothesis, hypothesis_splits, reference, reference_splits)
    lengths = [lengths_in(hypothesis_splits, len(hypothesis)), lengths_in(reference_splits, len(reference))]
    magnitude = torch.frexp(torch.maximum(*lengths).double()).exponent  # sequences of like lengths are padded together
    distance = torch.zeros_like(lengths[0])
    for size in magnitude.unique().tolist():
        chosen = magnitude == size
        sides = [_padded(x, splits, chosen) for x, splits in ((hypothesis, hypothesis_splits), (reference, reference_splits))]
        distance[chosen] = _distances(*sides, *(length[chosen] for length in lengths))
    return distance


def _padded(x: torch.Tensor, splits: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """The chosen sequences as rows of one length."""
    own, column = cells_of(splits, len(x))
    kept = chosen[own]
    width = int(splits.diff()[chosen].max())
    rows = x.new_zeros(int(chosen.sum()), width)
    rows[(chosen.cumsum(0) - 1)[own[kept]], column[kept]] = x[kept]
    return rows


def _distances(
    hypothesis: torch.Tensor, reference: torch.Tensor, hypothesis_lengths: torch.Tensor, reference_lengths: torch.Tensor
) -> torch.Tensor:
    """The distances of padded rows, by dynamic programming over the hypotheses: all references, and all of their beginnings, at once."""
    place = torch.arange(reference.shape[1] + 1, device=reference.device)
    nearest = place.expand(len(reference), -1)  # of what was read of a hypothesis to the first j of its reference
    for number, element in enumerate(hypothesis.unbind(1)):
        substituted = nearest[:, :-1] + (reference != element[:, None])
        following = torch.cat([nearest[:, :1] + 1, torch.minimum(substituted, nearest[:, 1:] + 1)], 1)
        following = torch.cummin(following - place, 1).values + place  # what is inserted after the best of the shorter beginnings
        nearest = torch.where((hypothesis_lengths > number)[:, None], following, nearest)
    return nearest.gather(1, reference_lengths[:, None]).squeeze(1)


@edit_distance.check_shapes
def require_cut_sides(hypothesis, hypothesis_splits, reference, reference_splits):
    """Raises ShapeError where there are not as many references as hypotheses. The kernel calls it, too."""
    counts = sequences_in(hypothesis_splits), sequences_in(reference_splits)
    require_same(*counts, "hypothesis_splits cut {} sequences, and reference_splits {}", *counts)
    require_cut(hypothesis, hypothesis_splits)
    require_cut(reference, reference_splits)


_BEGIN, _INSIDE, _END, _SINGLE = range(4)
_SCHEMES = {"IOB": (_BEGIN, _INSIDE), "IOE": (_INSIDE, _END), "IOBES": (_BEGIN, _INSIDE, _END, _SINGLE), "plain": (_INSIDE,)}


@operator(
    "hypothesis: int64[t], reference: int64[t], splits: int64[n+1] -> counts: int64[3]",
    checks_values=True,
    cases=[
        Case(hypothesis=[0, 1, 4, 2, 3], reference=[0, 1, 4, 2, 2], splits=[0, 5], types=2, counts=[2, 3, 1]),
        Case(hypothesis=[0, 1, 1, 0], reference=[0, 1, 0, 1], splits=[0, 2, 4], types=1, counts=[3, 2, 1]),
        Case(hypothesis=[0, 1, 0, 2], reference=[0, 1, 2, 2], splits=[0, 4], types=1, scheme="IOE", counts=[2, 1, 1]),
        Case(hypothesis=[0, 1, 2, 3, 4], reference=[0, 1, 2, 4, 3], splits=[0, 5], types=1, scheme="IOBES", counts=[2, 2, 1]),
        Case(hypothesis=[0, 0, 1, 2], reference=[0, 0, 1, 1], splits=[0, 4], types=2, scheme="plain", counts=[2, 2, 1]),
        Case(hypothesis=[], reference=[], splits=[0], types=1, counts=[0, 0, 0]),
        Rejects(
            "hypothesis has the tag 3, where those of 1 types by IOB are 0 to 2", hypothesis=[3], reference=[0], splits=[0, 1], types=1
        ),
        Rejects(
            "reference has the tag -1, where those of 1 types by IOB are 0 to 2", hypothesis=[0], reference=[-1], splits=[0, 1], types=1
        ),
        Rejects("scheme is IOB, IOE, IOBES or plain, not 'BIO'", hypothesis=[0], reference=[0], splits=[0, 1], types=1, scheme="BIO"),
        Rejects("types is a whole number from 1, not 0", hypothesis=[0], reference=[0], splits=[0, 1], types=0),
        Rejects("x has 1 elements, where splits cut 0 sequences", hypothesis=[0], reference=[0], splits=[0], types=1),
    ],
)
def chunk_counts(hypothesis, reference, splits, *, types: int, scheme: str = "IOB"):
    """How many chunks ``hypothesis`` has, how many ``reference`` has, and how many both have: the same first and last tag, the same type.

    By IOB, type i has the tags ``2 i``, where a chunk begins, and ``2 i + 1`` inside; by IOE ``2 i`` inside and ``2 i + 1`` at its end; by
    IOBES ``4 i`` and the three that follow for begin, inside, end, and a chunk of one; by plain ``i`` alone. The number behind all of these
    is outside of chunks. A chunk ends, too, where another type or its sequence does, as the evaluation of CoNLL-2000 has it.
    """
    require_splits(splits, len(hypothesis))
    first = torch.zeros(len(hypothesis) + 1, dtype=torch.bool, device=hypothesis.device).index_fill_(0, splits, True)
    found = [_chunks(name, tags, first, types, scheme) for name, tags in (("hypothesis", hypothesis), ("reference", reference))]
    (begin, last, kind), (reference_begin, reference_last, reference_kind) = found
    both = begin & reference_begin & (last == reference_last) & (kind == reference_kind)
    return torch.stack([begin.sum(), reference_begin.sum(), both.sum()])


def _chunks(name: str, tags: torch.Tensor, first: torch.Tensor, types: int, scheme: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Where chunks begin, bool[t]; where the chunk that begins there ends; and of which type each tag is. Raises ValueError for no tag."""
    positions = _SCHEMES[scheme]
    outside = types * len(positions)
    wrong = (tags < 0) | (tags > outside)
    if wrong.any():
        raise ValueError(f"{name} has the tag {int(tags[wrong][0])}, where those of {types} types by {scheme} are 0 to {outside}")
    kind = tags // len(positions)
    position = torch.tensor(positions, device=tags.device)[tags % len(positions)]
    inside = tags < outside
    goes_on = torch.zeros_like(first)  # from the tag before, in the same chunk; false in front of all and behind all
    before, after = slice(None, -1), slice(1, None)
    ends = (position[before] == _END) | (position[before] == _SINGLE)
    begins = (position[after] == _BEGIN) | (position[after] == _SINGLE)
    goes_on[1:-1] = inside[before] & inside[after] & (kind[before] == kind[after]) & ~ends & ~begins & ~first[1:-1]
    begin, end = inside & ~goes_on[:-1], inside & ~goes_on[1:]
    last = torch.zeros_like(tags)
    last[begin] = end.nonzero().squeeze(1)  # chunks do not overlap, so the first to begin is the first to end
    return begin, last, kind


@chunk_counts.check_shapes
def require_scheme(hypothesis, reference, splits, *, types, scheme):
    """Raises ArgumentError for a scheme that is none, and for no types."""
    if scheme not in _SCHEMES:
        raise ArgumentError(f"scheme is IOB, IOE, IOBES or plain, not {scheme!r:.60}")
    if types < 1:
        raise ArgumentError(f"types is a whole number from 1, not {types}")
    require_cut(hypothesis, splits)
