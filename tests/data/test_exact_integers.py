"""An integer is fed as it is or refused, whatever else stands in its column: Python's own integers are the oracle."""

import itertools
import json
import math
from decimal import Decimal

import numpy
import pandas
import polars
import pyarrow
import pytest

import oarlock as ol
from oarlock.data.conversion import convert
from oarlock.data.recognition import open_data
from oarlock.serving.tensors import from_json

LARGE = 1234567890123456789
NUMBERS = [LARGE, -LARGE, 2**53 + 1, 2**63 - 1, -(2**63)]
OTHERS = [5, 5.0, 0.5, -3.0, math.nan, math.inf, 1e19, -1e300, 2.0**62]


def input_of(dtype="int64", shape=(), ragged=0):
    with ol.Program():
        return ol.layer.data("ids", list(shape), dtype=dtype, ragged=ragged)


def fed(column, shape=(), ragged=0):
    """The numbers that a column is fed as, as Python's; None where it is refused."""
    try:
        found = convert(input_of(shape=shape, ragged=ragged), ragged, column)
    except ol.OarlockError:
        return None
    values = found.values if isinstance(found, ol.Ragged) else found
    assert values.dtype == numpy.int64
    return values.reshape(-1).tolist()


def column_of(data):
    return open_data(data).rows.whole()["ids"]


def require_exact(found, numbers, *, may_refuse=False):
    """That numbers are fed as they are, where all are whole and int64 holds them, and are refused otherwise."""
    if may_refuse and found is None:
        return
    holds = all(math.isfinite(number) and number == int(number) and -(2**63) <= int(number) < 2**63 for number in numbers)
    assert found == ([int(number) for number in numbers] if holds else None)


OPEN = (NUMBERS[0], NUMBERS[2], NUMBERS[3])
PAIRS = [
    *itertools.product(OPEN, OTHERS),
    *((other, number) for number, other in itertools.product(OPEN, OTHERS)),
    (NUMBERS[1], NUMBERS[4]),
]


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("form", ["{}", "{}.0", "{:.18e}"])
def test_integers_in_a_file_of_text_are_exact_beside_any_number(tmp_path, ending, form):
    file, mark = tmp_path / f"table.{ending}", "\t" if ending == "tsv" else ","
    for number, other in itertools.product(NUMBERS, OTHERS):
        text = form.format(Decimal(number))
        file.write_text(f"ids{mark}other\n{text}{mark}1\n{other}{mark}2\n")
        other = Decimal(str(other)) if math.isfinite(other) else other  # what the text says
        require_exact(fed(column_of(file)), [number, other])
        table = ol.data.read(file, columns={"ids": ["ids", "other"]}).rows.whole()["ids"]
        require_exact(fed(table, shape=(2,)), [number, 1, other, 2])


@pytest.mark.parametrize(("number", "other"), PAIRS)
def test_integers_in_lists_arrays_and_frames_are_exact_beside_any_number(number, other):
    numbers, nested = [number, other], [[number, 1], [other, 2]]
    for column in (numbers, tuple(numbers), numpy.array(numbers, dtype=object), [numpy.array(item) for item in numbers]):
        of_arrays = isinstance(column, list) and isinstance(column[0], numpy.ndarray)  # of several dtypes
        require_exact(fed(column), numbers, may_refuse=of_arrays)  # a batch of a stream
        require_exact(fed(column_of({"ids": column})), numbers, may_refuse=of_arrays)
    rows = numpy.empty(2, dtype=object)
    rows[:] = nested
    for column in (nested, tuple(map(tuple, nested)), numpy.array(nested, dtype=object), rows, [numpy.array(item) for item in nested]):
        expected = [item for row in nested for item in row]
        if isinstance(column, list) and isinstance(column[0], numpy.ndarray):  # which NumPy has rounded
            expected = [item for row in column for item in row.tolist()]
        require_exact(fed(column, shape=(2,)), expected)
        require_exact(fed(column_of({"ids": column}), shape=(2,)), expected)
    require_exact(fed(column_of(pandas.DataFrame({"ids": pandas.Series(numbers, dtype=object)}))), numbers)
    require_exact(fed(column_of(pandas.DataFrame({"ids": pandas.Series([[number], [other]])})), shape=(1,)), numbers)


@pytest.mark.parametrize(("number", "other"), PAIRS)
def test_integers_of_ragged_rows_are_exact_beside_any_number(number, other):
    numbers = [number, other, 2]
    for rows in ([[number, other], [2]], [[number], [other, 2]], [numpy.array([number]), numpy.array([other]), numpy.array([2])]):
        of_arrays = isinstance(rows[0], numpy.ndarray)
        require_exact(fed(rows, ragged=1), numbers, may_refuse=of_arrays)
        require_exact(fed(column_of({"ids": rows}), ragged=1), numbers, may_refuse=of_arrays)
        if not of_arrays:
            require_exact(fed(column_of(pandas.DataFrame({"ids": rows})), ragged=1), numbers)
    for made in (lambda: ol.Ragged.from_lists([[number, other], [2]]), lambda: ol.Ragged.from_lengths(numbers, [2, 1])):
        try:
            ragged = made()
        except ol.OarlockError:
            ragged = None
        require_exact(None if ragged is None else fed(ragged, ragged=1), numbers)


@pytest.mark.parametrize(("number", "other"), PAIRS)
def test_integers_fed_to_a_run_or_put_in_a_scope_are_exact_beside_any_number(number, other):
    with ol.Program() as program:
        y = ol.layer.data("ids", [], dtype="int64") * 1
    for value in ([number, other], (number, other)):
        for run in (
            lambda value=value: ol.Executor().run(program, {"ids": value}, [y], scope=ol.Scope())[0],
            lambda value=value: ol.Executor().run(program, {}, [y], scope=scope_with(value))[0],
        ):
            try:
                found = numpy.asarray(run()).tolist()
            except ol.OarlockError:
                found = None
            require_exact(found, value)


def scope_with(value):
    scope = ol.Scope()
    scope.set("ids", value)
    return scope


def test_unsigned_integers_are_exact_or_refused():
    held = numpy.array([LARGE, 2**63 - 1], dtype="uint64")
    assert fed(held) == [LARGE, 2**63 - 1]
    assert fed(numpy.array([2**63], dtype="uint64")) is None
    assert fed([numpy.uint64(LARGE), numpy.int64(5)]) == [LARGE, 5]
    assert fed(column_of({"ids": [numpy.uint64(LARGE), -5]})) == [LARGE, -5]
    assert fed(column_of({"ids": [2**63, -5]})) is None
    table = ol.data.read({"a": held, "b": numpy.array([1, -2])}, columns={"ids": ["a", "b"]}).rows.whole()["ids"]
    assert fed(table, shape=(2,)) == [LARGE, 1, 2**63 - 1, -2]


def test_columns_side_by_side_are_exact():
    data = {"a": numpy.array([LARGE, 3]), "b": numpy.array([5.0, 6.0])}
    table = ol.data.read(data, columns={"ids": ["a", "b"]}).rows.whole()["ids"]
    assert fed(table, shape=(2,)) == [LARGE, 5, 3, 6]
    assert numpy.array_equal(convert(input_of("float64", (2,)), 0, table, rounds=True), [[float(LARGE), 5.0], [3.0, 6.0]])


def test_integers_of_arrow_and_polars_are_exact():
    for frame in (
        pyarrow.table({"ids": pyarrow.array([LARGE, 5], pyarrow.int64())}),
        pyarrow.table({"ids": pyarrow.array([LARGE, 5], pyarrow.uint64())}),
        polars.DataFrame({"ids": [LARGE, 5]}),
        pandas.DataFrame({"ids": pandas.array([LARGE, 5], dtype="Int64")}),
    ):
        assert fed(column_of(frame)) == [LARGE, 5]
    mixed = pyarrow.table({"ids": pyarrow.array([[LARGE], [5]], pyarrow.list_(pyarrow.int64(), 1))})
    assert fed(column_of(mixed), shape=(1,)) == [LARGE, 5]


def test_a_request_of_integers_is_exact_or_refused():
    dtype = ol.DType.INT64
    assert from_json("ids", json.loads(f"[{LARGE}, 5]"), [2], dtype).tolist() == [LARGE, 5]
    for text in (f"[{LARGE}, 5.0]", f"[{LARGE}.0, 5]", f"[{LARGE}, 5e0]", f"[{2**63}, 5]"):
        with pytest.raises(ol.FeedError):
            from_json("ids", json.loads(text), [2], dtype)


def test_floats_beside_large_integers_are_what_they_were(tmp_path):
    (tmp_path / "t.csv").write_text(f"ids\n{LARGE}\n0.5\n")
    for dtype in ("float32", "float64"):
        found = convert(input_of(dtype), 0, column_of(tmp_path / "t.csv"), rounds=True)
        assert found.dtype == dtype
        assert found.tolist() == [float(numpy.dtype(dtype).type(LARGE)), 0.5]
    assert ol.Ragged.from_lengths([0.1, 5.0], [2]).values.dtype == numpy.float32


@pytest.mark.parametrize("other", ["5", "5.0", "5e0"])
def test_training_is_fed_the_integers_of_a_file(tmp_path, other):
    (tmp_path / "ids.csv").write_text(f"ids\n{LARGE}\n{other}\n")
    with ol.Program():
        ids, w = ol.layer.data("ids", [], dtype="int64"), ol.layer.create_parameter([1], name="w")
        last = ol.op.cast(ol.op.remainder(ol.op.reduce_max(ids), 1000), "float32")
        cost = ol.op.reduce_sum(w) * 0.0
    result = ol.train(cost, tmp_path / "ids.csv", optimizer=ol.optimizer.SGD(0.1), epochs=1, show={"last": last}, progress=False)
    assert result.history[0].training["last"] == LARGE % 1000
