"""A model under ONNX Runtime: the feeds, the names, the checks and the errors are ours."""

import pytest

pytest.importorskip("onnxruntime")

import numpy

import oarlock as ol


def model_of(tmp_path, *, several: bool = False) -> ol.Model:
    with ol.Program(seed=5) as program:
        x = ol.layer.data("x", shape=[3])
        y = ol.layer.softmax(ol.layer.fc(x, 4, name="dense"))
    targets = {"predict": y, "input": x} if several else y
    ol.save_model(targets, ol.init(program, ol.Scope()), tmp_path / "model.safetensors")
    return ol.load_model(tmp_path / "model.safetensors")


X = numpy.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)


def test_it_gives_what_our_own_run_gives(tmp_path):
    model = model_of(tmp_path)
    expected = ol.infer(model, {"x": X})
    numpy.testing.assert_allclose(model.to_onnxruntime().infer({"x": X}), expected, rtol=1e-5)
    numpy.testing.assert_allclose(ol.infer(model, {"x": X}, backend="onnxruntime"), expected, rtol=1e-5)


def test_several_targets_are_a_dict_by_label(tmp_path):
    found = model_of(tmp_path, several=True).to_onnxruntime(threads=1).infer({"x": X})
    assert list(found) == ["predict", "input"]
    numpy.testing.assert_array_equal(found["input"], X)


def test_a_variable_and_its_values_are_computed_too():
    with ol.Program() as program:
        y = ol.layer.fc(ol.layer.data("x", shape=[3]), 2)
    scope = ol.init(program, ol.Scope())
    numpy.testing.assert_allclose(ol.infer(y, {"x": X}, scope, backend="onnxruntime"), ol.infer(y, {"x": X}, scope), rtol=1e-5)


@pytest.mark.parametrize("feed", [{}, {"z": X}, {"x": X.astype("float64")}, {"x": X[:, :2]}, {"x": "text"}])
def test_a_feed_that_does_not_fit_is_refused_in_the_same_words(tmp_path, feed):
    model = model_of(tmp_path)
    with pytest.raises(ol.FeedError) as ours:
        ol.infer(model, feed)
    with pytest.raises(ol.FeedError) as theirs:
        ol.infer(model, feed, backend="onnxruntime")
    assert str(theirs.value) == str(ours.value)


def test_ragged_values_are_fed_as_they_are_here(tmp_path):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], ragged=1)
        program.targets["sum"] = ol.layer.sequence_pool(x, "sum")
    model = ol.Model(program, ol.Scope())
    feed = {"x": ol.Ragged.from_lists([[[1.0, 2.0], [3.0, 4.0]], [], [[5.0, 6.0]]])}
    numpy.testing.assert_array_equal(ol.infer(model, feed, backend="onnxruntime"), [[4.0, 6.0], [0.0, 0.0], [5.0, 6.0]])


def test_new_values_are_seen(tmp_path):
    model = model_of(tmp_path)
    before = ol.infer(model, {"x": X}, backend="onnxruntime")
    session = model.sessions["onnxruntime"][2]
    ol.infer(model, {"x": X}, backend="onnxruntime")
    assert model.sessions["onnxruntime"][2] is session
    model.scope.set("dense.w", numpy.ones((3, 4), "float32"))
    after = ol.infer(model, {"x": X}, backend="onnxruntime")
    assert not numpy.array_equal(before, after)
    numpy.testing.assert_allclose(after, ol.infer(model, {"x": X}), rtol=1e-5)


def test_what_the_runtime_refuses_is_an_error_of_ours():
    with ol.Program() as program:
        program.targets["row"] = ol.layer.embedding(ol.layer.data("id", shape=[], dtype="int64"), (3, 2))
    model = ol.Model(program, ol.init(program, ol.Scope()))
    with pytest.raises(ol.KernelError, match="ONNX Runtime failed"):
        ol.infer(model, {"id": numpy.array([7])}, backend="onnxruntime")


def test_a_stranger_s_model_is_not_handed_on(tmp_path):
    model_of(tmp_path)
    model = ol.load_model(tmp_path / "model.safetensors", untrusted=True)
    with pytest.raises(ol.ArgumentError, match="limits, which ONNX Runtime cannot enforce"):
        model.to_onnxruntime()


def test_an_unknown_backend_is_refused(tmp_path):
    with pytest.raises(ol.ArgumentError, match='backend must be "inductor"'):
        ol.infer(model_of(tmp_path), {"x": X}, backend="tensorrt")
