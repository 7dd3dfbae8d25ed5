"""Layers against the modules of PyTorch that they stand for, with the same weights, forwards and backwards in float64."""

import math
from collections.abc import Callable

import numpy
import pytest
import torch
from beside_torch import require_like, transposed
from tolerances import LAYERS, MOMENTS

import oarlock as ol

nn = torch.nn


def values(*shape: int, seed: int = 0) -> numpy.ndarray:
    return numpy.random.default_rng(seed).standard_normal(shape)


def weight_and_bias(name: str, form=None) -> dict:
    return {f"{name}_0.w": "weight" if form is None else ("weight", form), f"{name}_0.b": "bias"}


def scale_and_bias(name: str) -> dict:
    return {f"{name}_0.scale": "weight", f"{name}_0.bias": "bias"}


def randomized(module: nn.Module) -> nn.Module:
    """The module with random numbers for all its parameters, those too that begin as zeros or ones."""
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


DENSE = {
    "linear": (lambda x: ol.layer.linear(x, 5), nn.Linear(4, 5), [values(2, 3, 4)], weight_and_bias("linear", transposed)),
    "linear without a bias": (
        lambda x: ol.layer.linear(x, 5, bias=False),
        nn.Linear(4, 5, bias=False),
        [values(4)],
        {"linear_0.w": ("weight", transposed)},
    ),
    "bilinear": (
        lambda x, y: ol.layer.bilinear(x, y, 5),
        nn.Bilinear(4, 3, 5),
        [values(2, 6, 4), values(2, 6, 3, seed=1)],
        weight_and_bias("bilinear", lambda w: w.permute(1, 2, 0)),
    ),
}

SIGNAL, IMAGE, VOLUME = values(2, 4, 9), values(2, 4, 6, 7), values(2, 4, 5, 3, 4)


def convolutions() -> dict:
    found = {}
    for axes, x in ((1, SIGNAL), (2, IMAGE), (3, VOLUME)):
        ours, theirs = getattr(ol.layer, f"conv{axes}d"), getattr(nn, f"Conv{axes}d")
        for how in (
            {"stride": 2, "padding": 1},
            {"dilation": 2, "groups": 2, "padding": "same"},
            {"padding": 1, "padding_mode": "circular"},
            {"padding": "same", "padding_mode": "replicate", "size": 2},
        ):
            how = dict(how)
            size = how.pop("size", 3)
            found[f"conv{axes}d {how}"] = (
                lambda x, ours=ours, how=how, size=size: ours(x, 6, size, **how),
                theirs(4, 6, size, **how),
                [x],
                weight_and_bias(f"conv{axes}d"),
            )
        ours, theirs = getattr(ol.layer, f"conv_transpose{axes}d"), getattr(nn, f"ConvTranspose{axes}d")
        how = {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}
        found[f"conv_transpose{axes}d"] = (
            lambda x, ours=ours, how=how: ours(x, 6, 3, **how),
            theirs(4, 6, 3, **how),
            [x],
            weight_and_bias(f"conv_transpose{axes}d"),
        )
    for axes, x in ((1, SIGNAL), (2, IMAGE)):
        theirs = getattr(nn, f"Conv{axes}d")
        found[f"depthwise {axes}"] = (
            lambda x, axes=axes: getattr(ol.layer, f"depthwise_conv{axes}d")(x, 3, multiplier=2),
            theirs(4, 8, 3, groups=4),
            [x],
            weight_and_bias(f"depthwise_conv{axes}d"),
        )
        name = f"separable_conv{axes}d"
        found[f"separable {axes}"] = (
            lambda x, axes=axes: getattr(ol.layer, f"separable_conv{axes}d")(x, 5, 3, padding="same"),
            nn.Sequential(theirs(4, 4, 3, groups=4, padding=1, bias=False), theirs(4, 5, 1)),
            [x],
            {f"{name}_0.depthwise.w": "0.weight", f"{name}_0.pointwise.w": "1.weight", f"{name}_0.pointwise.b": "1.bias"},
        )
    return found


def _divided_in_two(ceil_mode: bool) -> Callable:
    pool = nn.AvgPool2d((1, 3), (1, 2), (0, 1), ceil_mode, divisor_override=2)
    return lambda x: pool(x.unsqueeze(2)).squeeze(2)


def pools() -> dict:
    found = {}
    for axes, x in ((1, SIGNAL), (2, IMAGE), (3, VOLUME)):
        for ours, theirs, how in (
            ("max_pool", "MaxPool", {"stride": 2, "padding": 1, "ceil_mode": True}),
            ("max_pool", "MaxPool", {"dilation": 2} if axes < 3 else {}),
            ("average_pool", "AvgPool", {}),
        ):
            layer = getattr(ol.layer, f"{ours}{axes}d")
            found[f"{ours}{axes}d {how}"] = (
                lambda x, layer=layer, how=how: layer(x, 2, **how),
                getattr(nn, f"{theirs}{axes}d")(2, **how),
                [x],
                {},
            )
        layer = getattr(ol.layer, f"average_pool{axes}d")
        found[f"average_pool{axes}d without padding"] = (
            lambda x, layer=layer: layer(x, 3, stride=1, padding=1, count_padding=False),
            getattr(nn, f"AvgPool{axes}d")(3, 1, 1, count_include_pad=False),
            [x],
            {},
        )
        for ceil_mode in (False, True):
            module = getattr(nn, f"AvgPool{axes}d")
            found[f"average_pool{axes}d by a divisor, {ceil_mode}"] = (
                lambda x, layer=layer, how={"padding": 1, "ceil_mode": ceil_mode}: layer(x, 3, stride=2, divisor=2.0, **how),
                module(3, 2, 1, ceil_mode, divisor_override=2) if axes > 1 else _divided_in_two(ceil_mode),
                [x],
                {},
            )
        for ours, theirs in (("adaptive_average_pool", "AdaptiveAvgPool"), ("adaptive_max_pool", "AdaptiveMaxPool")):
            layer = getattr(ol.layer, f"{ours}{axes}d")
            found[f"{ours}{axes}d"] = (lambda x, layer=layer: layer(x, 2), getattr(nn, f"{theirs}{axes}d")(2), [x], {})
        over = tuple(range(2, axes + 2))
        layer = getattr(ol.layer, f"global_pool{axes}d")
        found[f"global average {axes}"] = (layer, lambda x, over=over: x.mean(over), [x], {})
        found[f"global max {axes}"] = (lambda x, layer=layer: layer(x, mode="max"), lambda x, over=over: x.amax(over), [x], {})
    found["lp_pool1d"] = (lambda x: ol.layer.lp_pool(x, 3, order=3.0), nn.LPPool1d(3.0, 3), [numpy.abs(SIGNAL)], {})
    found["lp_pool2d"] = (lambda x: ol.layer.lp_pool(x, 2, stride=1), nn.LPPool2d(2.0, 2, stride=1), [IMAGE], {})
    return found


UPSAMPLING = {
    "upsample by a scale": (lambda x: ol.layer.upsample(x, scale=2), nn.Upsample(scale_factor=2), [SIGNAL], {}),
    "upsample to a size": (lambda x: ol.layer.upsample(x, (9, 8), mode="bilinear"), nn.Upsample((9, 8), mode="bilinear"), [IMAGE], {}),
    "upsample cubically": (
        lambda x: ol.layer.upsample(x, scale=(2, 0.5), mode="bicubic", align_corners=True),
        nn.Upsample(scale_factor=(2, 0.5), mode="bicubic", align_corners=True), [IMAGE], {},
    ),
    "upsample volumes": (lambda x: ol.layer.upsample(x, 4, mode="trilinear"), nn.Upsample(4, mode="trilinear"), [VOLUME], {}),
}  # fmt: skip

NORMS = {
    "layer_norm": (ol.layer.layer_norm, nn.LayerNorm(7), [IMAGE], scale_and_bias("layer_norm")),
    "layer_norm of two axes": (lambda x: ol.layer.layer_norm(x, axes=2), nn.LayerNorm((6, 7)), [IMAGE], scale_and_bias("layer_norm")),
    "layer_norm without parameters": (
        lambda x: ol.layer.layer_norm(x, scale=False, bias=False), nn.LayerNorm(7, elementwise_affine=False), [IMAGE], {}
    ),
    "layer_norm without a bias": (
        lambda x: ol.layer.layer_norm(x, bias=False), nn.LayerNorm(7, bias=False), [IMAGE], {"layer_norm_0.scale": "weight"}
    ),
    "rms_norm": (lambda x: ol.layer.rms_norm(x, epsilon=1e-3), nn.RMSNorm(7, eps=1e-3), [IMAGE], {"rms_norm_0.scale": "weight"}),
    "rms_norm of two axes": (lambda x: ol.layer.rms_norm(x, axes=2, epsilon=1e-3), nn.RMSNorm((6, 7), eps=1e-3), [IMAGE],
                             {"rms_norm_0.scale": "weight"}),
    "group_norm": (lambda x: ol.layer.group_norm(x, 2), nn.GroupNorm(2, 4), [VOLUME], scale_and_bias("group_norm")),
    "instance_norm": (ol.layer.instance_norm, nn.InstanceNorm2d(4), [IMAGE], {}),
    "instance_norm with parameters": (
        lambda x: ol.layer.instance_norm(x, scale=True, bias=True), nn.InstanceNorm1d(4, affine=True), [SIGNAL],
        scale_and_bias("instance_norm"),
    ),
    "batch_norm1d": (ol.layer.batch_norm, nn.BatchNorm1d(4), [SIGNAL], scale_and_bias("batch_norm")),
    "batch_norm3d": (ol.layer.batch_norm, nn.BatchNorm3d(4), [VOLUME], scale_and_bias("batch_norm")),
    "batch_norm without parameters": (
        lambda x: ol.layer.batch_norm(x, scale=False, bias=False), nn.BatchNorm2d(4, affine=False), [IMAGE], {}
    ),
}  # fmt: skip

IDS = numpy.array([[1, 0, 3], [2, 2, 0]])
ONLY = numpy.array([[0, 0, 0], [2, 2, 0]])
EMBEDDINGS = {
    "embedding": (lambda x: ol.layer.embedding(x, (5, 4), dtype="float64"), nn.Embedding(5, 4), [IDS], {"embedding_0.w": "weight"}),
    **{
        f"bag, {mode}": (
            lambda x, mode=mode: ol.layer.embedding_bag(x, (5, 4), mode=mode, dtype="float64"),
            nn.EmbeddingBag(5, 4, mode=mode), [IDS], {"embedding_bag_0.w": "weight"},
        )
        for mode in ("mean", "sum", "max")
    },
    "weighted bag": (
        lambda x, w: ol.layer.embedding_bag(x, (5, 4), w, mode="sum", dtype="float64"),
        nn.EmbeddingBag(5, 4, mode="sum"), [IDS, values(2, 3)], {"embedding_bag_0.w": "weight"},
    ),
}  # fmt: skip

ALL = {**DENSE, **convolutions(), **pools(), **UPSAMPLING, **NORMS, **EMBEDDINGS}


@pytest.mark.parametrize("case", ALL.values(), ids=ALL)
def test_a_layer_is_that_of_pytorch(case):
    layer, module, inputs, copied = case
    if isinstance(module, nn.Module):
        randomized(module)
    if isinstance(module, nn.EmbeddingBag) and len(inputs) == 2:
        require_like(layer, module, inputs, copied, call=lambda ids, w: module(ids, per_sample_weights=w))
    else:
        require_like(layer, module, inputs, copied)


@pytest.mark.parametrize("name", ["batch_norm1d", "batch_norm3d", "batch_norm without parameters", "instance_norm", "group_norm"])
def test_a_normalization_in_training_is_that_of_pytorch(name):
    layer, module, inputs, copied = ALL[name]
    require_like(layer, randomized(module), inputs, copied, training=True)


@pytest.mark.parametrize("mode", ["embedding", "mean", "sum", "max"])
def test_a_padding_id_gives_zeros_and_no_gradient(mode):
    ids = torch.from_numpy(ONLY)
    if mode == "embedding":
        module = nn.Embedding(5, 4, padding_idx=0)
        layer = lambda x: ol.layer.embedding(x, (5, 4), padding_index=0, dtype="float64")  # noqa: E731
    else:
        module = nn.EmbeddingBag(5, 4, padding_idx=0, mode=mode)
        layer = lambda x: ol.layer.embedding_bag(x, (5, 4), padding_index=0, mode=mode, dtype="float64")  # noqa: E731
    name = "embedding" if mode == "embedding" else "embedding_bag"
    require_like(layer, module, [ids], {f"{name}_0.w": "weight"})


# Activations with parameters, gates, compositions


def highway(x: torch.Tensor, inside: nn.Linear, gate: nn.Linear) -> torch.Tensor:
    """Srivastava, Greff and Schmidhuber, 2015, equation 3."""
    t = torch.sigmoid(gate(x))
    return torch.relu(inside(x)) * t + x * (1 - t)


def test_a_slope_that_is_trained_is_that_of_pytorch():
    slopes = {"prelu_0.slope": "weight"}
    require_like(ol.layer.prelu, randomized(nn.PReLU()), [IMAGE], slopes)
    require_like(lambda x: ol.layer.prelu(x, shared=False), randomized(nn.PReLU(4)), [IMAGE], slopes)
    with ol.Program() as program:
        ol.layer.prelu(ol.layer.data("x", shape=[3]))
    assert ol.init(program, ol.Scope())["prelu_0.slope"].tolist() == torch.nn.PReLU().weight.tolist()


def test_maxout_takes_the_largest_of_its_pieces():
    require_like(
        lambda x: ol.layer.maxout(x, 5, pieces=3),
        module := randomized(nn.Linear(4, 15)),
        [values(2, 3, 4)],
        weight_and_bias("maxout", transposed),
        call=lambda x: module(x).unflatten(-1, (5, 3)).amax(-1),
    )


def test_a_highway_carries_what_its_gate_says():
    pair = nn.ModuleDict({"inside": nn.Linear(4, 4), "gate": nn.Linear(4, 4)})
    names = {f"highway_0.{ours}": (f"{theirs}.weight", transposed) for ours, theirs in (("w", "inside"), ("gate.w", "gate"))}
    names |= {"highway_0.b": "inside.bias", "highway_0.gate.b": "gate.bias"}
    require_like(ol.layer.highway, randomized(pair), [values(2, 3, 4)], names, call=lambda x: highway(x, pair["inside"], pair["gate"]))
    with ol.Program() as program:
        ol.layer.highway(ol.layer.data("x", shape=[3]))
    assert (ol.init(program, ol.Scope())["highway_0.gate.b"] == -1.0).all()


def test_layers_in_a_row_are_those_of_pytorch():
    module = randomized(nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Identity(), nn.Linear(6, 2)))
    names = {f"fc_{ours}.{end}": (f"{theirs}.weight", transposed) for ours, theirs in ((0, 0), (1, 3)) for end in "w"}
    names |= {"fc_0.b": "0.bias", "fc_1.b": "3.bias"}
    layers = [lambda x: ol.layer.fc(x, 6), "relu", ol.layer.identity, lambda x: ol.layer.fc(x, 2)]
    require_like(lambda x: ol.layer.sequential(x, *layers), module, [values(3, 4)], names)


def test_a_layer_in_a_row_that_is_refused_takes_back_those_before_it():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        with pytest.raises(ol.ShapeError):
            ol.layer.sequential(x, lambda x: ol.layer.fc(x, 3), lambda x: ol.layer.conv2d(x, 3, 3))
        with pytest.raises(ol.ArgumentError) as raised:
            ol.layer.sequential(x, lambda x: ol.layer.fc(x, 3), lambda x: 3)
        assert raised.value.message == "sequential: layer 1 returned int, not a variable"
    assert program.main.ops == []
    assert program.persistables() == []


def test_a_layer_on_each_step_is_that_of_rows():
    module = randomized(nn.Conv2d(4, 6, 3))
    x = values(2, 3, 4, 6, 7)
    require_like(
        lambda x: ol.layer.time_distributed(x, lambda step: ol.layer.conv2d(step, 6, 3)),
        module,
        [x],
        weight_and_bias("conv2d"),
        call=lambda x: module(x.flatten(0, 1)).unflatten(0, (2, 3)),
    )
    with ol.Program() as program:
        clips = ol.layer.data("clips", shape=["t", 4, 6, 7])
        y = ol.layer.time_distributed(clips, lambda step: ol.layer.global_pool2d(ol.layer.conv2d(step, 5, 3)))
        with pytest.raises(ol.ShapeError) as raised:
            ol.layer.time_distributed(clips, lambda step: ol.op.reduce_sum(step, axis=0))
    assert y.shape == ("n", "t", 5)
    assert raised.value.message == "time_distributed: the layer returned float32[4, 6, 7] for n*t rows"
    (found,) = ol.Executor(check=True).run(program, {"clips": x.astype("float32")}, [y], scope=ol.init(program, ol.Scope()))
    assert found.shape == (2, 3, 5)


# Dropout of channels, and with moments that stay


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_channels_are_dropped_whole(axes):
    shape = [40, 50, *[3] * axes]
    with ol.Program() as program:
        x = ol.layer.data("x", shape=shape[1:])
        y = getattr(ol.layer, f"dropout{axes}d")(x, 0.25)
        (dx,) = ol.gradients([ol.op.reduce_sum(y)], [x])
    feed = {"x": numpy.ones(shape, "float32")}
    kept, slopes = ol.Executor().run(program, feed, [y, dx], scope=ol.Scope(), training=True)
    by_channel = kept.reshape(2000, -1)
    assert (by_channel == by_channel[:, :1]).all()
    assert set(numpy.unique(by_channel)) == {0.0, numpy.float32(1.0) / numpy.float32(0.75)}
    assert abs((by_channel[:, 0] == 0).mean() - 0.25) < MOMENTS * math.sqrt(0.25 * 0.75 / 2000)
    assert numpy.array_equal(kept, slopes)
    assert numpy.array_equal(ol.Executor().run(program, feed, [y], scope=ol.Scope())[0], feed["x"])


@pytest.mark.parametrize(("layer", "shape"), [(ol.layer.alpha_dropout, [400, 500]), (ol.layer.feature_alpha_dropout, [400, 500])])
def test_alpha_dropout_keeps_means_and_variances(layer, shape):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=shape[1:], dtype="float64")
        y = layer(x, 0.2)
    feed = {"x": values(*shape)}
    (found,) = ol.Executor().run(program, feed, [y], scope=ol.Scope(), training=True)
    assert abs(found.mean()) < 2 * MOMENTS / math.sqrt(found.size)
    assert abs(found.std() - 1.0) < 2 * MOMENTS / math.sqrt(found.size)
    theirs = torch.nn.functional.alpha_dropout(torch.zeros(10_000, dtype=torch.float64), 0.2, training=True)  # two values, those of ours
    (zeros,) = ol.Executor().run(program, {"x": numpy.zeros(shape)}, [y], scope=ol.Scope(), training=True)
    numpy.testing.assert_allclose(numpy.unique(zeros), torch.unique(theirs).numpy(), rtol=LAYERS[0])
    assert numpy.array_equal(ol.Executor().run(program, feed, [y], scope=ol.Scope())[0], feed["x"])


def test_features_are_dropped_whole():
    with ol.Program() as program:
        y = ol.layer.feature_alpha_dropout(ol.layer.data("x", shape=[50, 3, 3]), 0.5)
    (found,) = ol.Executor().run(program, {"x": numpy.ones((10, 50, 3, 3), "float32")}, [y], scope=ol.Scope(), training=True)
    by_channel = found.reshape(500, 9)
    assert (by_channel == by_channel[:, :1]).all()
    assert len(numpy.unique(by_channel)) == 2


def test_what_has_no_channels_to_drop_is_refused():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        with pytest.raises(ol.ShapeError) as raised:
            ol.layer.dropout2d(x)
        assert raised.value.message == "dropout2d: x is float[n c h w], not float32[n, 4]"
        with pytest.raises(ol.ArgumentError) as refused:
            ol.layer.alpha_dropout(x, 1.0)
        assert refused.value.message == "alpha dropout: rate must be in [0, 1), not 1.0"
    assert program.main.ops == []


def test_a_mode_of_other_axes_is_refused():
    with ol.Program():
        with pytest.raises(ol.ArgumentError) as raised:
            ol.layer.upsample(ol.layer.data("x", shape=[4, 9]), scale=2, mode="bilinear")
        assert raised.value.message == 'upsample: mode "bilinear" needs 2 axes, not 1'
        with pytest.raises(ol.ShapeError) as refused:
            ol.layer.upsample(ol.layer.data("y", shape=[4]), scale=2)
        assert refused.value.message == "upsample: x must have one to three axes after its channels, not float32[n, 4]"
