"""Counts that metrics add up over batches: pairs of classes, edit distances, chunks in tag sequences. None has gradients."""

import torch

from oarlock.errors import ArgumentError
from oarlock.ir.shape_rules import require_same
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, Rejects
from oarlock.tensor.sequences import cells_of, lengths_in, require_cut, require_splits, sequences_in

__all__ = ["chunk_counts", "contingency_table", "edit_distance", "require_scheme"]


@operator(
    "x: int64[...s], y: int64[...s] -> counts: int64[{rows} {columns}]",
    checks_values=True,
    cases=[
        Case(x=[0, 1, 1, 1], y=[1, 0, 0, 2], rows=2, columns=3, counts=[[0, 1, 0], [2, 0, 1]]),
        Case(x=[[-100, 1]], y=[[7, 1]], rows=2, columns=2, counts=[[0, 0], [0, 1]]),
        Case(x=[], y=[], rows=1, columns=2, counts=[[0, 0]]),
        Case(x=0, y=0, rows=2, columns=1, ignore_index=0, counts=[[0], [0]]),
        Rejects("x contains 2; allowed are 0 to 1", x=[2], y=[0], rows=2, columns=2),
        Rejects("y contains -1; allowed are 0 to 1", x=[0], y=[-1], rows=2, columns=2),
        Rejects("x contains 0; allowed are none", x=[0], y=[0], rows=0, columns=1),
    ],
)
def contingency_table(x, y, *, rows: int, columns: int, ignore_index: int = -100):
    """The contingency table of two tensors: ``counts[i, j]`` is the number of positions with i in ``x`` and j in ``y``.

    Positions where ``x`` is ``ignore_index`` are not counted.
    """
    kept = x != ignore_index
    x, y = x[kept], y[kept]
    for name, values, count in (("x", x, rows), ("y", y, columns)):
        wrong = (values < 0) | (values >= count)
        if wrong.any():
            allowed = f"0 to {count - 1}" if count > 0 else "none"
            raise ValueError(f"{name} contains {int(values[wrong][0])}; allowed are {allowed}")
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
            "row splits of 2 elements must begin with 0, never decrease and end at 2, unlike [0, 3]",
            hypothesis=[1, 2], hypothesis_splits=[0, 3], reference=[1], reference_splits=[0, 1],
        ),
        Rejects(
            "hypothesis_splits has 2 sequences, but reference_splits has 1",
            hypothesis=[1, 2], hypothesis_splits=[0, 1, 2], reference=[1], reference_splits=[0, 1],
        ),
        Rejects(
            "x has 1 elements, but splits has 0 sequences", hypothesis=[], hypothesis_splits=[0], reference=[1], reference_splits=[0]
        ),
    ],
)  # fmt: skip
def edit_distance(hypothesis, hypothesis_splits, reference, reference_splits):
    """The edit distance of each pair: the least number of insertions, deletions and substitutions (Levenshtein, 1966)."""
    require_cut_sides(hypothesis, hypothesis_splits, reference, reference_splits)
    lengths = [lengths_in(hypothesis_splits, len(hypothesis)), lengths_in(reference_splits, len(reference))]
    magnitude = torch.frexp(torch.maximum(*lengths).double()).exponent  # sequences of similar lengths are padded together
    distance = torch.zeros_like(lengths[0])
    for size in magnitude.unique().tolist():
        chosen = magnitude == size
        sides = [_padded(x, splits, chosen) for x, splits in ((hypothesis, hypothesis_splits), (reference, reference_splits))]
        distance[chosen] = _distances(*sides, *(length[chosen] for length in lengths))
    return distance


def _padded(x: torch.Tensor, splits: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Return the chosen sequences as rows, padded to one length."""
    own, column = cells_of(splits, len(x))
    kept = chosen[own]
    width = int(splits.diff()[chosen].max())
    rows = x.new_zeros(int(chosen.sum()), width)
    rows[(chosen.cumsum(0) - 1)[own[kept]], column[kept]] = x[kept]
    return rows


def _distances(
    hypothesis: torch.Tensor, reference: torch.Tensor, hypothesis_lengths: torch.Tensor, reference_lengths: torch.Tensor
) -> torch.Tensor:
    """Return the distances of padded rows, by dynamic programming over the hypotheses, vectorized over the
    references and their prefixes.
    """
    place = torch.arange(reference.shape[1] + 1, device=reference.device)
    nearest = place.expand(len(reference), -1)  # distance of the prefix read so far to the first j of the reference
    for number, element in enumerate(hypothesis.unbind(1)):
        substituted = nearest[:, :-1] + (reference != element[:, None])
        following = torch.cat([nearest[:, :1] + 1, torch.minimum(substituted, nearest[:, 1:] + 1)], 1)
        following = torch.cummin(following - place, 1).values + place  # insertions after the best shorter prefix
        nearest = torch.where((hypothesis_lengths > number)[:, None], following, nearest)
    return nearest.gather(1, reference_lengths[:, None]).squeeze(1)


@edit_distance.check_shapes
def require_cut_sides(hypothesis, hypothesis_splits, reference, reference_splits):
    """Raise ShapeError if the numbers of references and hypotheses differ. The kernel calls it, too."""
    counts = sequences_in(hypothesis_splits), sequences_in(reference_splits)
    require_same(*counts, "hypothesis_splits has {} sequences, but reference_splits has {}", *counts)
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
            "hypothesis has the tag 3, but the tags of 1 types in IOB are 0 to 2", hypothesis=[3], reference=[0], splits=[0, 1], types=1
        ),
        Rejects(
            "reference has the tag -1, but the tags of 1 types in IOB are 0 to 2", hypothesis=[0], reference=[-1], splits=[0, 1], types=1
        ),
        Rejects("scheme must be IOB, IOE, IOBES or plain, not 'BIO'", hypothesis=[0], reference=[0], splits=[0, 1], types=1, scheme="BIO"),
        Rejects("types must be at least 1, not 0", hypothesis=[0], reference=[0], splits=[0, 1], types=0),
        Rejects("x has 1 elements, but splits has 0 sequences", hypothesis=[0], reference=[0], splits=[0], types=1),
    ],
)
def chunk_counts(hypothesis, reference, splits, *, types: int, scheme: str = "IOB"):
    """The numbers of chunks in ``hypothesis``, in ``reference``, and in both, with equal first tag, last tag and type.

    Tags of type i: IOB has ``2 i`` to begin a chunk and ``2 i + 1`` inside; IOE ``2 i`` inside and ``2 i + 1`` at the end; IOBES ``4 i`` to
    ``4 i + 3`` for begin, inside, end and a chunk of one; plain only ``i``. The number after all of these is outside of chunks. A chunk
    also ends at a change of type and at the end of its sequence, as in the evaluation of CoNLL-2000.
    """
    require_splits(splits, len(hypothesis))
    first = torch.zeros(len(hypothesis) + 1, dtype=torch.bool, device=hypothesis.device).index_fill_(0, splits, True)
    found = [_chunks(name, tags, first, types, scheme) for name, tags in (("hypothesis", hypothesis), ("reference", reference))]
    (begin, last, kind), (reference_begin, reference_last, reference_kind) = found
    both = begin & reference_begin & (last == reference_last) & (kind == reference_kind)
    return torch.stack([begin.sum(), reference_begin.sum(), both.sum()])


def _chunks(name: str, tags: torch.Tensor, first: torch.Tensor, types: int, scheme: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return a mask of chunk beginnings, bool[t]; the end of each chunk, at its beginning; and the type of each tag. Raises ValueError for
    an invalid tag.
    """
    positions = _SCHEMES[scheme]
    outside = types * len(positions)
    wrong = (tags < 0) | (tags > outside)
    if wrong.any():
        raise ValueError(f"{name} has the tag {int(tags[wrong][0])}, but the tags of {types} types in {scheme} are 0 to {outside}")
    kind = tags // len(positions)
    position = torch.tensor(positions, device=tags.device)[tags % len(positions)]
    inside = tags < outside
    continues = torch.zeros_like(first)  # the chunk of the previous tag; false at both ends
    before, after = slice(None, -1), slice(1, None)
    ends = (position[before] == _END) | (position[before] == _SINGLE)
    begins = (position[after] == _BEGIN) | (position[after] == _SINGLE)
    continues[1:-1] = inside[before] & inside[after] & (kind[before] == kind[after]) & ~ends & ~begins & ~first[1:-1]
    begin, end = inside & ~continues[:-1], inside & ~continues[1:]
    last = torch.zeros_like(tags)
    last[begin] = end.nonzero().squeeze(1)  # chunks do not overlap, so the first to begin is the first to end
    return begin, last, kind


@chunk_counts.check_shapes
def require_scheme(hypothesis, reference, splits, *, types, scheme):
    """Raise ArgumentError for an unknown scheme and for fewer than one type."""
    if scheme not in _SCHEMES:
        raise ArgumentError(f"scheme must be IOB, IOE, IOBES or plain, not {scheme!r:.60}")
    if types < 1:
        raise ArgumentError(f"types must be at least 1, not {types}")
    require_cut(hypothesis, splits)
