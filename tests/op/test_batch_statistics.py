"""The statistics of a batch are as exact where the channels of a place lie side by side as elsewhere; running ones give PyTorch's bits."""

import pytest
import torch

from oarlock.tensor.normalization import by_statistics, normalize_batch

FORMATS = {"contiguous": torch.contiguous_format, "channels last": torch.channels_last}


def batch(dtype):
    return torch.randn(8, 16, 48, 48, generator=torch.Generator().manual_seed(1), dtype=dtype) + 3.0


@pytest.mark.parametrize("name", list(FORMATS))
def test_no_digit_of_the_variance_is_lost_over_thousands_of_places(name):
    x = batch(torch.float32).contiguous(memory_format=FORMATS[name])
    running = (torch.zeros(16), torch.ones(16))
    _, mean, rstd, _, next_variance = normalize_batch(x, None, None, running, 1.0, 0.0)
    variance, exact = torch.var_mean(x.double(), (0, 2, 3), correction=0)
    torch.testing.assert_close(mean.double(), exact, rtol=3e-7, atol=0)
    torch.testing.assert_close(rstd.double(), variance.rsqrt(), rtol=3e-7, atol=0)
    torch.testing.assert_close(next_variance.double(), x.double().var((0, 2, 3)), rtol=5e-7, atol=0)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [(8, 16, 3, 2), (2, 16, 1, 1), (2, 3, 4, 4)])
def test_both_formats_give_what_pytorch_gives(shape, affine):
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(shape, generator=generator, dtype=torch.float64) * 2 + 1
    mean, variance, scale, bias = (torch.rand(shape[1], generator=generator, dtype=torch.float64) + 0.5 for _ in range(4))
    next_mean, next_variance = mean.clone(), variance.clone()
    given = (scale, bias) if affine else (None, None)
    wanted = torch.nn.functional.batch_norm(x, next_mean, next_variance, *given, training=True, momentum=0.3, eps=1e-3)
    for memory_format in FORMATS.values():
        laid = x.contiguous(memory_format=memory_format)
        y, _, _, *running = normalize_batch(laid, *given, (mean, variance), 0.3, 1e-3)
        for found, expected in zip((y, *running), (wanted, next_mean, next_variance), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [(3, 16, 5, 7), (2, 24, 1, 1), (2, 5, 33), (2, 4, 3, 4, 4)])
def test_running_statistics_give_images_the_bits_of_pytorch_in_both_formats(shape, affine):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3)) * 2 + 1
    kinds = {3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d, 5: torch.nn.BatchNorm3d}
    module = kinds[x.ndim](shape[1], affine=affine)
    module(x)  # after which its statistics are not those it began with
    wanted = module.eval()(x)
    for memory_format in FORMATS.values() if x.ndim == 4 else [torch.contiguous_format]:
        laid = x.contiguous(memory_format=memory_format)
        y = by_statistics(laid, module.weight, module.bias, module.running_mean, module.running_var, module.eps)
        assert torch.equal(y, wanted)


def test_a_column_far_from_0_keeps_what_is_left_of_it_without_its_mean():
    x = torch.tensor([[1000.25], [1000.5]])
    y = by_statistics(x, None, torch.tensor([-1e-3]), torch.tensor([1000.25]), torch.tensor([0.25]), 0.0)
    torch.testing.assert_close(y, torch.tensor([[-1e-3], [0.499]]), rtol=1e-6, atol=0)
