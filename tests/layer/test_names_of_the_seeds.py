"""The names that the documents of 2017 have for things of ours."""

import keyword
import sys

import numpy as np
import pytest
import torch

import oarlock as ol

X = np.array([[1.0, -2.0], [3.0, 0.5]], "float32")


def test_fc_is_called_at_the_top_too_and_conv_is_conv2d():
    assert ol.fc is ol.layer.fc
    with ol.Program() as program:
        image = ol.layer.data("image", shape=[1, 4, 4])
        out = ol.layer.conv(image, 2, 3, act="relu")
    assert (out.shape[1:], [op.type for op in program.main.ops]) == ((2, 2, 2), ["conv2d", "relu"])


@pytest.mark.mission("F11")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("scale", ["number", "variable"])
def test_fc_scales_the_product_and_trains_through_it(bias, scale):
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[2])
        factor = 3.0 if scale == "number" else ol.var(3.0, param=True)
        y = ol.layer.fc(x, 2, scale=factor, act="tanh", bias=bias, params=["w", "b"][: 1 + bias])
        gradients = ol.gradients([ol.op.reduce_sum(y)], program.parameters())
    scope = ol.init(program, ol.Scope())
    if bias:
        scope["b"] = np.array([0.25, -0.5], "float32")
    value, *slopes = ol.Executor().run(program, {"x": X}, [y, *gradients], scope=scope)
    w, b = scope["w"].numpy(), scope["b"].numpy() if bias else 0.0
    np.testing.assert_allclose(value, np.tanh(3.0 * (X @ w) + b), rtol=1e-5)
    inner = 1 - value**2
    expected = {"w": 3.0 * X.T @ inner, "b": inner.sum(0), "var_0": [((X @ w) * inner).sum()]}
    for parameter, slope in zip(program.parameters(), slopes, strict=True):
        np.testing.assert_allclose(slope, expected[parameter.name], rtol=1e-4, atol=1e-6)


@pytest.mark.mission("F11")
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("scale", ["number", "variable"])
def test_conv_scales_the_product_and_trains_through_it_as_pytorch_does(axes, bias, scale):
    image = np.random.default_rng(axes).normal(size=(2, 2, *(5,) * axes)).astype("float32")
    layer = {1: ol.layer.conv1d, 2: ol.layer.conv, 3: ol.layer.conv3d}[axes]
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=image.shape[1:])
        factor = -2.5 if scale == "number" else ol.var(-2.5, param=True)
        y = layer(x, 4, 3, padding=1, stride=2, groups=2, scale=factor, act="tanh", bias=bias, name="conv")
        gradients = ol.gradients([ol.op.reduce_sum(ol.op.square(y))], program.parameters())
    scope = ol.init(program, ol.Scope())
    if bias:
        scope["conv.b"] = np.array([0.25, -0.5, 1.0, 0.0], "float32")
    value, *slopes = ol.Executor().run(program, {"x": image}, [y, *gradients], scope=scope)
    leaves = {parameter.name: scope[parameter.name].clone().requires_grad_() for parameter in program.parameters()}
    convolve = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}[axes]
    product = convolve(torch.tensor(image), leaves["conv.w"], padding=1, stride=2, groups=2)
    shift = leaves["conv.b"].reshape(4, *(1,) * axes) if bias else 0.0
    expected = torch.tanh(leaves.get("var_0", -2.5) * product + shift)
    expected.square().sum().backward()
    np.testing.assert_allclose(value, expected.detach(), rtol=1e-5, atol=1e-6)
    for leaf, slope in zip(leaves.values(), slopes, strict=True):
        np.testing.assert_allclose(slope, leaf.grad, rtol=1e-4, atol=1e-5)


def test_fc_of_a_weight_that_there_is_multiplies_by_it_and_makes_nothing():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        w = ol.layer.create_parameter([2, 3], name="w")
        y = ol.layer.fc(w, x, act="relu", scale=2.0)
        one = ol.var(2.0, param=True)
        z = ol.layer.fc(one, ol.layer.data("column", shape=[1]))
        before = program.to_text()
        for wrong, error in (
            (lambda: ol.layer.fc(one, x), ol.ShapeError),
            (lambda: ol.layer.fc(w, x, output_size=3), ol.ArgumentError),
            (lambda: ol.layer.fc(w, x, params=["w", "b"]), ol.ArgumentError),
            (lambda: ol.layer.fc(x, w), ol.ShapeError),
        ):
            with pytest.raises(error):
                wrong()
        assert program.to_text() == before
    assert [parameter.name for parameter in program.parameters()] == ["w", one.name]
    scope = ol.init(program, ol.Scope())
    product, column = ol.Executor().run(program, {"x": X, "column": X[:, :1]}, [y, z], scope=scope)
    np.testing.assert_allclose(product, np.maximum(2.0 * X @ scope["w"].numpy(), 0), rtol=1e-6)
    np.testing.assert_array_equal(column, 2.0 * X[:, :1])


@pytest.mark.mission("F7", "F8")
def test_gemm_gives_one_value_or_with_an_activation_two():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        w = ol.layer.data("w", shape=[2, 2], batch=None)
        scale = ol.layer.data("scale", shape=[1], batch=None)
        alone = ol.op.gemm(x, w)
        scaled = ol.op.gemm(x, w, 3.0)
        product, activated = ol.op.gemm(x, w, scale, act=ol.op.relu)
        (slope,) = ol.gradients([ol.op.reduce_sum(activated)], [scale])
    weight = np.array([[1.0, 2.0], [-1.0, 0.5]], "float32")
    feed = {"x": X, "w": weight, "scale": np.array([2.0], "float32")}
    values = ol.Executor().run(program, feed, [alone, scaled, product, activated, slope], scope=ol.Scope())
    plain = X @ weight
    for value, wanted in zip(values, [plain, 3 * plain, 2 * plain, np.maximum(2 * plain, 0), [plain[plain > 0].sum()]], strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-6)
    with pytest.raises(ol.ArgumentError):
        ol.op.gemm(3, w)


def test_the_cross_entropy_of_probabilities_has_a_name_of_its_own():
    with ol.Program() as program:
        p = ol.layer.data("p", shape=[3], dtype="float64")
        label = ol.layer.data("label", shape=[], dtype="int64")
        cost = ol.layer.cross_entropy_of_probabilities(p, label)
        (slope,) = ol.gradients([cost], [p])
        with pytest.raises(ol.ShapeError):
            ol.layer.cross_entropy_of_probabilities(ol.layer.data("q", shape=[]), label)
    given, labels = np.array([[0.5, 0.2, 0.3], [0.9, 0.8, 0.1]]), np.array([1, 0])
    value, gradient = ol.Executor().run(program, {"p": given, "label": labels}, [cost, slope], scope=ol.Scope())
    np.testing.assert_allclose(value, -np.log([0.2, 0.9]).mean(), rtol=1e-12)
    np.testing.assert_allclose(gradient, [[0, -0.5 / 0.2, 0], [-0.5 / 0.9, 0, 0]], rtol=1e-12)


@pytest.mark.mission("A16", "A29")
def test_a_variable_holds_a_half_and_the_global_scope_is_had_by_its_name():
    with ol.scope.guard(ol.Scope()):
        x = ol.variable.half("x", 0.1)
        assert x.get(np.float16) == np.float16(0.1)
        assert x.is_type(np.float16)
        assert not x.is_type(float)
        assert ol.scope.current() is not ol.scope.global_()
    assert keyword.iskeyword("global")
    assert getattr(ol.scope, "global")() is ol.scope.global_() is ol.scope.global_scope() is ol.scope.current()


def test_mnist_is_had_in_its_two_parts(monkeypatch):
    read = []

    def fake(name):
        count = 6 if name.startswith("train") else 2
        return np.full((count, 28, 28), 255, "uint8") if "images" in name else np.arange(count, dtype="uint8")

    monkeypatch.setattr(type(ol.datasets.mnist.FILES), "read", lambda files, name, path: read.append((name, path)) or name)
    monkeypatch.setattr(sys.modules["oarlock.datasets.mnist"], "_elements", fake)
    train, test = ol.datasets.mnist.train("here"), ol.datasets.mnist.test("here")
    assert {name.partition("-")[0] for name, folder in read} == {"train", "t10k"}
    assert {folder for _, folder in read} == {"here"}
    assert (train["image"].shape, test["image"].shape, train["image"].max()) == ((6, 1, 28, 28), (2, 1, 28, 28), 1.0)
    assert (train["label"].tolist(), test["label"].dtype) == ([0, 1, 2, 3, 4, 5], np.int64)
    both = ol.datasets.mnist.split(path="here")
    for part, alone in zip(both, (train, test), strict=True):
        for name in alone:
            np.testing.assert_array_equal(part[name], alone[name])
