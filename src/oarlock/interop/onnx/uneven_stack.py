"""Stacks of values that have another size in each trip of a loop: ONNX stacks equal ones, so their elements lie one after another."""

from dataclasses import dataclass

from oarlock.interop.onnx.export_graph import Graph
from oarlock.ir.dtype import DType

__all__ = ["UnevenStack"]


@dataclass(frozen=True)
class UnevenStack:
    """A value for each trip. All but dtype and rank are names of values of the graph.

    `flat` are the elements of all values, one after another, and `shapes`, int64[m rank], the sizes of each. Where what each trip gives is
    such a stack itself, `counts` say how many there are in each, int64[trips], the outermost first.
    """

    dtype: DType
    rank: int
    flat: str
    shapes: str
    counts: tuple[str, ...] = ()

    @property
    def steps(self) -> str:
        """A value that has a row for each trip."""
        return self.counts[0] if self.counts else self.shapes

    def length(self, g: Graph) -> str:
        """How many trips there were: int64[1]."""
        return g("Shape", self.steps, start=0, end=1)

    def step(self, g: Graph, inner: Graph, number: str) -> "str | UnevenStack":
        """The value of one trip, in the block `inner` of a loop in `g`; `number` is int64[]."""
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
    """Where each of these many things begins, and where the last one ends."""
    return g("CumSum", g("Concat", counts, g.ints([0]), axis=0), g.ints(0), exclusive=1)
