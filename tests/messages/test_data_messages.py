"""Whole messages about data that does not fit a program: which column, which row, and what to do."""

import textwrap
from pathlib import Path

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.training.reading_ahead import prefetch_in_processes


def cost() -> ol.Var:
    with ol.Program(seed=0):
        x = ol.layer.data("x", [2])
        label = ol.layer.data("label", [], dtype="int64")
        return ol.layer.mean(ol.layer.softmax_with_cross_entropy(ol.layer.fc(x, 3), label))


def refusal(data: object, *, whole: bool = True, **options) -> str:
    """The message without the places in this file; data that is read `whole` is refused before anything is made."""
    scope = ol.Scope()
    with pytest.raises(ol.FeedError) as raised:
        ol.train(cost(), data, progress=False, scope=scope, **options)
    assert not (whole and list(scope))
    return "\n".join(line for line in str(raised.value).splitlines() if __file__.rpartition("/")[2] not in line)


def expected(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


X = numpy.zeros((4, 2), "float32")
LABEL = numpy.array([0, 1, 2, 0])


def test_float64_that_float32_does_not_hold():
    x = X.astype("float64")
    x[2, 1] = 0.1
    assert refusal({"x": x, "label": LABEL}) == expected("""
        the column "x" is float64, and some values cannot be represented exactly in float32
              "x" is float32[n, 2]
              row 2 has [0.0, 0.1]
          Try: round it to float32 with ol.data.read(data, narrow=True), or declare "x" as float64    (oarlock explain FeedError)
    """)


def test_fractions_among_labels():
    assert refusal({"x": X, "label": numpy.array([0.0, 1.5, 2.0, 1.0])}) == expected("""
        the column "label" is float64, and some values cannot be represented exactly in int64
              "label" is int64[n]
              row 1 has [1.5]
          Try: declare "label" as float64, or convert the column to int64 first    (oarlock explain FeedError)
    """)


def test_text_among_numbers():
    assert refusal({"x": X, "label": numpy.array(["a", "b", "c", "d"])}) == expected("""
        the column "label" is <U1, not a supported numeric dtype
              "label" is int64[n]
              row 0 has ['a']
          Try: drop such rows, or convert them to numbers with ol.train(..., transform=...)    (oarlock explain FeedError)
    """)


class Rows(torch.utils.data.Dataset):
    def __init__(self, bad: object):
        self.bad = bad

    def __len__(self):
        return 40

    def __getitem__(self, row):
        return {"x": self.bad if row == 33 else [0.5, 0.25], "label": 1}


def test_the_row_of_a_data_set_that_is_read_row_by_row():
    data = ol.data.read(torch.utils.data.DataLoader(Rows([0.5, "?"]), batch_size=8, collate_fn=columns))
    assert refusal(data, whole=False) == expected("""
        the column "x" has a row that is not numeric or has a different shape from the previous rows
              "x" is float32[n, 2]
              row 33 has [0.5, '?']
          Try: drop such rows, or convert them to numbers with ol.train(..., transform=...)    (oarlock explain FeedError)
    """)


def columns(rows: list[dict[str, object]]) -> dict[str, list[object]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_a_column_that_is_missing(tmp_path: Path):
    (tmp_path / "rows.csv").write_text("width,height,kind\n1,2,0\n3,4,1\n")
    assert refusal(tmp_path / "rows.csv") == expected("""
        the data set has no "x"
              it has width, height, kind
          Try: select all other columns with --columns "x=*", or ol.data.read(data, columns={"x": "*"})    (oarlock explain FeedError)
    """)
    with pytest.raises(ol.FeedError) as raised:
        ol.data.read(tmp_path / "rows.csv", columns={"x": ["width", "hieght"]})
    assert str(raised.value) == expected("""
        the data set has no column "hieght"
              it has height, width, kind
          Try: did you mean "height"?    (oarlock explain FeedError)
    """)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'error: "rows.csv" is empty'),
        ("1,2\n3,4\n", 'the first line of "rows.csv" does not name the columns'),
        ("a,b\n1,2\n3\n", 'row 1 of "rows.csv" has 1 fields, but there are 2 columns'),
        ('x\n1\n"2\n3\n', '"rows.csv" is not a valid CSV file'),
        (
            "a,b\n1,2\n3,9223372036854775808\n",
            'the column "b" of "rows.csv" has 9223372036854775808 in row 1, which is outside the range of int64',
        ),
        (
            "a,b\n1,-9223372036854775809\n",
            'the column "b" of "rows.csv" has -9223372036854775809 in row 0, which is outside the range of int64',
        ),
        ("a,b\n1,2\n3,\n5,6\n", 'the column "b" of "rows.csv" has \'\' in row 1, but numbers in others'),
    ],
)
def test_a_csv_file_that_is_no_table(text, message, tmp_path):
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(ol.DataError) as raised:
        ol.data.read(tmp_path / "rows.csv").rows.whole()
    assert str(raised.value).splitlines()[0] == message.removeprefix("error: ")


def test_the_ends_of_int64_are_read(tmp_path):
    (tmp_path / "rows.csv").write_text("a\n9223372036854775807\n-9223372036854775808\n")
    assert ol.data.read(tmp_path / "rows.csv").rows.whole()["a"].tolist() == [2**63 - 1, -(2**63)]


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (64, "size must be (height, width), not 64"),
        ((64,), "size must be (height, width), not (64,)"),
        ((64, 0), "the width in size must be an integer >= 1, not 0"),
        ((64.0, 64), "the height in size must be an integer >= 1, not 64.0"),
        ((64, 100_000), "the width in size must be an integer from 1 to 16384, not 100000"),
    ],
)
def test_a_size_that_no_image_has(size, message, tmp_path):
    with pytest.raises(ol.ArgumentError) as raised:
        ol.data.ImageFolder(tmp_path, size=size)
    assert raised.value.message == message


class Refusing(ol.data.Table):
    """Rows of which none can be read."""

    names = ("x", "label")

    def __len__(self) -> int:
        return 8

    def take(self, rows, names=None):
        raise ol.DataError(f'"{rows[0]}.png" is no image', given=["it is text"], hint="remove it")


def test_a_process_that_reads_ahead_says_what_it_refused_with_its_hint(tmp_path):
    with pytest.raises(ol.DataError) as raised:
        next(prefetch_in_processes(Refusing(), [numpy.array([5])], 1, 1))
    assert str(raised.value) == expected("""
        "5.png" is no image
              it is text
          Try: remove it    (oarlock explain DataError)
    """)


def test_what_a_transform_returns():
    assert refusal({"x": X, "label": LABEL}, whole=False, transform=lambda batch: batch["x"]) == (
        "transform returned a ndarray, not a dict of input names and columns"
    )


def test_parts_without_names():
    assert refusal([(X,)], whole=False) == expected("""
        a batch has 1 part without names, but the program has 2 inputs
              inputs: x, label
              parts of the batch: a ndarray
          Try: give batches as dicts by input name    (oarlock explain FeedError)
    """)


def test_missing_values_of_arrow():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"x": [[0.0, 1.0], None, None], "label": [1, 2, 0]})
    assert refusal(table) == expected("""
        the column "x" has 2 missing values, the first in row 1
          Try: drop or fill these rows first    (oarlock explain FeedError)
    """)


def test_images_of_two_sizes_are_refused_or_resized(tmp_path):
    images = pytest.importorskip("PIL.Image")
    for kind, size in (("cat", (4, 6)), ("dog", (5, 5))):
        (tmp_path / kind).mkdir()
        images.new("RGB", size, (255, 0, 51)).save(tmp_path / kind / "0.png")
    with pytest.raises(ol.DataError) as raised:
        ol.data.ImageFolder(tmp_path).take(numpy.arange(2))
    assert str(raised.value) == (
        '"0.png" is 5 x 5, but "0.png" is 6 x 4\n'
        "  Try: resize them with ol.data.ImageFolder(path, size=(64, 64))    (oarlock explain DataError)"
    )
    folder = ol.data.ImageFolder(tmp_path, size=(2, 3))
    found = folder.take(numpy.array([1, 0]))
    assert folder.classes == ["cat", "dog"]
    assert found["label"].tolist() == [1, 0]
    assert found["image"].shape == (2, 3, 2, 3)
    numpy.testing.assert_array_equal(found["image"][0, :, 0, 0], numpy.float32([1.0, 0.0, 0.2]))


def test_whole_numbers_that_floats_do_not_hold_and_numbers_behind_a_mask():
    given = {"x": numpy.array([[2**53 + 1, 0]]), "label": numpy.zeros(1, "int64")}
    with ol.Program():
        x, label = ol.layer.data("x", [2], dtype="float64"), ol.layer.data("label", [], dtype="int64")
        precise = ol.layer.mean(ol.layer.softmax_with_cross_entropy(ol.layer.fc(x, 3), label))
    with pytest.raises(ol.FeedError, match='the column "x" is int64, and some values cannot be represented exactly in float64'):
        ol.train(precise, given, progress=False)
    masked = numpy.ma.masked_array(X, [[False, False], [False, True], [False, False], [False, False]])
    assert refusal({"x": masked, "label": LABEL}).startswith('the column "x" has masked values')


def test_what_no_input_reads_is_not_asked_for(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"x": X.tolist(), "label": LABEL, "name": ["a", None, "b", "c"]})
    table = table.set_column(0, "x", pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.reshape(-1)), 2))
    assert ol.train(cost(), table, progress=False).steps == 1
    (tmp_path / "rows.csv").write_text('width,height,kind,note\n1,2,0,"of two\nlines"\n3,4,1,5\n')
    read = ol.data.read(tmp_path / "rows.csv", columns={"x": ["width", "height"], "label": "kind"})
    assert ol.train(cost(), read, progress=False).steps == 1


def test_frames_and_series_may_be_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0] + 1, "b": X[:, 1]})
    by_frame = ol.train(cost(), {"x": frame, "label": pandas.Series(LABEL)}, progress=False)
    by_array = ol.train(cost(), {"x": frame.to_numpy(), "label": LABEL}, progress=False)
    assert by_frame.history == by_array.history
