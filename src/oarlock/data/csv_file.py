"""CSV files, as tables."""

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
_LONGEST = 2**24  # characters of a line; a field has as many as the library allows
_LONGEST_NUMBER = 4000  # digits of a whole number that Python reads


def read_csv(path: str | Path) -> LazyTable:
    """A table with a name for each column in its first line: numbers are int64 where all are whole, otherwise float64; the rest is text.

    A column of floats in which an integer stands that float64 does not hold keeps Python's numbers. Columns of text can be told apart, and
    are refused where numbers are needed. Fields are parted by commas, or by semicolons or tabs if the first line has those and no comma.
    Raises DataError for a line with another number of fields, for a file without a line of names,
    for a number that is missing among numbers, for a whole number that int64 does not hold, for a number beyond float64, for a line of more
    than 16,777,216 characters, or a field of more than 131,072.
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
            raise DataError(f'"{Path(path).name}" is no CSV file', given=[str(error)]) from error
        except UnicodeDecodeError:
            raise DataError(f'"{Path(path).name}" is not text in UTF-8', given=[f"byte {_undecoded(file)} is none of it"]) from None
    if not rows:
        raise DataError(f'"{Path(path).name}" has no line', hint="the first line names the columns")
    names, rows = [name.strip() for name in rows[0]], rows[1:]
    if len(set(names)) < len(names) or "" in names or all(_is_number(name) for name in names):
        raise DataError(f'the first line of "{Path(path).name}" does not name the columns', given=[f"it is {first!r:.80}"])
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise DataError(
                f'row {number} of "{Path(path).name}" has {len(row)} fields, where there are {len(names)} columns',
                given=[f"it is {parted.join(row)!r:.80}"],
            )
    fields = dict(zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True))
    return LazyTable(names, len(rows), lambda name: _column(name, fields[name], path), rounds=True)


def format_csv(columns: Mapping[str, numpy.ndarray]) -> str:
    """Arrays with the rows first as a CSV file: a column for one of numbers, NAME_0, NAME_1, ... for one of rows of numbers.

    Numbers are written so that they are read as they were. Raises DataError for an array that is no such column.
    """
    named: dict[str, numpy.ndarray] = {}
    for name, array in columns.items():
        if array.ndim not in (1, 2) or len(array) != len(next(iter(columns.values()))):
            raise DataError(f'"{name}", {array.dtype}{list(array.shape)}, is no column of a table', hint="a .npy file holds any array")
        named |= {name: array} if array.ndim == 1 else {f"{name}_{number}": array[:, number] for number in range(array.shape[1])}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(named)
    writer.writerows(zip(*(map(str, array) for array in named.values()), strict=True))
    return text.getvalue()


def _lines(file: io.TextIOWrapper, path: str | Path) -> Iterator[str]:
    """The lines of a file. Raises DataError for one that would take much memory."""
    while line := file.readline(_LONGEST):
        if len(line) == _LONGEST and line[-1] not in "\r\n":
            raise DataError(f'"{Path(path).name}" is no CSV file', given=[f"it has a line of more than {_LONGEST:,} characters"])
        yield line


def _undecoded(file: io.BufferedReader) -> int:
    """The number of the first byte of a file that is not UTF-8."""
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
    """Numbers, if nearly all fields are; otherwise the fields as they are."""
    numbers = sum(map(_is_number, fields))
    if numbers == len(fields):
        whole = all(field.strip().lstrip("+-").isdigit() for field in fields)
        if not whole:
            beyond = next((number for number, field in enumerate(fields) if _is_beyond(field)), None)
            if beyond is not None:
                raise DataError(
                    f'the column "{name}" of "{Path(path).name}" has {fields[beyond].strip():.40} in row {beyond}, '
                    "which float64 does not hold"
                )
            return array_of_fields(fields)
        values = [int(field) if len(field) < _LONGEST_NUMBER else 2**63 for field in fields]
        beyond = next((number for number, value in enumerate(values) if not -(2**63) <= value < 2**63), None)
        if beyond is not None:
            raise DataError(
                f'the column "{name}" of "{Path(path).name}" has {fields[beyond].strip():.40} in row {beyond}, which int64 does not hold',
                hint="write numbers with a point, which are read as float64; or leave the column out",
            )
        return numpy.array(values, "int64")
    if numbers:
        row = next(number for number, field in enumerate(fields) if not _is_number(field))
        if numbers >= len(fields) / 2 or not fields[row].strip():
            raise DataError(
                f'the column "{name}" of "{Path(path).name}" has {fields[row]!r:.40} in row {row}, where others have numbers',
                hint="drop the row, or fill in a number; nan stands for none",
            )
    return numpy.array([field.strip() for field in fields], dtype=object)


def _is_beyond(field: str) -> bool:
    """Whether a field is a number that float64 turns into infinity: not one that is written so."""
    return math.isinf(float(field)) and "i" not in field.lower()


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field
