"""Long inner products, which are added up in parts."""

import pytest
import torch

from oarlock.op.matrix import dot

LENGTHS = (131_071, 131_072, 131_073, 1_000_001)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_a_long_product_rounds_like_a_sum_in_pairs(length, mean):
    generator = torch.Generator().manual_seed(length)
    x = torch.rand(length, generator=generator)
    y = torch.rand(length, generator=generator)
    exact = (x.double() * y.double()).sum().item() / (length if mean else 1)
    assert dot.kernel(x, y, mean=mean).item() == pytest.approx(exact, rel=1e-6)
    assert dot.kernel(x.double(), y.double(), mean=mean).item() == pytest.approx(exact, rel=1e-13)


def test_rows_that_do_not_lie_together_are_multiplied_in_their_order():
    x = torch.arange(600_000.0, dtype=torch.float64).reshape(600, 1000)
    y = x.mT.contiguous().mT
    assert dot.kernel(x, y).item() == pytest.approx((x * x).sum().item(), rel=1e-14)


def test_small_floats_are_multiplied_one_by_one():
    x = torch.full((200_000,), 0.5, dtype=torch.float16)
    assert dot.kernel(x, x, mean=True).item() == 0.25
