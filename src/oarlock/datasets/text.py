"""Text as numbers of characters: a vocabulary, and windows of a text beside what follows each character."""

from dataclasses import dataclass
from functools import cached_property

import numpy

from oarlock.errors import ArgumentError

__all__ = ["Vocabulary", "windows"]


@dataclass(frozen=True)
class Vocabulary:
    """Characters with numbers from 0 on, in the order in which `characters` has them."""

    characters: str

    def __len__(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> numpy.ndarray:
        """The numbers of the characters of a text, int64[n]. Raises ArgumentError for one that is not among them."""
        codes = numpy.frombuffer(text.encode("utf-32-le"), "<u4")
        places = numpy.minimum(numpy.searchsorted(self._codes, codes), len(self) - 1)
        unknown = numpy.flatnonzero(self._codes[places] != codes)
        if unknown.size:
            raise ArgumentError(f"{text[unknown[0]]!r} is none of the {len(self)} characters of the vocabulary")
        return self._numbers[places]

    def decode(self, ids: numpy.ndarray) -> str:
        """The text of some numbers, integer[n]. Raises ArgumentError for one that is not from 0 to the number of characters less 1."""
        found = numpy.asarray(ids)
        if found.size and not 0 <= found.min() <= found.max() < len(self):
            raise ArgumentError(f"a character of a vocabulary of {len(self)} has a number from 0 to {len(self) - 1}")
        return "".join(self.characters[number] for number in found.tolist())

    @cached_property
    def _numbers(self) -> numpy.ndarray:
        return numpy.argsort(numpy.frombuffer(self.characters.encode("utf-32-le"), "<u4")).astype("int64")

    @cached_property
    def _codes(self) -> numpy.ndarray:
        return numpy.sort(numpy.frombuffer(self.characters.encode("utf-32-le"), "<u4"))


def windows(ids: numpy.ndarray, length: int) -> dict[str, numpy.ndarray]:
    """A text in pieces that follow one another: ids int64[n, length], and next int64[n, length], the character after each.

    What is left at the end is dropped. Raises ArgumentError for a length below 1, and for one that the text does not have.
    """
    if not 1 <= length < len(ids):
        raise ArgumentError(f"a text of {len(ids)} characters has no windows of {length}")
    count = (len(ids) - 1) // length
    return {name: ids[start : start + count * length].reshape(count, length) for start, name in enumerate(("ids", "next"))}
