"""Ragged: a value with rows of different lengths."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy
import torch

from oarlock.drawing.canvas import draw_rows
from oarlock.errors import ArgumentError, OarlockError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.runtime.value import exact_numbers, of_dtype, to_numpy, to_tensor, whole_numbers

__all__ = ["Ragged", "flatten"]

_SHOWN = 60  # maximum characters of the rows in a repr
_DRAWN_ROWS, _DRAWN = 20, 16  # maximum rows, and elements per row, in a picture
_BRIEF = 14  # maximum characters of an element in a picture


@dataclass(frozen=True, eq=False, repr=False)
class Ragged:
    """Rows of different lengths: `values` holds the elements of all rows, concatenated, and `splits` the row boundaries.

    Row splits are int64[n+1] for n rows: row i is `values[splits[i]:splits[i + 1]]`, so the first is 0 and the last the number of elements.
    Nested rows have one array of splits per level, outermost first. The arrays are read-only copies. Raises ArgumentError if splits and
    values are inconsistent.
    """

    values: numpy.ndarray
    splits: tuple[numpy.ndarray, ...]

    def __post_init__(self) -> None:
        values = _array(self.values, "values")
        several = isinstance(self.splits, list | tuple) and not all(isinstance(item, int | numpy.integer) for item in self.splits)
        splits = tuple(_whole(item, "splits") for item in (self.splits if several else [self.splits]))
        if not values.ndim:
            raise _refused("ragged values need a first dimension to be divided into rows")
        for level, cut in enumerate(splits):
            inside = splits[level + 1] if level + 1 < len(splits) else None
            _require_cut(cut, len(values) if inside is None else len(inside) - 1, "values" if inside is None else "rows")
        for array in (values, *splits):
            array.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "splits", splits)

    @classmethod
    def from_lists(cls, rows: Sequence[object], *, dtype: DType | str | None = None, levels: int = 1) -> "Ragged":
        """Create a Ragged from nested lists or a list of arrays: `[[1, 2], [], [3]]`; with `levels=2`, from nested rows.

        Without `dtype`, integers become int64 and other numbers float32. Raises ArgumentError.
        """
        elements, splits = flatten(rows, levels)
        values = _array(elements, "elements", hint=f"use Ragged.from_lists(rows, levels={levels + 1}) for nested rows")
        if dtype is not None:
            wanted = DType.of(dtype)
            given = torch.from_numpy(values)
            exact = exact_numbers(elements, given)
            read = of_dtype(given if exact is None else exact, wanted)
            if read is None:
                raise _refused(f"these elements are {values.dtype}, which {wanted} cannot represent")
            values = to_numpy(read)
        return cls(values, tuple(splits))

    @classmethod
    def from_lengths(cls, values: object, lengths: object) -> "Ragged":
        """Create a Ragged from concatenated elements and the row lengths, int64[n]. Raises ArgumentError."""
        array, counts = _array(values, "values"), _lengths(lengths)
        if array.ndim and counts.sum() != len(array):
            raise _refused(f"the lengths add up to {counts.sum()}, but there are {len(array)} elements")
        return cls(array, (_splits(counts),))

    @classmethod
    def from_padded(cls, padded: object, lengths: object) -> "Ragged":
        """Create a Ragged from the first `lengths[i]` elements of each row of an array [n, longest, ...]. Raises ArgumentError."""
        array, counts = _array(padded, "padded rows"), _lengths(lengths)
        if array.ndim < 2 or len(array) != len(counts):
            raise _refused(f"{len(counts)} lengths do not fit padded rows of shape {list(array.shape)}")
        if (counts > array.shape[1]).any():
            raise _refused(f"a row of length {counts.max()} does not fit padded rows of shape {list(array.shape)}")
        return cls(array[numpy.arange(array.shape[1]) < counts[:, None]], (_splits(counts),))

    @property
    def levels(self) -> int:
        """The number of row levels: 1 for rows of elements, 2 for nested rows."""
        return len(self.splits)

    @property
    def lengths(self) -> numpy.ndarray:
        """The length of each row, int64[n]; for nested rows, the number of inner rows."""
        return numpy.diff(self.splits[0])

    def __len__(self) -> int:
        return len(self.splits[0]) - 1

    def __getitem__(self, rows: object) -> "Ragged | numpy.ndarray":
        """Return one row, an array or for nested rows a Ragged; or several rows for a slice or an array of indexes, as a Ragged."""
        numbers = numpy.arange(len(self))[rows]  # type: ignore[index]
        if numbers.ndim:
            return self._take(numbers)
        first, last = self.splits[0][numbers : numbers + 2]
        if self.levels == 1:
            return self.values[first:last]
        return Ragged(self.values, self.splits[1:])._take(numpy.arange(first, last))

    def __iter__(self) -> "Iterator[Ragged | numpy.ndarray]":
        return (self[number] for number in range(len(self)))

    def _take(self, rows: numpy.ndarray) -> "Ragged":
        taken = []
        for splits in self.splits:
            counts = numpy.diff(splits)[rows]
            taken.append(_splits(counts))
            rows = numpy.repeat(splits[:-1][rows] - taken[-1][:-1], counts) + numpy.arange(taken[-1][-1])
        return Ragged(self.values[rows], tuple(taken))

    def to_lists(self) -> list:
        """Return the rows as nested lists."""
        items = self.values.tolist()
        for splits in reversed(self.splits):
            items = [items[first:last] for first, last in zip(splits[:-1].tolist(), splits[1:].tolist(), strict=True)]
        return items

    def to_padded(self, fill: float = 0) -> numpy.ndarray:
        """Return the rows as one array [n, longest, ...], padded with `fill`; for nested rows, [n, most, longest, ...]."""
        padded = self.values
        for splits in reversed(self.splits):
            counts = numpy.diff(splits)
            wide = numpy.full((len(counts), counts.max(initial=0), *padded.shape[1:]), fill, padded.dtype)
            wide[numpy.arange(wide.shape[1]) < counts[:, None]] = padded
            padded = wide
        return padded

    def _repr_html_(self) -> str:
        """Return the picture for notebooks: one line for each of the first rows."""
        return self._repr_svg_()

    def _repr_svg_(self) -> str:
        drawn = [(number, self[number]) for number in range(min(len(self), _DRAWN_ROWS))]
        rows = [(str(number), [_brief(item) for item in row[:_DRAWN]], max(0, len(row) - _DRAWN)) for number, row in drawn]
        return draw_rows(f"{self._type}: {len(self):,} row{'' if len(self) == 1 else 's'}", rows, len(self) - len(drawn)).svg()

    def __repr__(self) -> str:
        text = " ".join(repr(self[: _SHOWN // 2].to_lists()).split()) if self.values.size < 10_000 else f"{len(self)} rows"  # type: ignore[union-attr]
        text = text if len(text) <= _SHOWN and len(self) <= _SHOWN // 2 else f"{text[:_SHOWN]}..."
        return f"<{self._type} {text}>"

    @property
    def _type(self) -> str:
        inner = "".join(f", {size}" for size in self.values.shape[1:])
        return f"Ragged {self.values.dtype}[{len(self)}{', ?' * self.levels}{inner}]"


def _brief(item: "Ragged | numpy.ndarray") -> str:
    """Format an element in a few characters: a number, or the first numbers of a vector or row."""
    text = _number_text(item.to_lists() if isinstance(item, Ragged) else item.tolist())
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 3]}..."


def _number_text(item: object) -> str:
    if isinstance(item, list):
        return f"[{', '.join(_number_text(inner) for inner in item[:_BRIEF])}]"
    return f"{item:.4g}" if isinstance(item, float) else str(item)


def flatten(rows: Sequence[object], levels: int) -> tuple[list | numpy.ndarray, list[numpy.ndarray]]:
    """Return the elements of nested lists (an array if the rows are arrays) and the row splits, outermost first. Raises ArgumentError."""
    items: list = list(rows)
    splits: list[numpy.ndarray] = []
    for level in range(levels):
        for number, row in enumerate(items):
            if not isinstance(row, list | tuple | numpy.ndarray | torch.Tensor) or (not isinstance(row, list | tuple) and not row.ndim):
                raise _refused(
                    f"row {number} is {type(row).__name__} {row!r:.40}, not a list of elements",
                    hint="pass a list of rows, such as [[1, 2], [], [3]]",
                )
        splits.append(_splits(numpy.array([len(row) for row in items], "int64")))
        if level + 1 == levels and any(isinstance(row, numpy.ndarray | torch.Tensor) for row in items):
            return _joined(items), splits
        items = [item for row in items for item in row]
    arrays = items and all(isinstance(item, numpy.ndarray | torch.Tensor) for item in items)
    return _joined([item[None] for item in items]) if arrays else items, splits


def _joined(rows: list) -> numpy.ndarray:
    """Concatenate arrays. Empty rows do not affect the shape and dtype of elements, unless all rows are empty."""
    arrays = [_array(row, "a row") for row in rows]
    arrays = [array for array in arrays if len(array)] or arrays[:1]
    if len({array.shape[1:] for array in arrays}) > 1:
        raise _refused(f"the elements of rows have different shapes: {', '.join(sorted({str(list(array.shape[1:])) for array in arrays}))}")
    joined = numpy.concatenate(arrays)
    if len({array.dtype.kind for array in arrays}) > 1 and joined.dtype.kind == "f":  # integers may have been rounded
        return _array([item for array in arrays for item in array.tolist()], "rows", as_float=joined)
    return joined


def _array(value: object, what: str, *, hint: str | None = None, as_float: numpy.ndarray | None = None) -> numpy.ndarray:
    """Return numbers as an array. Python integers that a float would round become int64; others `as_float`, if given."""
    try:
        tensor = to_tensor(value)
        exact = exact_numbers(value, tensor) if tensor.is_floating_point() else None
        if exact is not None and not torch.equal(tensor.double(), exact.double()) and (whole := whole_numbers(value)) is not None:
            exact = whole
        is_rounded = exact is not None and not exact.is_floating_point()
        return to_numpy(exact) if is_rounded else to_numpy(tensor) if as_float is None else as_float  # type: ignore[arg-type]
    except OarlockError as error:
        raise _refused(f"{what}: {error.message}", hint=hint) from None


def _whole(value: object, what: str) -> numpy.ndarray:
    """Return integers as int64[n]. Raises ArgumentError."""
    array = _array(value, what)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise _refused(f"{what} must be integers of one dimension, not {array.dtype}{list(array.shape)}")
    return array.astype("int64")


def _lengths(value: object) -> numpy.ndarray:
    counts = _whole(value, "lengths")
    if (counts < 0).any():
        raise _refused(f"a row cannot have length {counts.min()}")
    return counts


def _splits(counts: numpy.ndarray) -> numpy.ndarray:
    return numpy.concatenate([numpy.zeros(1, "int64"), numpy.cumsum(counts, dtype="int64")])


def _require_cut(splits: numpy.ndarray, count: int, what: str) -> None:
    if not len(splits) or splits[0] != 0 or (splits[1:] < splits[:-1]).any():
        raise _refused(f"row splits must start with 0 and not decrease, unlike {splits.tolist()!r:.60}")
    if splits[-1] != count:
        raise _refused(f"the row splits end at {splits[-1]}, but there are {count} {what}")


def _refused(message: str, *, hint: str | None = None) -> ArgumentError:
    return ArgumentError(message, location=here(), hint=hint)
