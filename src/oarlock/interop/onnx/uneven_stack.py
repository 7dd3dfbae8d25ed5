"""Stacks of loop values that differ in size between iterations. ONNX cannot stack them, so their elements are concatenated."""

from dataclasses import dataclass

from oarlock.interop.onnx.export_graph import Graph
from oarlock.ir.dtype import DType

__all__ = ["UnevenStack"]


@dataclass(frozen=True)
class UnevenStack:
    """One value per iteration. All fields except dtype and rank are names of values of the graph.

    `flat` are the elements of all values, concatenated, and `shapes`, int64[m rank], their shapes. If each iteration gives such a stack
    itself, `counts` has the number of values in each, int64[trips], outermost first.
    """

    dtype: DType
    rank: int
    flat: str
    shapes: str
    counts: tuple[str, ...] = ()

    @property
    def steps(self) -> str:
        """Return a value that has a row for each iteration."""
        return self.counts[0] if self.counts else self.shapes

    def length(self, g: Graph) -> str:
        """Return the number of iterations: int64[1]."""
        return g("Shape", self.steps, start=0, end=1)

    def step(self, g: Graph, inner: Graph, number: str) -> "str | UnevenStack":
        """Return the value of one iteration, in the block `inner` of a loop in `g`; `number` is int64[]."""
        start = inner.unsqueeze(number, 0)
        stop = inner("Add", start, inner.ints([1]))
        places = _ends(g, g.reduce("ReduceProd", self.shapes, [1]))
        parts = []
        for level, counts in enumerate(self.counts):
            if level:
                parts.append(inner.slice(counts, 0, start, stop))
            ends = _ends(g, counts)
            start, stop = (inner("Gather", ends, bound, axis=0) for bound in (start, stop))
        flat = inner.slice(self.flat, 0, *(inner("Gather", places, bound, axis=0) for bound in (start, stop)))
        if self.counts:
            return UnevenStack(self.dtype, self.rank, flat, inner.slice(self.shapes, 0, start, stop), tuple(parts))
        return inner.reshape(flat, inner("Gather", self.shapes, number, axis=0))


def _ends(g: Graph, counts: str) -> str:
    """Return the start offset of each item, and the end of the last one."""
    return g("CumSum", g("Concat", counts, g.ints([0]), axis=0), g.ints(0), exclusive=1)
