"""A filter that is packed once gives the bits, and the memory format, of one that is not, whatever is convolved."""

import itertools
import sys

import numpy as np
import pytest
import torch

import oarlock as ol
from oarlock.backend.torch.variants import variants_of

((PACK, KERNEL),) = variants_of(ol.op.conv2d).prepacked.values()

SIZES = [(1, 1, 28), (1, 20, 12), (1, 3, 6), (3, 3, 9), (2, 1, 13), (32, 16, 7), (1, 16, 40)]
WINDOWS = [(1, 1), (3, 3), (5, 5), (2, 3), (1, 5)]
FORMATS = [torch.contiguous_format, torch.channels_last]


@pytest.mark.parametrize(("n", "c", "h"), SIZES)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_packed_filter_gives_the_bits_of_the_kernel(n, c, h, window, dtype):
    generator = torch.Generator().manual_seed(3)
    x, bias = torch.randn(n, c, h, h, generator=generator, dtype=dtype), torch.randn(8, generator=generator, dtype=dtype)
    filter = torch.randn(8, c, *window, generator=generator, dtype=dtype)
    for stride, padding, formats in itertools.product([(1, 1), (2, 1)], [(0, 0), (1, 1)], itertools.product(FORMATS, FORMATS)):
        images, laid = (value.contiguous(memory_format=format) for value, format in zip((x, filter), formats, strict=True))
        packed = PACK(laid, stride=stride, padding=padding)
        for shift in (bias, None):
            expected = ol.op.conv2d.kernel(images, laid, shift, stride=stride, padding=padding)
            y = KERNEL(images, laid, shift, packed=packed, stride=stride, padding=padding)
            assert torch.equal(y, expected)
            assert y.stride() == expected.stride()


@pytest.mark.parametrize("groups", [2, 8])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 3)])
@pytest.mark.parametrize("n", [1, 3])
def test_a_packed_filter_of_groups_or_with_gaps_gives_the_bits_of_the_kernel(groups, dilation, n):
    generator = torch.Generator().manual_seed(4)
    x, bias = torch.randn(n, 8, 13, 12, generator=generator), torch.randn(8, generator=generator)
    filter = torch.randn(8, 8 // groups, 3, 3, generator=generator)
    how = {"stride": (2, 1), "padding": (1, 1), "dilation": dilation, "groups": groups}
    for format, shift in itertools.product(FORMATS, (bias, None)):
        images = x.contiguous(memory_format=format)
        expected = ol.op.conv2d.kernel(images, filter, shift, **how)
        y = KERNEL(images, filter, shift, packed=PACK(filter, **how), **how)
        assert torch.equal(y, expected)
        assert y.stride() == expected.stride()
        double = torch.conv2d(x.double(), filter.double(), None if shift is None else shift.double(), **how)
        torch.testing.assert_close(y.double(), double, rtol=1e-4, atol=1e-4)


def test_some_filters_are_packed_and_convolved_as_such():
    filter = torch.ones(8, 3, 3, 3)
    packed = PACK(filter, stride=(1, 1), padding=(0, 0))
    if packed is None:
        pytest.skip("PyTorch has no oneDNN here")
    changed = PACK(2 * filter, stride=(1, 1), padding=(0, 0))
    x = torch.ones(2, 3, 6, 6)
    assert KERNEL(x, filter, packed=changed, stride=(1, 1), padding=(0, 0)).unique().tolist() == [54.0]
    torch._C._set_mkldnn_enabled(False)
    try:
        assert KERNEL(x, filter, packed=changed, stride=(1, 1), padding=(0, 0)).unique().tolist() == [27.0]
    finally:
        torch._C._set_mkldnn_enabled(True)
    assert KERNEL(x[:1], filter, packed=changed, stride=(1, 1), padding=(0, 0)).unique().tolist() == [27.0], "PyTorch has another kernel"


@pytest.fixture
def convolutions():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[3, 12, 12])
        program.targets["y"] = ol.layer.conv2d(ol.layer.conv2d(x, 8, 5), 8, 3)
    return program


def test_filters_are_packed_for_many_runs_not_for_one(convolutions, monkeypatch):
    packed = []
    module = sys.modules["oarlock.backend.torch.convolution"]
    reorder = module.pack_filter
    monkeypatch.setattr(module, "pack_filter", lambda given, *how: (packed.append(given.shape), reorder(given, *how))[1])
    scope, feed = ol.init(convolutions, ol.Scope()), {"x": torch.randn(2, 3, 12, 12)}
    (once,) = ol.Executor().run(convolutions, feed, ["y"], scope=scope)
    assert not packed
    step = ol.Executor().prepare(convolutions, ["y"], scope=scope)
    for _ in range(3):
        assert np.array_equal(step(feed)[0], once)
    assert len(packed) == 2
    scope["conv2d_0.w"] = scope["conv2d_0.w"]  # which others may write over from now on
    for _ in range(3):
        assert np.array_equal(step(feed)[0], once)
    assert len(packed) == 2


def test_an_inference_packs_its_filters_once_and_training_none(convolutions):
    program, y = convolutions, convolutions.targets["y"]
    scope = ol.init(program, ol.Scope())
    text = ol.Executor().plan(program, ["y"]).text
    main, ahead = text.split("def precompute")
    assert main.count("packed=filter_packed") == ahead.count("= pack") == 2
    feed = {"x": torch.randn(2, 3, 12, 12)}
    step = ol.Executor().prepare(program, ["y"], scope=scope, return_numpy=False)
    (expected,) = ol.Executor(interpret=True).run(program, feed, ["y"], scope=scope, return_numpy=False)
    for _ in range(3):
        assert torch.equal(step(feed)[0], expected)
    for name in list(scope):
        scope[name].mul_(0.5)
    (expected,) = ol.Executor(interpret=True).run(program, feed, ["y"], scope=scope, return_numpy=False)
    assert torch.equal(step(feed)[0], expected)
    with program:
        ol.optimizer.SGD(0.1).minimize(ol.layer.mean(y))
    assert "pack" not in ol.Executor().plan(program, ["y"]).text
