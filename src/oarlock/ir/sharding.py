"""Sharding: along which axis workers divide the value of a variable, as data of the program."""

from typing import NamedTuple

from oarlock.ir.size import Shape

__all__ = ["Sharding"]


class Sharding(NamedTuple):
    """How the value of a persistable variable is divided: along `axis`, into equal shares, one for each of so many `workers`.

    Of 0 workers nothing is divided yet: the variable has the whole value, and a pass that knows how many workers there are may give each a
    share. Of more, the shape of the variable is that of a share, and worker i has the i-th.
    """

    axis: int
    workers: int = 0

    def whole(self, shape: Shape) -> Shape:
        """The shape of the whole value, of a variable that has this `shape`."""
        size = shape[self.axis]
        assert isinstance(size, int)  # as every size of a persistable variable
        return (*shape[: self.axis], size * max(self.workers, 1), *shape[self.axis + 1 :])
