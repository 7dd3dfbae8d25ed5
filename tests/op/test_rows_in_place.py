"""Rows of a table that are replaced: the bits are those that were put there, however rows lie and whatever they hold."""

import pytest
import torch

from oarlock.tensor.optimizer_steps import replace_rows

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]


def bits(shape, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Elements of any bits: infinities and NaNs of all kinds among them."""
    generator = torch.Generator().manual_seed(seed)
    size = torch.Size(shape).numel() * torch.empty((), dtype=dtype).itemsize
    drawn = torch.randint(0, 2 if dtype is torch.bool else 256, (size,), generator=generator, dtype=torch.uint8)
    return drawn.view(dtype).view(shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("row", [(8,), (3,), (2, 4), (16,), (6,), (1,), ()], ids=str)
def test_rows_are_put_bit_by_bit(dtype, row):
    table, values = bits((9, *row), dtype, 0), bits((4, *row), dtype, 1)
    rows = torch.tensor([7, 0, 8, 3])
    expected = [values[rows.tolist().index(i)] if i in rows else table[i] for i in range(9)]
    found = replace_rows(table.clone(), rows, values)
    assert torch.equal(found.contiguous().view(torch.uint8), torch.stack(expected).view(torch.uint8))


def test_rows_are_put_where_they_lie_with_gaps_or_behind_others():
    values = torch.arange(8.0).view(2, 4)
    for table in (torch.zeros(6, 8)[:, ::2], torch.zeros(4, 6).mT, torch.zeros(25)[1:].view(6, 4), torch.zeros(6, 5)[:, :4]):
        assert replace_rows(table, torch.tensor([5, 1]), values) is table
        assert table[5].tolist() == [0.0, 1.0, 2.0, 3.0]
        assert table[1].tolist() == [4.0, 5.0, 6.0, 7.0]
        assert not table[[0, 2, 3, 4]].any()


def test_no_rows_and_empty_rows_are_put():
    assert replace_rows(torch.ones(3, 4), torch.tensor([], dtype=torch.int64), torch.ones(0, 4)).sum() == 12
    assert replace_rows(torch.ones(3, 0), torch.tensor([1]), torch.ones(1, 0)).shape == (3, 0)
