"""Convolutions that are computed as products, where that is faster than a library: the same as those of double precision."""

import pytest
import torch

import oarlock as ol
from oarlock.tensor import convolution
from oarlock.tensor.convolution import choose_gradients, is_product

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="PyTorch was built without what is faster otherwise")

FORMATS = {"plain": torch.contiguous_format, "last": torch.channels_last}
OPTIONS = {"dilation": (1, 1), "groups": 1}

# images, filters, stride, padding, and which of the convolution and its gradients of x and filter are products
PRODUCTS = {
    "few places": ((2, 96, 3, 4), (320, 96, 3, 3), (1, 1), (1, 1), (True, True, True)),
    "few places, far apart": ((2, 96, 5, 6), (320, 96, 3, 3), (2, 1), (1, 0), (True, True, True)),
    "some places": ((2, 64, 9, 8), (128, 64, 3, 3), (1, 1), (1, 1), (False, False, True)),
    "filters of one place": ((3, 130, 5, 6), (140, 130, 1, 1), (1, 1), (0, 0), (True, True, True)),
    "filters of one place, far apart": ((3, 130, 5, 6), (140, 130, 1, 1), (2, 3), (0, 0), (True, True, True)),
    "images of one place": ((3, 130, 1, 1), (140, 130, 1, 1), (1, 1), (0, 0), (True, True, True)),
    "small filters of one place": ((2, 3, 4, 5), (4, 3, 1, 1), (1, 1), (0, 0), (False, True, True)),
    "one channel": ((2, 1, 4, 4), (20000, 1, 1, 1), (1, 1), (0, 0), (True, True, True)),
    "many places": ((2, 64, 24, 24), (128, 64, 3, 3), (1, 1), (1, 1), (False, False, False)),
}


def given(shape, filter_shape, format, *, groups=1):
    generator = torch.Generator().manual_seed(shape[1])
    drawn = (torch.randn(each, generator=generator) for each in (shape, filter_shape, (filter_shape[0],)))
    x, filter, bias = drawn
    return x.contiguous(memory_format=format), filter.contiguous(memory_format=format), bias


def require_near(found, expected):
    scale = float(expected.abs().max())
    torch.testing.assert_close(found.double() / scale, expected / scale, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("biased", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("name", list(PRODUCTS))
def test_what_is_a_product_is_the_convolution(name, biased, format):
    shape, filter_shape, stride, padding, _ = PRODUCTS[name]
    x, filter, bias = given(shape, filter_shape, format)
    options = {"stride": stride, "padding": padding}
    wide = [value.double().requires_grad_() for value in (x, filter, bias)]
    expected = torch.conv2d(*wide[: 2 + biased], **options)
    y = ol.op.conv2d.kernel(x, filter, bias if biased else None, **options)
    require_near(y, expected.detach())
    dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).contiguous(memory_format=format)
    gradients = torch.autograd.grad(expected, wide[: 2 + biased], dy.double())
    kernels = {name: ol.op.__getattr__(name).kernel for name in ("conv2d_dx", "conv2d_dfilter", "conv2d_backward")}
    require_near(kernels["conv2d_dx"](filter, dy, x.shape, **options), gradients[0])
    require_near(kernels["conv2d_dfilter"](x, dy, filter.shape, **options), gradients[1])
    for found, wanted in zip(kernels["conv2d_backward"](x, filter, dy, **options), gradients, strict=False):
        require_near(found, wanted)


@pytest.mark.parametrize("name", list(PRODUCTS))
def test_sizes_tell_what_is_a_product(name):
    shape, filter_shape, stride, padding, expected = PRODUCTS[name]
    x, filter, _ = given(shape, filter_shape, torch.contiguous_format)
    assert is_product(x, filter_shape, stride, padding, **OPTIONS) is expected[0]
    dy = torch.conv2d(x, filter, None, stride, padding)
    chosen = choose_gradients(dy, shape, filter_shape, padding, (True, True, False), **OPTIONS)
    assert [each is not None for each in chosen] == list(expected[1:])
    assert choose_gradients(dy, shape, filter_shape, padding, (False, False, True), **OPTIONS) == (None, None)


@pytest.mark.parametrize("change", [{"dilation": (2, 1)}, {"groups": 2}, {}], ids=["dilation", "groups", "double precision"])
def test_other_convolutions_are_the_library_s(change):
    shape, filter_shape, stride, padding, _ = PRODUCTS["few places"]
    dtype, options = torch.float32 if change else torch.float64, OPTIONS | change
    x, dy = torch.zeros(shape, dtype=dtype), torch.zeros(2, 320, 3, 4, dtype=dtype)
    assert not is_product(x, filter_shape, stride, padding, **options)
    assert choose_gradients(dy, shape, filter_shape, padding, (True, True, True), **options) == (None, None)


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize(("window", "stride", "padding"), [((5, 5), (1, 1), (2, 2)), ((5, 3), (2, 1), (1, 2)), ((4, 5), (1, 2), (0, 1))])
def test_gradients_of_filters_of_one_channel_are_summed_by_lines(window, stride, padding, format):
    x, filter, _ = given((3, 7, 9, 8), (7, 1, *window), format)
    options = {"stride": stride, "padding": padding, "groups": 7}
    wide = [value.double().requires_grad_() for value in (x, filter)]
    expected = torch.conv2d(*wide, None, **options)
    dy = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    chosen = choose_gradients(dy, x.shape, filter.shape, padding, (True, True, False), (1, 1), 7)
    assert chosen == (None, convolution.filter_gradient_by_channel)
    for found, wanted in zip(
        ol.op.conv2d_backward.kernel(x, filter, dy, **options), torch.autograd.grad(expected, wide, dy.double()), strict=False
    ):
        require_near(found, wanted)


def test_what_does_not_fit_is_refused_by_a_product_too():
    x, filter, _ = given((1, 512, 2, 2), (512, 512, 3, 3), torch.contiguous_format)
    with pytest.raises(RuntimeError):
        ol.op.conv2d.kernel(x, filter, stride=(1, 1), padding=(0, 0))
