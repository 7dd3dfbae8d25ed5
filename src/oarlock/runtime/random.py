"""Random numbers as a function of their purpose, without generators or state.

A stream is keyed by a hash of the program's seed and its consumer; element i is a hash of the key and i. So a resumed run, or many steps
drawn together, gives the same bits.
"""

import hashlib
import math

import numpy
import torch

__all__ = ["key_of", "normal", "permutation", "uniform"]

_STEP, _ROUNDS, _LAST = 0x9E3779B97F4A7C15, ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)), 31  # constants of splitmix64
_PRECISION = 53  # bits of a float64's mantissa


def key_of(*parts: int | str) -> int:
    """Return a 63-bit key that is a hash of `parts`."""
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def _logical_shift(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Return `x >> bits` with zeros shifted in; PyTorch has no unsigned 64-bit shift."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def permutation(count: int, key: int) -> numpy.ndarray:
    """Return the order that sorts elements 0 to `count` of the stream `key` of `uniform`, stably: int64[count].

    It uses NumPy's unsigned integers, which take a fifth of the time.
    """
    x = numpy.arange(1, count + 1, dtype=numpy.uint64)
    x *= numpy.uint64(_STEP)
    x += numpy.uint64(key)
    for bits, factor in _ROUNDS:
        x ^= x >> numpy.uint64(bits)
        x *= numpy.uint64(factor)
    x ^= x >> numpy.uint64(_LAST)
    x >>= numpy.uint64(64 - _PRECISION)
    return numpy.argsort(x, kind="stable")


def _bits(count: int, key: int, start: int, device: torch.device) -> torch.Tensor:
    """Return 64 bits per element, int64[count]: splitmix64 (Steele, Lea and Flood, 2014) of `key`, from element `start` on."""
    index = torch.arange(start + 1, start + count + 1, dtype=torch.int64, device=device)
    x = index * _signed(_STEP) + key
    for bits, factor in _ROUNDS:
        x = (x ^ _logical_shift(x, bits)) * _signed(factor)
    return x ^ _logical_shift(x, _LAST)


def uniform(shape: tuple[int, ...], key: int, *, trip: int = 0, start: int = 0, device: torch.device | None = None) -> torch.Tensor:
    """Return numbers in [0, 1), float64 of `shape`: the elements from `trip * size + start` on of the stream `key`."""
    count = math.prod(shape)
    bits = _bits(count, key, trip * count + start, device or torch.device("cpu"))
    return (_logical_shift(bits, 64 - _PRECISION).to(torch.float64) * 2.0**-_PRECISION).reshape(shape)


def normal(shape: tuple[int, ...], key: int, *, start: int = 0, whole: int | None = None) -> torch.Tensor:
    """Return standard normal numbers (Box and Muller, 1958), float64 of `shape`: the elements from `start` on of `whole` numbers.

    Of `n` numbers, the i-th takes its radius from element i of the stream and its angle from element n + i.
    """
    count = math.prod(shape)
    whole = count if whole is None else whole
    radius = torch.sqrt(-2.0 * torch.log1p(-uniform((count,), key, start=start)))
    return (radius * torch.cos(2.0 * math.pi * uniform((count,), key, start=whole + start))).reshape(shape)
