"""Data sets that need no network: as described, the same each time, and divided without a row in both parts."""

import sys

import numpy
import pytest

import oarlock as ol
from oarlock.datasets.by_name import GROUPS

NAMES = [data_set.name for title, group in GROUPS.items() if title != "downloaded once" for data_set in group]
TASKS = [data_set.name for data_set in GROUPS["generated from a seed"]]
PARTS = ("train", "test", "all")


def type_of(column: numpy.ndarray) -> str:
    return f"{column.dtype}[{', '.join(['n', *map(str, column.shape[1:])])}]"


@pytest.mark.parametrize("name", NAMES)
def test_a_data_set_is_what_its_description_says(name):
    about = ol.datasets.descriptions()[name]
    counts = {}
    for part in about.rows or PARTS:
        rows = ol.datasets.load(f"{name}:{part}")
        assert {column: type_of(values) for column, values in rows.items()} == about.columns
        counts[part] = len(next(iter(rows.values())))
        assert {len(values) for values in rows.values()} == {counts[part]}
    assert counts == about.rows or not about.rows
    if about.classes:
        assert set(rows["label"]) == set(range(len(about.classes)))
    if about.features:
        assert rows["x"].shape[1] == len(about.features)
    assert about.source
    assert about.licence


def test_every_data_set_is_described_and_public():
    described = ol.datasets.descriptions()
    assert list(described) == [data_set.name for group in GROUPS.values() for data_set in group]
    assert set(described) <= set(ol.datasets.__all__)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("sample_images", "standard_library")])
def test_the_parts_follow_from_the_seed_and_have_every_row_once(name):
    data_set = getattr(ol.datasets, name)
    parts, again, others = data_set.split(seed=3), data_set.split(seed=3), data_set.split(seed=4)
    whole = data_set.load(seed=3) if name in TASKS else data_set.load()
    for column in whole:
        assert all((one[column] == other[column]).all() for one, other in zip(parts, again, strict=True))
    first = next(iter(whole))
    assert not numpy.array_equal(parts[0][first], others[0][first])
    rows = [as_rows(part) for part in (*parts, whole)]
    assert sorted(rows[0] + rows[1]) == sorted(rows[2])


def as_rows(data):
    return [b"".join(values[row].tobytes() for values in data.values()) for row in range(len(next(iter(data.values()))))]


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_each_part_has_the_same_share_of_every_class(name):
    train, test = getattr(ol.datasets, name).split(seed=1)
    shares = [numpy.bincount(part["label"]) / len(part["label"]) for part in (train, test)]
    assert numpy.abs(shares[0] - shares[1]).max() < 0.03


def test_the_photographs_are_in_color_and_have_no_parts():
    image = ol.datasets.load("sample_images")["image"]
    assert 0 <= image.min() < image.max() <= 1
    assert image[0].mean() > 2 * image[1].mean()  # a bright sky, a dark wood
    with pytest.raises(ol.DataError) as raised:
        ol.datasets.load("sample_images:train")
    assert str(raised.value) == (
        "sample_images is not divided into training and test rows\n  Try: use sample_images:all    (oarlock explain DataError)"
    )


def test_what_is_to_be_copied_comes_again_at_the_end():
    rows = ol.datasets.copying.load(50, seed=1, length=3, delay=5, symbols=4)
    x, y = rows["x"], rows["y"]
    assert x.shape == y.shape == (50, 11)
    assert (x[:, :3] == y[:, -3:]).all()
    assert set(numpy.unique(x[:, :3])) == {2, 3, 4, 5}
    assert (x[:, 7] == 1).all()
    assert not x[:, 3:7].any()
    assert not x[:, 8:].any()
    assert not y[:, :-3].any()


@pytest.mark.parametrize("digits", [1, 3, 18])
def test_sums_are_right(digits):
    rows = ol.datasets.addition.load(100, digits=digits)
    written = ol.datasets.addition.vocabulary.decode
    for x, y in zip(rows["x"], rows["y"], strict=True):
        one, other = written(x).split("+")
        assert len(one) == len(other) == digits
        assert int(one) + int(other) == int(written(y))


def test_numbers_are_sorted_and_are_those_that_came():
    rows = ol.datasets.sorting.load(40, length=6, numbers=5)
    assert [sorted(row) for row in rows["x"].tolist()] == rows["y"].tolist()
    assert set(numpy.unique(rows["x"])) == set(range(5))


def test_moons_and_spirals_lie_on_their_curves():
    moons = ol.datasets.moons.load(200, noise=0.0)
    centre = numpy.where(moons["label"][:, None] == 0, [0.0, 0.0], [1.0, 0.5])
    assert numpy.allclose(numpy.linalg.norm(moons["x"] - centre, axis=1), 1, atol=1e-6)
    assert ((moons["x"][:, 1] >= 0) == (moons["label"] == 0)).mean() > 0.6
    spirals = ol.datasets.spirals.load(200, arms=2, turns=1.0, noise=0.0)
    radius, angle = numpy.linalg.norm(spirals["x"], axis=1), numpy.arctan2(spirals["x"][:, 1], spirals["x"][:, 0]) / (2 * numpy.pi)
    off = (angle - radius - spirals["label"] / 2 + 0.5) % 1 - 0.5
    assert numpy.abs(off).max() < 1e-5


def test_a_wave_goes_on_one_step_later():
    rows = ol.datasets.waves.load(20, length=30)
    assert (rows["x"][:, 1:] == rows["y"][:, :-1]).all()
    turned = rows["x"][:, :-2] + rows["x"][:, 2:]  # of a sine, in one ratio to what lies between
    between = rows["x"][:, 1:-1]
    ratio = (turned * between).sum(1) / (between * between).sum(1)
    assert numpy.allclose(turned, ratio[:, None] * between, atol=1e-5)


@pytest.mark.parametrize(("name", "sizes"), [("copying", {"delay": 0}), ("sorting", {"rows": 0}), ("spirals", {"arms": -1})])
def test_a_size_below_one_is_refused_by_name(name, sizes):
    ((size, value),) = sizes.items()
    with pytest.raises(ol.ArgumentError, match=f"{size} must be an integer >= 1, not {value}"):
        getattr(ol.datasets, name).load(**sizes)


def test_sums_that_int64_does_not_hold_are_refused():
    with pytest.raises(ol.ArgumentError, match="digits must be an integer from 1 to 18, not 19"):
        ol.datasets.addition.load(digits=19)


def test_the_source_of_python_is_divided_by_files():
    library = ol.datasets.standard_library
    train, test = library.split(length=40, files=16)
    text = "".join(library.vocabulary.decode(row) for row in train["ids"])
    held_out = "".join(library.vocabulary.decode(row) for row in test["ids"])
    paths = sorted(path for path in __import__("pathlib").Path(sys.modules["argparse"].__file__).parent.glob("*.py"))[:16]
    sources = [path.read_text(encoding="utf-8").encode("ascii", "replace").decode() for path in paths]
    assert "".join(source for number, source in enumerate(sources) if number % 8).startswith(text)
    assert (sources[0] + sources[8]).startswith(held_out)
    assert len(sources[0] + sources[8]) - len(held_out) <= 41
    assert (train["ids"][:, 1:] == train["next"][:, :-1]).all()
    assert (train["ids"][1:, 0] == train["next"][:-1, -1]).all()
    held = {row.tobytes() for row in test["ids"]}
    assert not held & {row.tobytes() for row in train["ids"]}
    assert library.load(length=40, files=2)["ids"].tobytes() == library.load(length=40, files=2)["ids"].tobytes()


def test_docstrings_are_those_of_modules_classes_and_functions():
    found = ol.datasets.standard_library.docstrings(files=1)
    assert found[0].startswith("Record of phased-in incompatible language changes.")
    assert all(ol.datasets.standard_library.docstrings(files=12))
    assert any(text.startswith("Return first release in which this feature was recognized.") for text in found)  # of a method


def test_a_vocabulary_writes_what_it_has_read():
    vocabulary = ol.datasets.Vocabulary("zaé ")
    ids = vocabulary.encode("é az")
    assert (ids.dtype, ids.tolist()) == ("int64", [2, 3, 1, 0])
    assert vocabulary.decode(ids) == "é az"
    assert vocabulary.encode("").tolist() == []
    with pytest.raises(ol.ArgumentError, match="'b' is not one of the 4 characters of the vocabulary"):
        vocabulary.encode("ab")
    with pytest.raises(ol.ArgumentError, match="a vocabulary of 4 characters has the numbers 0 to 3"):
        vocabulary.decode(numpy.array([1, -1]))


def test_a_length_that_the_text_does_not_have_is_refused():
    for length in (0, 10**9):
        with pytest.raises(ol.ArgumentError, match=f"a text of .* characters has no windows of {length}"):
            ol.datasets.standard_library.load(length=length, files=1)


def test_a_python_without_its_source_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["argparse"], "__file__", str(tmp_path / "argparse.pyc"))
    with pytest.raises(ol.DataError, match="this Python was installed without the source of its standard library"):
        ol.datasets.standard_library.load()


@pytest.mark.parametrize(
    ("name", "subject"), [("iris", "the flowers come"), ("sample_images", "the photographs come"), ("digits", "the digits come")]
)
def test_without_scikit_learn_the_extra_is_named(name, subject, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ol.DataError) as raised:
        ol.datasets.load(name)
    assert str(raised.value) == (
        f'{subject} with scikit-learn, which is not installed\n  Try: pip install "oarlock[datasets]"    (oarlock explain DataError)'
    )


def test_a_name_that_is_nearly_one_is_corrected():
    with pytest.raises(ol.DataError) as raised:
        ol.datasets.load("fashon_mnist:train")
    assert raised.value.message == 'there is no data set "fashon_mnist:train"'
    assert raised.value.hint == 'did you mean "fashion_mnist"?'
    with pytest.raises(ol.DataError) as raised:
        ol.datasets.load("iris:tset")
    assert raised.value.contract.startswith("one of digits, iris, wine, ")
    assert raised.value.hint == "list them: oarlock datasets"


def test_numbers_are_in_their_own_units():
    patients, wines, flowers = (ol.datasets.load(name) for name in ("diabetes", "wine", "iris"))
    ages, sexes = patients["x"][:, 0], patients["x"][:, 1]
    assert (ages.min(), ages.max(), set(sexes)) == (19, 79, {1, 2})
    assert (patients["y"].min(), patients["y"].max()) == (25, 346)
    assert (wines["x"].max(), wines["x"][0, 0]) == (1680, numpy.float32(14.23))
    assert flowers["x"][0].tolist() == numpy.array([5.1, 3.5, 1.4, 0.2], "float32").tolist()


def test_diabetes_is_learnt_from_what_is_given():
    train, test = ol.datasets.diabetes.split(seed=0)
    mean, deviation = train["x"].mean(0), train["x"].std(0)
    x = numpy.concatenate([(train["x"] - mean) / deviation, numpy.ones((len(train["x"]), 1))], 1)
    weights = numpy.linalg.lstsq(x, train["y"], rcond=None)[0]
    told = numpy.concatenate([(test["x"] - mean) / deviation, numpy.ones((len(test["x"]), 1))], 1) @ weights
    assert numpy.sqrt(numpy.square(told - test["y"]).mean()) < 0.85 * test["y"].std()
