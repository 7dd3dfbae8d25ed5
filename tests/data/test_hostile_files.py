"""Files of rows that take much memory, or say two things: each is refused in time."""

import io
import os
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy
import pytest
from processes import INSTALLED

import oarlock as ol
from oarlock.data import numpy_file
from oarlock.data.csv_file import read_csv
from oarlock.data.numpy_file import read_numpy

# Archives of arrays


def test_an_archive_that_inflates_to_much_more_than_it_has_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(numpy_file, "_INFLATED", 2**20)
    path = tmp_path / "bomb.npz"
    numpy.savez_compressed(path, x=numpy.zeros(2**22, "uint8"), y=numpy.zeros(2**22, "uint8"))
    tracemalloc.start()
    try:
        with pytest.raises(ol.DataError) as raised:
            read_numpy(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    size = path.stat().st_size
    allowed = max(2**20, 100 * size)
    assert raised.value.message == f'"bomb.npz": its arrays have 8,388,864 bytes, but the limit is {allowed:,} for a file of {size:,}'
    assert raised.value.hint == "if you trust the file, save it again without compression, with numpy.savez"
    numpy.savez(path, x=numpy.zeros(2**22, "uint8"), y=numpy.zeros(2**22, "uint8"))
    assert set(read_numpy(path).names) == {"x", "y"}


def test_the_bound_of_an_archive_is_what_is_documented():
    assert (numpy_file._INFLATED, numpy_file._RATIO) == (256 * 2**20, 100)


def test_an_archive_that_says_less_than_it_inflates_to_gives_no_more(tmp_path):
    data = io.BytesIO()
    numpy.lib.format.write_array(data, numpy.zeros(2**20, "uint8"))
    path = tmp_path / "lies.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", data.getvalue())
    raw = path.read_bytes()
    told = len(data.getvalue()).to_bytes(4, "little")
    assert raw.count(told) == 2
    path.write_bytes(raw.replace(told, (1000).to_bytes(4, "little")))
    with pytest.raises(ol.DataError, match=r'^"lies\.npz" is not a file of plain arrays'):
        read_numpy(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("names", [("x.npy", "x.npy"), ("x.npy", "x"), ("x", "x")])
def test_an_array_that_stands_twice_in_an_archive_is_refused(tmp_path, names):
    path = tmp_path / "twice.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for number, name in enumerate(names):
            data = io.BytesIO()
            numpy.lib.format.write_array(data, numpy.full(3, number))
            archive.writestr(name, data.getvalue())
    with pytest.raises(ol.DataError) as raised:
        read_numpy(path)
    assert raised.value.message == "\"twice.npz\": it contains two arrays called 'x'"


# CSV


def peak_of_refusal(path, message):
    """The most memory that was taken until a file was refused with a message, and what was said of it."""
    tracemalloc.start()
    try:
        with pytest.raises(ol.DataError) as raised:
            read_csv(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert raised.value.message == message
    return peak, raised.value.given


def test_a_quote_that_never_closes_takes_no_more_than_a_field_may_have(tmp_path):
    path = tmp_path / "open.csv"
    path.write_bytes(b'x,y\n1,"' + b"2\n" * 10_000_000)
    peak, given = peak_of_refusal(path, '"open.csv" is not a valid CSV file')
    assert peak < 2**22
    assert given == ("field larger than field limit (131072)",)


def test_a_line_that_never_ends_is_refused(tmp_path):
    path = tmp_path / "line.csv"
    with open(path, "wb") as file:
        file.truncate(2**28)
    peak, given = peak_of_refusal(path, '"line.csv" is not a valid CSV file')
    assert peak < 2**27
    assert given == ("it has a line of more than 16,777,216 characters",)


@pytest.mark.parametrize("before", [0, 5, 2**20 - 3, 2**21])
def test_the_place_of_what_is_not_utf8_is_said(tmp_path, before):
    path = tmp_path / "latin.csv"
    start = b"name\n" + "é".encode()
    path.write_bytes(start + b"a" * before + b"\n\xe9\n")
    _, given = peak_of_refusal(path, '"latin.csv" is not UTF-8 text')
    assert given == (f"byte {len(start) + before + 1} is invalid",)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_end_as_on_any_system(tmp_path, ending):
    path = tmp_path / "rows.csv"
    path.write_bytes(ending.join(["", "x;y", "1;2", "", '3;"4"', ""]).encode("utf-8-sig"))
    table = read_csv(path)
    assert table.names == ("x", "y")
    assert numpy.asarray(table.column("y")).tolist() == [2, 4]


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        ("1e400", "float64"),
        ("-1e999", "float64"),
        ("9" * 5000, "int64"),
        ("-" + "9" * 20, "int64"),
        ("1." + "0" * 5000 + "e309", "float64"),
    ],
)
def test_a_number_that_no_dtype_holds_is_refused_with_its_row(tmp_path, number, dtype):
    path = tmp_path / "rows.csv"
    path.write_text(f"x\n1{'.5' if dtype == 'float64' else ''}\n{number}\n")
    with pytest.raises(ol.DataError) as raised:
        read_csv(path).column("x")
    assert raised.value.message == f'the column "x" of "rows.csv" has {number:.40} in row 1, which is outside the range of {dtype}'


def test_infinity_is_a_number(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x\n1.5\ninf\n-Infinity\n")
    assert numpy.asarray(read_csv(path).column("x")).tolist() == [1.5, float("inf"), -float("inf")]


# Casts


@pytest.mark.parametrize(
    ("dtype", "number", "largest"), [("float32", 1e39, "3.40282e+38"), ("float16", 70000, "65504"), ("bfloat16", 3.4e38, "3.38953e+38")]
)
def test_a_number_that_is_fed_and_would_become_infinite_is_refused(dtype, number, largest):
    with ol.Program() as program:
        y = ol.op.abs(ol.layer.data("x", shape=[], dtype=dtype))
    for fed in (number, -number):
        with pytest.raises(ol.FeedError) as raised:
            ol.Executor().run(program, {"x": [1, fed]}, [y], scope=ol.Scope())
        assert raised.value.message == f'"x": {fed!r} is out of range for {dtype}, whose maximum is {largest}'
    (found,) = ol.Executor().run(program, {"x": [1.0, float("inf")]}, [y], scope=ol.Scope())
    assert numpy.isinf(numpy.asarray(found)[1])


@pytest.mark.parametrize("source", ["csv", "npz", "list", "narrow"])
def test_a_column_whose_numbers_would_become_infinite_is_refused(tmp_path, source):
    with ol.Program(seed=0):
        x = ol.layer.data("x", shape=[])
        cost = ol.op.mean(ol.layer.fc(ol.op.reshape(x, (-1, 1)), 1))
    if source == "csv":
        (tmp_path / "x.csv").write_text("x\n1.5\n1e39\n")
        data = tmp_path / "x.csv"
    elif source == "npz":
        numpy.savez(tmp_path / "x.npz", x=numpy.array([1.5, 1e39]))
        data = tmp_path / "x.npz"
    else:
        data = {"x": numpy.array([1.5, 1e39])} if source == "narrow" else {"x": [1.5, 1e39]}
    data = ol.data.read(data, narrow=True) if source == "narrow" else data
    with pytest.raises(ol.FeedError) as raised:
        ol.train(cost, data, epochs=1, batch_size=2, progress=False)
    what = (
        "has a number outside the range of float32"
        if source == "list"
        else "is float64, and some values cannot be represented exactly in float32"
    )
    assert raised.value.message == f'the column "x" {what}'
    assert any("row 1 has" in line and "1e+39" in line for line in raised.value.given) or source != "list"


# Malformed files, some of those of `python -m fuzz`


@pytest.mark.parametrize("kind", ["--texts", pytest.param("--arrays", marks=pytest.mark.slow)])
def test_malformed_files_are_read_or_refused(kind, tmp_path):
    code = f"import sys; from fuzz.__main__ import main; sys.argv[1:] = ['{kind}', '--seed', '0', '--count', '100']; sys.exit(main())"
    path = {"PYTHONPATH": os.pathsep.join([INSTALLED, str(Path(__file__).parents[1])])}
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("0 failures\n")
