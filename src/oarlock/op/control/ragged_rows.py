"""The rows of ragged sequences, as a loop over their steps visits them."""

from collections.abc import Sequence

import torch

from oarlock.tensor.splits import lengths_in
from oarlock.tensor.stacks import Stack

__all__ = ["RaggedRows", "elements_in"]


def elements_in(sequence: Stack) -> int:
    """How many elements all rows have together, by the first sequence of a ragged loop: those of its steps where it is an uneven stack."""
    return len(sequence) if isinstance(sequence, torch.Tensor) else sum(map(len, sequence))


class RaggedRows:
    """The steps of `n` rows that row splits `int64[n+1]` describe: how many there are, and which elements each of them has.

    Rows are sorted by their lengths, the longest first, so that those which have a step are the first ones: `counts` says how
    many, step by step. *Packed* elements are in the order of the steps, all of step 0 first.
    Raises ValueError for row splits that do not cut the elements of `sequence`. Costs the sorting of the elements.
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
        """The steps of a sequence: of one that has its elements row after row or, otherwise, of one that has a value for each step."""
        self.check(sequence, by_row=by_row)
        if not isinstance(sequence, torch.Tensor):
            return sequence
        return sequence.index_select(0, self.packed).split(self.counts) if by_row else sequence.unbind(0)

    def check(self, sequence: Stack, *, by_row: bool) -> None:
        """Raises ValueError for a sequence of another length than the rows have."""
        count = self.total if by_row and isinstance(sequence, torch.Tensor) else self.steps
        if len(sequence) != count:
            raise ValueError(f"a sequence of {len(sequence)}, where the row splits end at {self.total}, after {self.steps} steps")

    def join(self, steps: Sequence[Stack]) -> Stack:
        """The opposite of `split` for what each row has in each step; an uneven stack where that has another size in each."""
        first = steps[0]
        if not isinstance(first, torch.Tensor) or any(isinstance(step, list) or step.shape[1:] != first.shape[1:] for step in steps):
            return list(steps)
        return self.unpack(torch.cat(steps))  # type: ignore[arg-type]

    def unpack(self, packed: torch.Tensor) -> torch.Tensor:
        """Packed elements, row after row."""
        return packed.index_select(0, self._unpacked)

    def sort(self, memory: torch.Tensor) -> torch.Tensor:
        """A value for each row, the longest row first."""
        return memory.index_select(0, self.order)

    def unsort(self, memory: torch.Tensor) -> torch.Tensor:
        """The opposite of `sort`."""
        return torch.empty_like(memory).index_copy_(0, self.order, memory)
