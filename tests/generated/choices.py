"""The choices that make a program: drawn from a seed and written down, or read back, so that fewer and smaller ones can be tried."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import TypeVar

__all__ = ["Choices"]

Item = TypeVar("Item")


class Choices:
    """Whole numbers below a bound, one after another. Where what is read back ends, each further one is 0, the simplest."""

    def __init__(self, random: Random | None = None, replayed: Iterable[int] = ()):
        self.random = random
        self.made: list[int] = []
        self._replayed = iter(replayed)

    def below(self, count: int) -> int:
        """A number from 0 to `count - 1`."""
        number = self.random.randrange(count) if self.random is not None else next(self._replayed, 0) % count
        self.made.append(number)
        return number

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def chance(self, percent: int) -> bool:
        """True in `percent` of 100 cases, which is the less simple answer."""
        return self.below(100) >= 100 - percent

    def weighed(self, items: Sequence[tuple[int, Item]]) -> Item:
        """One of (weight, item)."""
        number = self.below(sum(weight for weight, _ in items))
        for weight, item in items:
            if number < weight:
                return item
            number -= weight
        raise AssertionError
