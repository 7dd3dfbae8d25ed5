"""Kernels that sum or multiply for themselves stay within half precision, and read what PyTorch's kernels write."""

import math

import pytest
import torch

from oarlock.op.rms_normalization import rms_norm
from oarlock.tensor.attention import attend, attend_backward
from oarlock.tensor.indexing import take
from oarlock.tensor.normalization import normalize_batch


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("keys", [4, 20])
@pytest.mark.parametrize("blind", [False, True])
def test_attention_with_a_mask_has_gradients(dtype, keys, blind):
    generator = torch.Generator().manual_seed(keys)
    query, key, value, dy = (torch.randn(2, rows, 8, generator=generator) for rows in (5, keys, keys, 5))
    mask = torch.ones(2, 1, 5, keys, dtype=torch.bool)
    mask[..., -1] = False
    mask[0, 0, 2] = not blind
    wide = attend(query, key, value, mask, heads=2, causal=False)
    wanted = attend_backward(query, key, value, *wide, dy, mask, heads=2, causal=False)
    half = [x.to(dtype) for x in (query, key, value)]
    y, logsumexp = attend(*half, mask, heads=2, causal=False)
    found = attend_backward(*half, y, logsumexp, dy.to(dtype), mask, heads=2, causal=False)
    for one, other in zip((y, *found), (wide[0], *wanted), strict=True):
        torch.testing.assert_close(one.float(), other, rtol=0.05, atol=0.05)


def test_scores_of_many_columns_do_not_overflow():
    query = torch.full((1, 1, 64), 40.0, dtype=torch.float16)
    key = torch.full((1, 4, 64), 40.0, dtype=torch.float16)
    y, _ = attend(query, key, torch.ones_like(key), None, torch.zeros(1, 1, 1, 4, dtype=torch.float16), heads=1, causal=False)
    assert torch.equal(y, torch.ones_like(y))
    y, _ = attend(query, key, torch.ones(1, 4, 32, dtype=torch.float16), heads=1, causal=False)  # by products: columns differ
    assert torch.equal(y, torch.ones_like(y))


def test_squares_of_a_long_row_do_not_overflow():
    y, rstd = rms_norm.kernel(torch.full((1, 8192), 4.0, dtype=torch.float16), epsilon=0.0)
    assert rstd.item() == 0.25
    assert torch.equal(y, torch.ones_like(y))


def test_statistics_of_many_places_do_not_overflow():
    x = torch.randn(32, 2, 56, 56, generator=torch.Generator().manual_seed(0)) + 1.0
    half = x.half().contiguous(memory_format=torch.channels_last)
    one = torch.ones(2)
    y, mean, *_ = normalize_batch(half, one.half(), one.half(), (one.half(), one.half()), 0.1, 1e-5)
    assert math.isclose(mean.float().mean().item(), x.mean().item(), rel_tol=1e-2)
    assert torch.isfinite(y).all()


def test_an_index_beyond_nothing_is_refused():
    with pytest.raises(ValueError, match="index 5 is out of range for axis 0 of size 3"):
        take(torch.zeros(3, 0), [torch.tensor([5])], (0,))
