"""Ragged sequences at run time, in the order in which a loop over their steps visits the rows."""

from collections.abc import Sequence

import torch

from oarlock.tensor.sequences import lengths_in
from oarlock.tensor.stacks import Stack

__all__ = ["RaggedRows", "elements_in"]


def elements_in(sequence: Stack) -> int:
    """Return the total number of elements of all rows, from the first sequence of a ragged loop, which may be an uneven stack."""
    return len(sequence) if isinstance(sequence, torch.Tensor) else sum(map(len, sequence))


class RaggedRows:
    """The steps of `n` rows given by row splits `int64[n+1]`: how many there are, and the elements of each.

    Rows are sorted by length, the longest first, so that the rows active in a step come first: `counts` holds their number, step by step.
    *Packed* elements are in the order of the steps, all of step 0 first. Raises ValueError for row splits that do not fit the elements of
    `sequence`. Construction sorts the elements.
    """

    def __init__(self, splits: torch.Tensor, sequence: Stack):
        self.total = elements_in(sequence)
        lengths = lengths_in(splits, self.total)
        rows = len(lengths)
        self.order = torch.argsort(lengths, descending=True, stable=True)
        rank = torch.empty_like(self.order).index_copy_(0, self.order, torch.arange(rows, device=splits.device))
        step = torch.arange(self.total, device=splits.device) - splits[:-1].repeat_interleave(lengths, output_size=self.total)
        self.packed = torch.argsort(step * rows + rank.repeat_interleave(lengths, output_size=self.total))
        self._unpacked = torch.empty_like(self.packed).index_copy_(0, self.packed, torch.arange(self.total, device=splits.device))
        self.counts: list[int] = torch.bincount(step).tolist()
        self.steps = len(self.counts)

    def split(self, sequence: Stack, *, by_row: bool) -> Sequence[Stack]:
        """Return the steps of a sequence, which has its elements row after row if `by_row`, and otherwise one value per step."""
        self.check(sequence, by_row=by_row)
        if not isinstance(sequence, torch.Tensor):
            return sequence
        return sequence.index_select(0, self.packed).split(self.counts) if by_row else sequence.unbind(0)

    def check(self, sequence: Stack, *, by_row: bool) -> None:
        """Raise ValueError for a sequence whose length does not match the rows."""
        count = self.total if by_row and isinstance(sequence, torch.Tensor) else self.steps
        if len(sequence) != count:
            raise ValueError(f"a sequence has the length {len(sequence)}, but the row splits end at {self.total}, after {self.steps} steps")

    def join(self, steps: Sequence[Stack]) -> Stack:
        """Reverse `split` for values per row and step; return an uneven stack if their sizes differ between steps."""
        first = steps[0]
        if not isinstance(first, torch.Tensor) or any(isinstance(step, list) or step.shape[1:] != first.shape[1:] for step in steps):
            return list(steps)
        return self.unpack(torch.cat(steps))  # type: ignore[arg-type]

    def unpack(self, packed: torch.Tensor) -> torch.Tensor:
        """Return packed elements row after row."""
        return packed.index_select(0, self._unpacked)

    def sort(self, memory: torch.Tensor) -> torch.Tensor:
        """Return a value per row with the longest row first."""
        return memory.index_select(0, self.order)

    def unsort(self, memory: torch.Tensor) -> torch.Tensor:
        """Reverse `sort`."""
        return torch.empty_like(memory).index_copy_(0, self.order, memory)
