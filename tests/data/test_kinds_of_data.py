"""Every kind of data gives a run the same batches in the same order, and a run that is taken up goes on with the same bits."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import torch
from classifiers import Classifier, small_classifier, small_rows

import oarlock as ol

ROWS = small_rows(23)
OPTIONS = {"epochs": 3, "batch_size": 4, "progress": False}
STEPS = 18


class Numbered(torch.utils.data.Dataset):
    """The rows one by one, as tuples or as dicts."""

    def __init__(self, named: bool):
        self.named = named

    def __len__(self) -> int:
        return 23

    def __getitem__(self, row: int):
        return {name: column[row] for name, column in ROWS.items()} if self.named else tuple(column[row] for column in ROWS.values())


def as_pandas(folder: Path) -> object:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"x": list(ROWS["x"]), "label": ROWS["label"]})


def as_polars(folder: Path) -> object:
    polars = pytest.importorskip("polars")
    return polars.DataFrame({"x": ROWS["x"], "label": ROWS["label"]})


def as_arrow(folder: Path) -> object:
    pyarrow = pytest.importorskip("pyarrow")
    x = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(ROWS["x"].reshape(-1)), 3)
    return pyarrow.table({"x": x, "label": ROWS["label"]})


def as_parquet(folder: Path) -> object:
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(as_arrow(folder), folder / "rows.parquet")
    return str(folder / "rows.parquet")


def as_csv(folder: Path) -> object:
    with open(folder / "rows.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "label"])
        writer.writerows([*map(repr, map(float, x)), int(label)] for x, label in zip(ROWS["x"], ROWS["label"], strict=True))
    return ol.data.read(folder / "rows.csv", columns={"x": "a:c", "label": "label"})


def as_npz(folder: Path) -> object:
    numpy.savez(folder / "rows.npz", **ROWS)
    return folder / "rows.npz"


def as_hugging_face(folder: Path) -> object:
    datasets = pytest.importorskip("datasets")
    if not hasattr(datasets, "Dataset"):  # a folder of tests that is called so
        pytest.skip("the library datasets is not installed")
    return datasets.Dataset.from_dict({"x": ROWS["x"].tolist(), "label": ROWS["label"].tolist()}, features=_features(datasets))


def _features(datasets):
    return datasets.Features({"x": datasets.Sequence(datasets.Value("float32"), 3), "label": datasets.Value("int64")})


KINDS: dict[str, Callable[[Path], object]] = {
    "pandas": as_pandas,
    "polars": as_polars,
    "Arrow": as_arrow,
    "Parquet": as_parquet,
    "CSV": as_csv,
    "NumPy": as_npz,
    "Hugging Face": as_hugging_face,
    "Dataset": lambda folder: Numbered(named=False),
    "Dataset of dicts": lambda folder: Numbered(named=True),
    "DataLoader": lambda folder: torch.utils.data.DataLoader(Numbered(named=False), batch_size=4, shuffle=True),
    "tensors": lambda folder: {"x": torch.from_numpy(ROWS["x"]), "label": torch.from_numpy(ROWS["label"])},
    "lists": lambda folder: {name: column.tolist() for name, column in ROWS.items()},
    "smaller integers": lambda folder: {**ROWS, "label": ROWS["label"].astype("uint8")},
    "read ahead": lambda folder: ol.data.read(Numbered(named=True), prefetch=3),
}


@pytest.fixture(scope="module")
def small() -> Classifier:
    return small_classifier()


@pytest.fixture(scope="module")
def unbroken(small: Classifier) -> ol.TrainingResult:
    return ol.train(small.cost, ROWS, **OPTIONS)


def same(left: ol.TrainingResult, right: ol.TrainingResult) -> bool:
    return left.steps == right.steps and all(torch.equal(left.parameters[name], right.parameters[name]) for name in right.parameters)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_rows_trains_to_the_same_bits_and_is_taken_up_anywhere(kind, small, unbroken, tmp_path):
    data = KINDS[kind](tmp_path)
    result = ol.train(small.cost, data, **OPTIONS)
    assert same(result, unbroken)
    assert result.history == unbroken.history
    for stop in (1, 5, 6, 7, 17):
        half = ol.train(small.cost, data, **OPTIONS, steps=stop)
        assert half.steps == stop
        assert same(ol.train(half, data, progress=False), unbroken)


def batches(epoch: int):
    """The batches of an epoch, in the order in which a run takes the rows of a table."""
    from oarlock.training.batches import Batches

    found = Batches.of(ROWS, small_classifier().cost.block.program, 4)
    return [found.batch(found.order(epoch), number) for number in range(found.per_epoch)]


STREAMS: dict[str, Callable[[], object]] = {
    "a function of the epoch": lambda: lambda epoch: iter(batches(epoch)),
    "a function, read ahead": lambda: ol.data.read(lambda epoch: iter(batches(epoch)), prefetch=2),
    "tuples": lambda: lambda epoch: ((batch["x"], batch["label"]) for batch in batches(epoch)),
}


@pytest.mark.parametrize("kind", STREAMS)
def test_a_stream_is_read_again_up_to_where_a_run_stopped(kind, small, unbroken):
    assert same(ol.train(small.cost, STREAMS[kind](), **OPTIONS), unbroken)
    for stop in (1, 5, 6, 7, 17, 18):
        half = ol.train(small.cost, STREAMS[kind](), **OPTIONS, steps=stop)
        assert half.steps == stop
        again = ol.train(half, STREAMS[kind](), progress=False)
        assert same(again, unbroken)


def test_an_iterator_is_read_once(small):
    once = ol.train(small.cost, iter(batches(0)), epochs=1, progress=False)
    assert once.steps == 6
    with pytest.raises(ol.FeedError) as raised:
        ol.train(small.cost, (batch for batch in batches(0)), epochs=2, progress=False)
    assert str(raised.value) == (
        "the generator of batches can be read only once, but epoch 2 needs it again\n"
        "  Try: pass a function that creates it, def batches(epoch): yield ..., or train for one epoch    (oarlock explain FeedError)"
    )


def test_a_list_of_batches_is_read_in_each_epoch_and_its_length_is_known(small):
    given = batches(0)
    result = ol.train(small.cost, given, epochs=2, progress=False)
    assert result.steps == 12
    half = ol.train(small.cost, given, epochs=2, steps=7, progress=False)
    assert same(ol.train(half, given, progress=False), result)


def test_a_loader_in_order_gives_its_rows_as_they_stand_and_drops_the_last(small):
    loader = torch.utils.data.DataLoader(Numbered(named=True), batch_size=5, drop_last=True)
    result = ol.train(small.cost, loader, epochs=2, progress=False)
    assert result.steps == 8
    by_hand = [{name: column[start : start + 5] for name, column in ROWS.items()} for start in (0, 5, 10, 15)]
    assert same(result, ol.train(small.cost, by_hand, epochs=2, progress=False))


def test_a_loader_with_a_sampler_of_its_own_is_a_stream(small):
    def loader():
        weights = torch.utils.data.WeightedRandomSampler([1.0] * 23, 10, generator=torch.Generator().manual_seed(3))
        return torch.utils.data.DataLoader(Numbered(named=True), batch_size=5, sampler=weights)

    whole = ol.train(small.cost, loader(), epochs=1, progress=False)
    assert whole.steps == 2
    half = ol.train(small.cost, loader(), epochs=1, steps=1, progress=False)
    assert same(ol.train(half, loader(), progress=False), whole)


@pytest.mark.slow
def test_workers_read_the_same_batches(small, unbroken):
    data = ol.data.read(Numbered(named=True), workers=2)
    assert same(ol.train(small.cost, data, **OPTIONS), unbroken)
    half = ol.train(small.cost, data, **OPTIONS, steps=8)
    assert same(ol.train(half, data, progress=False), unbroken)


def test_a_transform_changes_batches_and_draws_the_same_when_taken_up(small):
    def jitter(batch, random):
        return {**batch, "x": batch["x"] + random.normal(size=batch["x"].shape).astype("float32")}

    whole = ol.train(small.cost, ROWS, **OPTIONS, transform=jitter)
    assert not same(whole, ol.train(small.cost, ROWS, **OPTIONS))
    half = ol.train(small.cost, ROWS, **OPTIONS, transform=jitter, steps=7)
    assert same(ol.train(half, ROWS, progress=False, transform=jitter), whole)
    doubled = {**ROWS, "x": 2 * ROWS["x"]}
    by_transform = ol.train(small.cost, ROWS, **OPTIONS, transform=lambda batch: {**batch, "x": 2 * batch["x"]})
    assert same(by_transform, ol.train(small.cost, doubled, **OPTIONS))


def test_validation_reads_its_rows_in_order_whatever_their_kind(small):
    by_arrays = ol.train(small.cost, ROWS, validate=ROWS, **OPTIONS)
    by_loader = ol.train(small.cost, ROWS, validate=Numbered(named=True), **OPTIONS)
    assert by_arrays.history == by_loader.history


def test_lists_of_numbers_in_a_column_are_ragged(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    words = [[1, 2], [], [3, 1, 1], [2], [0, 3]]
    with ol.Program(seed=1):
        ids = ol.layer.data("words", [], dtype="int64", ragged=1)
        label = ol.layer.data("label", [], dtype="int64")
        pooled = ol.layer.sequence_pool(ol.layer.embedding(ids, (4, 3)), "sum")
        cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(ol.layer.fc(pooled, 2), label))
    data = {"words": words, "label": [0, 1, 1, 0, 1]}
    wanted = ol.train(cost, data, epochs=2, batch_size=2, progress=False)
    assert same(ol.train(cost, pyarrow.table(data), epochs=2, batch_size=2, progress=False), wanted)
    frame = pytest.importorskip("pandas").DataFrame(data)
    assert same(ol.train(cost, frame, epochs=2, batch_size=2, progress=False), wanted)


def test_a_loader_that_draws_on_from_epoch_to_epoch_is_taken_up_in_any(small):
    def loader():
        drawn = torch.utils.data.WeightedRandomSampler([1.0] * 23, 20, generator=torch.Generator().manual_seed(0))
        return torch.utils.data.DataLoader(Numbered(named=True), 4, sampler=drawn)

    whole = ol.train(small.cost, loader(), epochs=3, progress=False)
    for stop in (3, 5, 7):
        half = ol.train(small.cost, loader(), epochs=3, progress=False, steps=stop)
        assert same(ol.train(half, loader(), progress=False), whole)


def test_what_is_measured_has_every_row_whatever_is_dropped_in_training(small):
    loader = torch.utils.data.DataLoader(Numbered(named=True), 10, drop_last=True)
    assert ol.evaluate(small.cost, loader, ol.init(small.program, ol.Scope())) == ol.evaluate(
        small.cost, ROWS, ol.init(small.program, ol.Scope())
    )


def test_columns_of_different_lengths_are_refused_with_a_transform_too(small):
    with pytest.raises(ol.FeedError, match="different numbers of rows"):
        ol.train(small.cost, {**ROWS, "label": ROWS["label"][:9]}, transform=lambda batch: batch, progress=False)
