"""CSV files as tables."""

import codecs
import csv
import io
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy

from oarlock.data.exact_integers import array_of_fields
from oarlock.data.table import LazyTable
from oarlock.errors import DataError
from oarlock.io.files import open_within

__all__ = ["format_csv", "read_csv"]

_LARGEST = 4 * 2**30  # bytes
_LONGEST = 2**24  # characters of a line; the csv module limits fields
_LONGEST_NUMBER = 4000  # digits of an integer that Python parses


def read_csv(path: str | Path) -> LazyTable:
    """Read a CSV file whose first line names the columns.

    Columns are int64 if all their numbers are whole, otherwise float64, or text. A float column with an integer that float64 cannot
    represent keeps Python numbers. Text columns are refused only where numbers are needed. Fields are separated by commas, or by
    semicolons or tabs if the first line has those and no comma. Raises DataError for a line with a wrong number of fields, a missing line
    of names, a missing number among numbers, an integer outside int64, a number outside float64, a line of more than 16,777,216
    characters, or a field of more than 131,072.
    """
    descriptor, _ = open_within(path, largest=_LARGEST, limit="file_bytes")
    with open(descriptor, "rb") as file:
        try:
            lines = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            first = next((line.strip() for line in _lines(lines, path) if line.strip()), "")
            parted = next((mark for mark in ",;\t" if mark in first), ",")
            lines.seek(0)
            rows = [row for row in csv.reader(_lines(lines, path), delimiter=parted, skipinitialspace=True, strict=True) if row]
        except csv.Error as error:
            raise DataError(f'"{Path(path).name}" is not a valid CSV file', given=[str(error)]) from error
        except UnicodeDecodeError:
            raise DataError(f'"{Path(path).name}" is not UTF-8 text', given=[f"byte {_undecoded(file)} is invalid"]) from None
    if not rows:
        raise DataError(f'"{Path(path).name}" is empty', hint="name the columns in the first line")
    names, rows = [name.strip() for name in rows[0]], rows[1:]
    if len(set(names)) < len(names) or "" in names or all(_is_number(name) for name in names):
        raise DataError(f'the first line of "{Path(path).name}" does not name the columns', given=[f"it is {first!r:.80}"])
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise DataError(
                f'row {number} of "{Path(path).name}" has {len(row)} fields, but there are {len(names)} columns',
                given=[f"it is {parted.join(row)!r:.80}"],
            )
    fields = dict(zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True))
    return LazyTable(names, len(rows), lambda name: _column(name, fields[name], path), rounds=True)


def format_csv(columns: Mapping[str, numpy.ndarray]) -> str:
    """Format arrays with the rows on the first axis as CSV: a vector as one column, a matrix as columns NAME_0, NAME_1, ...

    Reading the text gives the same numbers. Raises DataError for an array of another shape.
    """
    named: dict[str, numpy.ndarray] = {}
    for name, array in columns.items():
        if array.ndim not in (1, 2) or len(array) != len(next(iter(columns.values()))):
            raise DataError(
                f'"{name}", {array.dtype}{list(array.shape)}, cannot be a column of a table',
                hint="use a .npy file, which can store any array",
            )
        named |= {name: array} if array.ndim == 1 else {f"{name}_{number}": array[:, number] for number in range(array.shape[1])}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(named)
    writer.writerows(zip(*(map(str, array) for array in named.values()), strict=True))
    return text.getvalue()


def _lines(file: io.TextIOWrapper, path: str | Path) -> Iterator[str]:
    """Yield the lines of a file. Raises DataError for an overlong line."""
    while line := file.readline(_LONGEST):
        if len(line) == _LONGEST and line[-1] not in "\r\n":
            raise DataError(f'"{Path(path).name}" is not a valid CSV file', given=[f"it has a line of more than {_LONGEST:,} characters"])
        yield line


def _undecoded(file: io.BufferedReader) -> int:
    """Return the offset of the first byte of a file that is not UTF-8."""
    decoder, place = codecs.getincrementaldecoder("utf-8")(), 0
    file.seek(0)
    while True:
        data, held = file.read(2**20), len(decoder.getstate()[0])
        try:
            decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            return place - held + error.start
        place += len(data)


def _column(name: str, fields: tuple[str, ...], path: str | Path) -> numpy.ndarray:
    """Return the fields of a column as numbers if all are numbers, otherwise as text. Raises DataError if most are numbers."""
    numbers = sum(map(_is_number, fields))
    if numbers == len(fields):
        whole = all(field.strip().lstrip("+-").isdigit() for field in fields)
        if not whole:
            beyond = next((number for number, field in enumerate(fields) if _is_beyond(field)), None)
            if beyond is not None:
                raise DataError(
                    f'the column "{name}" of "{Path(path).name}" has {fields[beyond].strip():.40} in row {beyond}, '
                    "which is outside the range of float64"
                )
            return array_of_fields(fields)
        values = [int(field) if len(field) < _LONGEST_NUMBER else 2**63 for field in fields]
        beyond = next((number for number, value in enumerate(values) if not -(2**63) <= value < 2**63), None)
        if beyond is not None:
            raise DataError(
                f'the column "{name}" of "{Path(path).name}" has {fields[beyond].strip():.40} in row {beyond}, '
                "which is outside the range of int64",
                hint="write a number of the column with a decimal point, to read it as float64, or omit the column",
            )
        return numpy.array(values, "int64")
    if numbers:
        row = next(number for number, field in enumerate(fields) if not _is_number(field))
        if numbers >= len(fields) / 2 or not fields[row].strip():
            raise DataError(
                f'the column "{name}" of "{Path(path).name}" has {fields[row]!r:.40} in row {row}, but numbers in others',
                hint="drop the row, or fill in a number; write nan for a missing one",
            )
    return numpy.array([field.strip() for field in fields], dtype=object)


def _is_beyond(field: str) -> bool:
    """Return whether a finite number in a field is infinite in float64."""
    return math.isinf(float(field)) and "i" not in field.lower()


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field
