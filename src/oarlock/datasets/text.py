"""Text as character numbers: a vocabulary, and windows of a text with the following characters."""

from dataclasses import dataclass
from functools import cached_property

import numpy

from oarlock.errors import ArgumentError

__all__ = ["Vocabulary", "windows"]


@dataclass(frozen=True)
class Vocabulary:
    """Characters numbered from 0 in the order of `characters`."""

    characters: str

    def __len__(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> numpy.ndarray:
        """Return the numbers of the characters of a text, int64[n]. Raises ArgumentError for an unknown character."""
        codes = numpy.frombuffer(text.encode("utf-32-le"), "<u4")
        places = numpy.minimum(numpy.searchsorted(self._codes, codes), len(self) - 1)
        unknown = numpy.flatnonzero(self._codes[places] != codes)
        if unknown.size:
            raise ArgumentError(f"{text[unknown[0]]!r} is not one of the {len(self)} characters of the vocabulary")
        return self._numbers[places]

    def decode(self, ids: numpy.ndarray) -> str:
        """Return the text of character numbers, integer[n]. Raises ArgumentError for a number outside the vocabulary."""
        found = numpy.asarray(ids)
        if found.size and not 0 <= found.min() <= found.max() < len(self):
            raise ArgumentError(f"a vocabulary of {len(self)} characters has the numbers 0 to {len(self) - 1}")
        return "".join(self.characters[number] for number in found.tolist())

    @cached_property
    def _numbers(self) -> numpy.ndarray:
        return numpy.argsort(numpy.frombuffer(self.characters.encode("utf-32-le"), "<u4")).astype("int64")

    @cached_property
    def _codes(self) -> numpy.ndarray:
        return numpy.sort(numpy.frombuffer(self.characters.encode("utf-32-le"), "<u4"))


def windows(ids: numpy.ndarray, length: int) -> dict[str, numpy.ndarray]:
    """Return a text in consecutive windows: ids int64[n, length], and next int64[n, length], the following character of each.

    The remainder at the end is dropped. Raises ArgumentError for a length below 1 or longer than the text.
    """
    if not 1 <= length < len(ids):
        raise ArgumentError(f"a text of {len(ids)} characters has no windows of {length}")
    count = (len(ids) - 1) // length
    return {name: ids[start : start + count * length].reshape(count, length) for start, name in enumerate(("ids", "next"))}
