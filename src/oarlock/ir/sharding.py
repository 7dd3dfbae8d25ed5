"""Sharding: how workers divide a variable, recorded in the program."""

from typing import NamedTuple

from oarlock.ir.size import Shape

__all__ = ["Sharding"]


class Sharding(NamedTuple):
    """The division of a persistable variable along `axis` into equal shards, one for each of `workers` workers.

    With 0 workers nothing is divided yet: the variable has the complete value, and a pass that knows the number of workers may divide it.
    Otherwise the variable is declared with the shape of a shard, and worker i has the i-th shard.
    """

    axis: int
    workers: int = 0

    def whole(self, shape: Shape) -> Shape:
        """Return the shape of the complete value of a variable with this `shape`."""
        size = shape[self.axis]
        assert isinstance(size, int)  # as every size of a persistable variable is
        return (*shape[: self.axis], size * max(self.workers, 1), *shape[self.axis + 1 :])
