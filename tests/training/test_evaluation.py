"""`ol.evaluate`: every form of a model and of data gives the same numbers, as inference computes them, and no bit of the model changes."""

import numpy
import pandas
import pytest
import torch

import oarlock as ol

ROWS = 23


@pytest.fixture(scope="module")
def rows():
    random = numpy.random.default_rng(0)
    x = random.normal(3.0, 2.0, size=(ROWS, 3)).astype("float32")
    return {"x": x, "label": (x[:, 0] > 3.0).astype("int64")}


@pytest.fixture(scope="module")
def trained(rows, tmp_path_factory):
    """A model with batch norm, dropout and a metric, kept in a folder after some epochs; nobody changes it."""
    folder = tmp_path_factory.mktemp("runs") / "one"
    with ol.Program(seed=1):
        x, label = ol.layer.data("x", [3]), ol.layer.data("label", [], dtype="int64")
        logits = ol.layer.fc(ol.layer.dropout(ol.layer.batch_norm(x), 0.5), 2)
        cost = ol.layer.cross_entropy(logits, label)
        accuracy = ol.metric.accuracy(logits, label)
    result = ol.train(cost, rows, epochs=3, batch_size=8, show={"accuracy": accuracy}, run=folder, progress=False)
    return logits, {"loss": cost, "accuracy": accuracy}, result, folder


def bits(scope: ol.Scope) -> dict[str, bytes]:
    return {name: numpy.asarray(scope[name]).tobytes() for name in scope}


def test_every_form_of_a_model_gives_the_same_numbers(trained, rows, tmp_path):
    _, targets, result, folder = trained
    expected = ol.evaluate(targets, rows, result.parameters, batch_size=5)
    assert list(expected) == ["loss", "accuracy"]
    ol.save_model(result, tmp_path / "run.safetensors")
    ol.save_model(targets, result.parameters, tmp_path / "measured.safetensors")
    forms = [
        result,
        ol.load_model(tmp_path / "run.safetensors"),
        tmp_path / "run.safetensors",
        str(tmp_path / "measured.safetensors"),
        folder,
    ]
    for form in forms:
        assert ol.evaluate(form, rows, batch_size=5) == expected, form


def test_the_numbers_are_those_of_inference_weighed_by_rows(trained, rows):
    logits, targets, result, _ = trained
    told = ol.infer(logits, {"x": rows["x"]}, result.parameters)
    shares = told - told.max(1, keepdims=True)
    losses = numpy.log(numpy.exp(shares).sum(1)) - shares[numpy.arange(ROWS), rows["label"]]
    for batch_size in (1, 5, 22, 23, 256):  # the last batch has 3 rows, or 1
        found = ol.evaluate(targets, rows, result.parameters, batch_size=batch_size)
        assert found["loss"] == pytest.approx(losses.mean(), rel=1e-5), batch_size
        assert found["accuracy"] == pytest.approx((told.argmax(1) == rows["label"]).mean(), rel=1e-6)


def test_no_bit_of_a_model_changes_and_nothing_that_was_drawn_counts(trained, rows):
    _, targets, result, _ = trained
    before, program = bits(result.parameters), result.program.to_bytes()
    assert {"batch_norm_0.mean", "@STEP"} <= before.keys()
    first = ol.evaluate(result, rows, batch_size=5)
    assert ol.evaluate(targets, rows, result, batch_size=5) == first
    assert bits(result.parameters) == before
    assert result.program.to_bytes() == program


def test_every_kind_of_data_gives_the_same_numbers(trained, rows, tmp_path):
    _, _, result, _ = trained
    expected = ol.evaluate(result, rows, batch_size=5)
    frame = pandas.DataFrame({"a": rows["x"][:, 0], "b": rows["x"][:, 1], "c": rows["x"][:, 2], "label": rows["label"]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    numpy.savez(tmp_path / "rows.npz", **rows)
    columns = {"x": ["a", "b", "c"], "label": "label"}
    batches = [{name: column[at : at + 5] for name, column in rows.items()} for at in range(0, ROWS, 5)]
    pairs = torch.utils.data.TensorDataset(torch.from_numpy(rows["x"]), torch.from_numpy(rows["label"]))
    kinds = [
        tmp_path / "rows.npz",
        ol.data.read(tmp_path / "rows.csv", columns=columns),
        ol.data.read(tmp_path / "rows.parquet", columns=columns, drop_last=True),
        ol.data.read(frame, columns=columns),
        torch.utils.data.DataLoader(pairs, 4, shuffle=True),
        batches,
        lambda: iter(batches),
    ]
    for kind in kinds:
        assert ol.evaluate(result, kind, batch_size=5) == expected, kind


def test_what_is_no_model_is_refused(trained, rows, tmp_path):
    _, _, result, _ = trained
    with pytest.raises(ol.ArgumentError, match="a model has its own parameters"):
        ol.evaluate(result, rows, result.parameters)
    with pytest.raises(ol.MissingFileError, match="contains no run"):
        ol.evaluate(tmp_path, rows)
    with pytest.raises(ol.MissingFileError, match=r'there is no file ".*none"'):
        ol.evaluate(tmp_path / "none", rows)
