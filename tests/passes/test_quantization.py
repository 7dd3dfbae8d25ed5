"""Weights as int8, and rows quantised as they run: visible in the program, close to the floats, smaller in the file."""

import io

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.passes.precision.quantization import QuantizedWeight
from oarlock.registry.catalogue import standard
from oarlock.registry.type_check import require_legal
from oarlock.tensor.dtype import quantized

IMAGES = numpy.random.default_rng(0).normal(size=(5, 3, 8, 8)).astype("float32")


def model_of(program: ol.Program, target: ol.Var) -> ol.Model:
    scope = ol.init(program, ol.Scope())
    return ol.Model(ol.prune(program, {"y": target}), scope)


def perceptron() -> ol.Model:
    with ol.Program(seed=0) as program:
        hidden = ol.op.relu(ol.layer.fc(ol.layer.data("x", [64]), 96, name="first"))
        y = ol.layer.fc(hidden, 10, name="second")
    return model_of(program, y)


def compute(model: ol.Model, feed: dict[str, object], **options: object) -> numpy.ndarray:
    executor = ol.Executor(**options)  # type: ignore[arg-type]
    return executor.run(model.program, feed, list(model.program.targets.values()), scope=model.scope, training=False)[0]  # type: ignore[return-value]


def close(found: numpy.ndarray, expected: numpy.ndarray) -> bool:
    """Whether the errors are as small as 127 steps from zero to the largest value give."""
    return bool(numpy.abs(found - expected).max() < 0.03 * numpy.abs(expected).max())


def test_products_become_products_of_integers_and_small_weights_stay():
    model = perceptron()
    small = ol.quantize(model, products_at_least=0)
    require_legal(small.program, standard)
    lines = [line.strip() for line in small.program.to_text(source=False).splitlines() if " = " in line]
    assert lines[3:] == [
        "x@INT8_0: int8[n, 64], x@SCALE_0: float32[n] = quantize_rows(x=x)",
        "first.w@INT8_0: int8[64, 96] = matrix_transpose(x=first.w@INT8)",
        "first.out: float32[n, 96] = linear_int8(q=x@INT8_0, scale=x@SCALE_0, w=first.w@INT8_0, w_scale=first.w@SCALE, bias=first.b)",
        "relu_0: float32[n, 96] = relu(x=first.out)",
        "second.out: float32[n, 10] = linear(x=relu_0, w=second.w, bias=second.b)",
        "target y = second.out",
    ]
    assert [var.name for var in model.program.parameters()] == ["first.w", "first.b", "second.w", "second.b"]  # as it was


@pytest.mark.parametrize("mode", ["dynamic", "weights"])
@pytest.mark.parametrize("options", [{"interpret": True}, {"passes": ()}, {}], ids=["interpreter", "plan", "passes"])
def test_it_predicts_what_floats_predict_but_for_rounding(mode, options):
    model = perceptron()
    feed = {"x": numpy.random.default_rng(1).normal(size=(7, 64)).astype("float32")}
    small = ol.quantize(model, mode, products_at_least=0)
    found, expected = compute(small, feed, **options), compute(model, feed)
    assert close(found, expected)
    assert not numpy.array_equal(found, expected)
    alone = numpy.concatenate([compute(small, {"x": row[None]}, **options) for row in feed["x"]])
    numpy.testing.assert_allclose(alone, found, rtol=1e-5, atol=1e-5)  # each row has a scale of its own


@pytest.mark.parametrize("mode", ["dynamic", "weights"])
def test_its_file_is_a_quarter_and_loads(mode, tmp_path):
    with ol.Program(seed=0) as program:
        y = ol.layer.fc(ol.layer.data("x", [256]), 256)
    model = model_of(program, y)
    small = ol.quantize(model, mode, products_at_least=0)
    sizes = {}
    for name, each in (("model", model), ("small", small)):
        ol.save_model(each, tmp_path / name)
        sizes[name] = (tmp_path / name).stat().st_size
    assert sizes["small"] < 0.27 * sizes["model"]
    feed = {"x": numpy.random.default_rng(1).normal(size=(3, 256)).astype("float32")}
    assert numpy.array_equal(ol.infer(ol.load_model(tmp_path / "small"), feed), ol.infer(small, feed))


@pytest.mark.parametrize("mode", ["dynamic", "weights"])
def test_a_module_of_pytorch_with_a_table_and_a_convolution_is_quantised(mode):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(300, 64)
            self.convolution = torch.nn.Conv2d(3, 64, 5, padding=2)
            self.product = torch.nn.Linear(64, 128)

        def forward(self, image, ids):
            return self.product(self.convolution(image).mean((2, 3)) + self.table(ids))

    torch.manual_seed(0)
    net, ids = Net().eval(), torch.tensor([3, 0, 299, 7, 7])
    imported = ol.from_torch(net, (torch.tensor(IMAGES), ids))
    with ol.Program() as program:
        y = imported(ol.layer.data("image", [3, 8, 8], batch=5), ol.layer.data("ids", [], batch=5, dtype="int64"))
    small = ol.quantize(model_of(program, y), mode, products_at_least=0)
    require_legal(small.program, standard)
    kinds = [op.type for op in small.program.main.ops]
    assert (kinds.count("dequantize"), kinds.count("linear_int8")) == ((2, 1) if mode == "dynamic" else (3, 0))
    assert close(compute(small, {"image": IMAGES, "ids": ids.numpy()}), net(torch.tensor(IMAGES), ids).detach().numpy())


def test_a_weight_in_a_loop_is_quantised_where_the_loop_reads_it():
    with ol.Program(seed=0) as program:
        y = ol.layer.lstm(ol.layer.data("x", ["n", 64], batch="t"), 64)[0]
    model = model_of(program, y)
    feed = {"x": numpy.random.default_rng(1).normal(size=(6, 2, 64)).astype("float32")}
    for mode in ("dynamic", "weights"):
        small = ol.quantize(model, mode, products_at_least=0)
        require_legal(small.program, standard)
        assert close(compute(small, feed), compute(model, feed))
        assert close(compute(small, feed, interpret=True), compute(model, feed))


def test_a_weight_that_is_read_otherwise_too_is_dequantised_for_that():
    with ol.Program(seed=0) as program:
        w = ol.layer.create_parameter([64, 64], name="w")
        x = ol.layer.data("x", [64])
        y = ol.op.linear(x, w) + ol.op.linear(x, ol.op.matrix_transpose(w)) + ol.op.reduce_sum(ol.op.square(w))
    model = model_of(program, y)
    feed = {"x": numpy.random.default_rng(1).normal(size=(4, 64)).astype("float32")}
    small = ol.quantize(model, products_at_least=0)
    require_legal(small.program, standard)
    assert close(compute(small, feed), compute(model, feed))


def test_floats_of_rounded_weights_are_computed_once():
    with ol.Program(seed=0) as program:
        y = ol.layer.fc(ol.layer.data("x", [64]), 64, name="first")
    small = ol.quantize(model_of(program, y), "weights")
    prepared = small.executor.prepare(small.program, list(small.program.targets), scope=small.scope, training=False)
    text = small.executor.plan(small.program, list(small.program.targets)).text
    runs, _, once = text.partition("def precompute(")
    assert ("dequantize" in runs, "dequantize" in once) == (False, True)
    feed = {"x": numpy.ones((2, 64), "float32")}
    before = prepared(feed)[0]
    assert numpy.array_equal(prepared(feed)[0], before)
    small.scope.set("first.w@SCALE", small.scope["first.w@SCALE"].numpy() * 2.0)  # and again where they change
    numpy.testing.assert_allclose(prepared(feed)[0], 2.0 * before, rtol=1e-5)


def test_the_pass_says_what_became_of_the_weights():
    program = perceptron().program
    assert ol.passes.quantize(program, "weights", at_least=0) == [
        QuantizedWeight("first.w", "first.w@INT8", "first.w@SCALE", 1, False),
        QuantizedWeight("second.w", "second.w@INT8", "second.w@SCALE", 1, False),
    ]


def test_a_weight_is_rounded_to_the_nearest_of_255_numbers():
    values = torch.randn(30, 20, generator=torch.Generator().manual_seed(0))
    for axis in (0, 1):
        integers, scale = quantized(values, axis)
        assert scale.shape == (values.shape[axis],)
        shape = (-1, 1) if axis == 0 else (1, -1)
        assert ((integers * scale.reshape(shape) - values).abs() <= scale.reshape(shape) * 0.5001).all()
        assert integers.abs().max() == 127
    assert torch.equal(quantized(torch.zeros(2, 3), 0)[0], torch.zeros(2, 3, dtype=torch.int8))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_rows_of_other_dtypes_are_quantised_too(dtype):
    with ol.Program() as program:
        x = ol.layer.data("x", [4], dtype=dtype)
        q, scale = ol.op.quantize_rows(x)
        y = ol.op.cast(q, dtype="float64") * ol.op.cast(ol.op.reshape(scale, (-1, 1)), dtype="float64")
    values = torch.tensor([[1.0, -2.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0]], dtype=getattr(torch, dtype))
    found = ol.Executor().run(program, {"x": values}, [y], scope=ol.Scope())[0]
    numpy.testing.assert_allclose(found, values.double().numpy(), atol=0.02)
    assert ol.Executor().run(program, {"x": values[:0]}, [y], scope=ol.Scope())[0].shape == (0, 4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-6])
def test_wide_products_in_half_precision_are_as_close_as_those_of_float32(dtype, size):
    with ol.Program(seed=0) as program:
        y = ol.layer.fc(ol.layer.data("x", [1024], dtype=dtype), 8, bias=False)
    model = model_of(program, y)
    values = (size * torch.randn(4, 1024, generator=torch.Generator().manual_seed(0))).to(getattr(torch, dtype))
    expected = values.double() @ model.scope["fc_0.w"].double()
    found = compute(ol.quantize(model, products_at_least=0), {"x": values})
    assert close(torch.as_tensor(found).double().numpy(), expected.numpy())


def test_products_with_weights_that_are_not_large_stay_products_of_floats():
    with ol.Program(seed=0) as program:
        y = ol.layer.fc(ol.layer.fc(ol.layer.data("x", [64]), 2048, name="large"), 60, name="middle")
    small = ol.quantize(model_of(program, y))
    assert [op.type for op in small.program.main.ops if op.type in ("linear", "linear_int8")] == ["linear_int8", "linear"]
    assert small.program.main.var("middle.w@INT8").dtype is ol.DType.INT8
    assert small.scope["middle.w@INT8"].shape == (2048, 60)


def test_what_cannot_be_done_is_refused():
    with ol.Program() as program:
        cost = ol.layer.mean(ol.layer.fc(ol.layer.data("x", [64]), 64))
        ol.optimizer.SGD(0.1).minimize(cost)
    with pytest.raises(ol.ProgramError, match="this program trains, and integers have no gradients"):
        ol.passes.quantize(program)
    with pytest.raises(ol.ArgumentError, match='the mode is "dynamic" or "weights", not \'static\''):
        ol.passes.quantize(ol.Program(), "static")  # type: ignore[arg-type]
    with pytest.raises(ol.ArgumentError, match="quantize takes a program, not <Var"):
        ol.passes.quantize(cost)  # type: ignore[arg-type]
    with pytest.raises(ol.ArgumentError, match="quantize takes a model, such as ol.load_model"):
        ol.quantize(program)  # type: ignore[arg-type]
    with pytest.raises(ol.UnsetVarError, match='the model has no value for "fc_0.w"'):
        ol.quantize(ol.Model(ol.prune(program, [cost]), ol.Scope()), at_least=0)
    file = io.BytesIO()
    ol.save_model(ol.quantize(perceptron()), file)
    assert file.getvalue()
