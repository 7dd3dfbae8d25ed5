"""The values that an enemy writes in place of good ones."""

from collections.abc import Callable

import torch
from numpy.random import Generator

__all__ = ["EVIL_FLOATS", "EVIL_INTEGERS", "evil_number", "lie", "spoil"]

EVIL_INTEGERS = (
    0, 1, 2, -1, -2, 3, 5, -5, 16, 48, -48, 127, 128, -128, 255, 1000, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 2**32 + 1, 2**40,
    10**10, 2**53, 2**61, 2**62, -(2**62), 2**63 - 2, 2**63 - 1, -(2**63), -(2**63) + 1,
)  # fmt: skip
EVIL_FLOATS = (
    float("nan"), float("inf"), -float("inf"), 0.0, -0.0, -1.0, 0.5, 1e300, -1e300, 5e-324, 2.0**31, 2.0**63, -(2.0**63), 1.8e308, 1e-45,
)  # fmt: skip


def evil_number(generator: Generator, sizes: list[int]) -> int:
    """A number out of the list, or one that is just beyond one of the sizes that stand around."""
    if sizes and generator.random() < 0.4:
        size = int(generator.choice(sizes))
        return int(generator.choice([size, size + 1, -size, -size - 1, size - 1, size * size]))
    return EVIL_INTEGERS[generator.integers(len(EVIL_INTEGERS))]


def spoil(tensor: torch.Tensor, slot: str, generator: Generator, sizes: list[int]) -> torch.Tensor:
    """A tensor of the same type, one or more of whose elements are evil."""
    if not tensor.numel():
        return tensor
    if tensor.dtype is torch.bool:
        return torch.tensor(generator.random(tuple(tensor.shape)) < 0.5)
    if tensor.dtype is torch.int64 and "splits" in slot:
        return _splits(tensor, generator, sizes)
    return _each(tensor, generator, _draw(tensor, generator, sizes))


def _draw(tensor: torch.Tensor, generator: Generator, sizes: list[int]) -> Callable[[], complex]:
    if tensor.is_complex():
        part = _draw(tensor.real, generator, sizes)
        return lambda: complex(part(), part())  # type: ignore[arg-type]
    if tensor.is_floating_point():
        return lambda: float(torch.tensor(EVIL_FLOATS[generator.integers(len(EVIL_FLOATS))], dtype=torch.float64).to(tensor.dtype))
    bounds = torch.iinfo(tensor.dtype)
    return lambda: max(bounds.min, min(bounds.max, evil_number(generator, sizes)))


def _each(tensor: torch.Tensor, generator: Generator, draw: Callable[[], complex]) -> torch.Tensor:
    """One element, all elements alike, or all of them each by itself."""
    flat = tensor.clone().reshape(-1)
    way = generator.integers(3)
    if way == 0:
        flat[int(generator.integers(len(flat)))] = draw()
    elif way == 1:
        flat[:] = draw()
    else:
        for number in range(len(flat)):
            flat[number] = draw()
    return flat.reshape(tensor.shape)


def _splits(splits: torch.Tensor, generator: Generator, sizes: list[int]) -> torch.Tensor:
    """Row splits that fall, end elsewhere, or whose differences, or sums of these, wrap around."""
    count, last = len(splits), int(splits[-1])
    way = generator.integers(5)
    if way == 0:
        return _each(splits, generator, lambda: evil_number(generator, sizes))
    if way == 1:  # ends where it should, yet goes round all numbers
        between = [2**63 - 1, -(2**63), -1]
        spoilt = [0, *between, last] if count >= 5 else [0, 2**63 - 1, last] if count >= 3 else [0, 2**63 - 1]
        spoilt = (spoilt + [last] * count)[:count]
    elif way == 2:  # ends far out
        spoilt = sorted([0, *(abs(evil_number(generator, sizes)) % 2**63 for _ in range(count - 1))])
    elif way == 3:  # falls
        spoilt = splits.flip(0).tolist()
    else:  # each sequence alone is of a size that can be
        step = int(generator.choice([2**61, 2**62, 10**10, 2**40]))
        spoilt = [min(number * step, 2**63 - 1) for number in range(count)]
    return torch.tensor(spoilt, dtype=torch.int64)


def lie(tensor: torch.Tensor, generator: Generator) -> torch.Tensor:
    """A tensor of another shape, or another dtype, than that for which it stands."""
    way = generator.integers(6)
    if way == 0:
        return torch.zeros((), dtype=tensor.dtype) if tensor.ndim else torch.zeros(3, dtype=tensor.dtype)
    if way == 1:
        return tensor.new_zeros([0, *tensor.shape[1:]]) if tensor.ndim and len(tensor) else tensor.new_zeros([1, *tensor.shape])
    if way == 2:
        return tensor.new_ones([1] * tensor.ndim) if tensor.numel() != 1 else tensor.new_ones([2, *tensor.shape])
    if way == 3:
        return tensor.new_ones([size + 50 for size in tensor.shape] or [50])
    if way == 4:
        return tensor.reshape(-1, 1, 1, 1, 1)
    return tensor.to(torch.float32 if tensor.dtype is not torch.float32 else torch.int64)
