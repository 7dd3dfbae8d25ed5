"""CSV files, as tables."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import numpy

from oarlock.data.exact_integers import array_of_fields
from oarlock.data.table import LazyTable
from oarlock.errors import DataError
from oarlock.io.files import read_file

__all__ = ["format_csv", "read_csv"]

_LARGEST = 4 * 2**30  # bytes


def read_csv(path: str | Path) -> LazyTable:
    """A table with a name for each column in its first line: numbers are int64 where all are whole, otherwise float64; the rest is text.

    A column of floats in which an integer stands that float64 does not hold keeps Python's numbers. Columns of text can be told apart, and
    are refused where numbers are needed. Fields are parted by commas, or by semicolons or tabs if the first line has those and no comma.
    Raises DataError for a line with another number of fields, for a file without a line of names,
    for a number that is missing among numbers, for a whole number that int64 does not hold.
    """
    text = _text(path)
    first = text.lstrip().partition("\n")[0].strip()
    parted = next((mark for mark in ",;\t" if mark in first), ",")
    try:
        read = csv.reader(io.StringIO(text, newline=""), delimiter=parted, skipinitialspace=True, strict=True)
        rows = [row for row in read if row]
    except csv.Error as error:
        raise DataError(f'"{Path(path).name}" is no CSV file', given=[str(error)]) from error
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


def _text(path: str | Path) -> str:
    try:
        return read_file(Path(path), largest=_LARGEST, limit="file_bytes").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f'"{Path(path).name}" is not text in UTF-8', given=[f"byte {error.start} is none of it"]) from None


def _column(name: str, fields: tuple[str, ...], path: str | Path) -> numpy.ndarray:
    """Numbers, if nearly all fields are; otherwise the fields as they are."""
    numbers = sum(map(_is_number, fields))
    if numbers == len(fields):
        whole = all(field.strip().lstrip("+-").isdigit() for field in fields)
        if not whole:
            return array_of_fields(fields)
        values = [int(field) for field in fields]
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


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field
