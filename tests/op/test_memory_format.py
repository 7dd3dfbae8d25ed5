"""Images stay channels last from one kernel to the next, where the kernels are faster so; values do not depend on it."""

import pytest
import torch

import oarlock as ol
from oarlock.op.memory_format import channels_last, contiguous, is_channels_last

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="PyTorch was built without the convolutions that want it")


def random(*shape: int, last: bool = False, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    drawn = torch.rand(shape, generator=torch.Generator().manual_seed(len(shape)), dtype=dtype) - 0.5
    return torch.empty(shape, dtype=dtype, memory_format=torch.channels_last).copy_(drawn) if last else drawn


def kernel(name: str):
    return ol.op.__getattr__(name).kernel


STEP = {"stride": (1, 1), "padding": (1, 1)}
POOL = {"size": (2, 2), "stride": (2, 2), "padding": (0, 0)}


@pytest.mark.parametrize("channels", [1, 3])
def test_convolutions_give_images_channels_last(channels):
    x, filter, dy = random(2, channels, 6, 6), random(4, channels, 3, 3), random(2, 4, 6, 6)
    assert is_channels_last(kernel("conv2d")(x, filter, **STEP))
    if channels > 1:  # one channel lies in either format
        assert is_channels_last(kernel("conv2d_dx")(filter, dy, x.shape, **STEP))


@pytest.mark.parametrize("channels", [1, 3])
def test_the_gradient_of_a_filter_lies_as_the_filter_does(channels):
    x, filter, dy = random(2, channels, 6, 6), random(4, channels, 3, 3), random(2, 4, 6, 6)
    assert kernel("conv2d_dfilter")(x, dy, filter.shape, **STEP).stride() == filter.stride()


def test_what_follows_a_convolution_keeps_its_format():
    x, running = random(2, 4, 6, 6, last=True), torch.ones(4)
    pooled, index = kernel("max_pool2d")(x, **POOL)
    assert is_channels_last(pooled)
    for dy in (random(2, 4, 3, 3), random(2, 4, 3, 3, last=True)):
        assert is_channels_last(kernel("max_pool2d_dx")(index, dy, x.shape, **POOL))
    assert is_channels_last(kernel("average_pool2d")(x, **POOL))
    assert is_channels_last(kernel("average_pool2d_dx")(pooled, x.shape, **POOL))
    for dy in (random(2, 4, 6, 6), random(2, 4, 6, 6, last=True)):
        assert is_channels_last(kernel("batch_norm_dx")(x, running, running, torch.tensor(True), dy))
    assert is_channels_last(kernel("add")(kernel("relu")(x), x))


def test_an_image_of_one_channel_is_told_by_its_strides_which_nothing_else_sees():
    x = random(2, 1, 3, 4)
    last = channels_last(x)
    assert last.stride() == (12, 1, 4, 1)
    assert last.data_ptr() == x.data_ptr()
    assert contiguous(last).stride() == (12, 12, 4, 1)
    assert torch.equal(channels_last(random(2, 1, 4, 3).mT), random(2, 1, 4, 3).mT)


def test_what_kernels_cannot_use_is_left_as_it_is():
    for x in (random(2, 3, 4, 4, dtype=torch.float64), random(2, 3, 4)):
        assert channels_last(x) is x


@pytest.mark.parametrize("name", ["conv2d", "max_pool2d", "average_pool2d", "batch_norm"])
def test_a_network_computes_the_same_of_either_format(name):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4, 6, 6])
        if name == "conv2d":
            y = ol.layer.conv2d(x, 5, 3, padding=1)
        elif name == "batch_norm":
            y = ol.layer.batch_norm(x)
        else:
            y = ol.op.__getattr__(name)(x, **POOL)
            y = y[0] if isinstance(y, tuple) else y
        gradients = ol.gradients([ol.op.reduce_sum(ol.op.square(y))], [x, *(var for var in program.main.vars.values() if var.trainable)])
    scope = ol.init(program, ol.Scope())
    runs = [
        ol.Executor().run(program, {"x": random(2, 4, 6, 6, last=last)}, [y, *gradients], scope=scope, training=True)
        for last in (False, True)
    ]
    for one, other in zip(*runs, strict=True):
        torch.testing.assert_close(torch.from_numpy(one), torch.from_numpy(other), rtol=1e-5, atol=1e-5)
