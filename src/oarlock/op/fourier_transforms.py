"""Discrete Fourier transforms along an axis: of complex numbers, of real numbers, and the inverse of the latter."""

import torch

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.shape_rules import require_axis
from oarlock.ir.size import Shape
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.registry.value_sizes import predict_size

__all__ = ["fourier", "real_fourier", "real_fourier_inverse"]

NORMS = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""Each norm and the norm of the transpose. "backward" divides the inverse by n, "forward" the transform by n, "ortho" both by sqrt(n)."""


def _require_axis_with_elements(shape: Shape, axis: int, norm: str) -> int:
    """Return the axis of a transform, counted from 0. Raises ShapeError if it is missing or empty, ArgumentError for another norm."""
    if norm not in NORMS:
        raise ArgumentError(f"norm must be one of {', '.join(NORMS)}, not {norm!r:.40}")
    at = require_axis(shape, axis)
    if shape[at] == 0:
        raise ShapeError(f"axis {axis} has the size 0, but a transform needs an element")
    return at


@operator(
    "x: complex[...s n] -> y: complex[...s n]",
    linear_in=("x",),
    sensitive_to="place",
    cases=[
        Case(x=[1 + 0j, 1j, 0j, 0j], y=[1 + 1j, 2 + 0j, 1 - 1j, 0j]),
        Case(x=[[2 + 0j], [4j]], axis=0, inverse=True, y=[[1 + 2j], [1 - 2j]]),
        Case(x=[3 + 1j, 1 - 1j], norm="forward", y=[2 + 0j, 1 + 1j]),
        GradCheck(x=(2, 5)),
        GradCheck(x=(4, 3), axis=0, inverse=True),
        GradCheck(x=(3,), norm="ortho"),
        GradCheck(x=(0, 3), norm="forward", inverse=True),
        Rejects("norm must be one of backward, ortho, forward, not 'none'", x=(2,), norm="none"),
        Rejects("axis 1 is not an axis of x, which has 1 dimensions", x=(2,), axis=1),
        Rejects("axis -1 has the size 0, but a transform needs an element", x=(0,)),
    ],
)
def fourier(x, *, axis: int = -1, inverse: bool = False, norm: str = "backward"):
    """The discrete Fourier transform ``y[k] = sum x[j] exp(-2 pi i j k / n)`` along ``axis``, or its inverse (Cooley and Tukey, 1965).

    The norm "backward" divides the inverse by n, "forward" the transform by n, "ortho" both by the square root of n.
    """
    if not x.numel():
        return torch.zeros_like(x)  # MKL rejects empty transforms
    transform = torch.fft.ifft if inverse else torch.fft.fft
    return transform(x, dim=axis, norm=norm).contiguous()


@fourier.check_shapes
def require_complex_axis(x, *, axis, inverse, norm):
    _require_axis_with_elements(x.shape, axis, norm)


@fourier.gradient("x", sensitive_to="place")
def fourier_dx(dy, *, axis, inverse, norm):
    """The conjugate transpose: the transform in the other direction, with the same divisor."""
    return fourier.kernel(dy, axis=axis, inverse=not inverse, norm=NORMS[norm])


@operator(
    "x: float[...s n] -> y: float.complex[...t]",
    linear_in=("x",),
    sensitive_to="place",
    cases=[
        Case(x=[1.0, 2.0, 3.0, 4.0], y=[10 + 0j, -2 + 2j, -2 + 0j]),
        Case(x=[[3.0], [1.0]], axis=0, norm="forward", y=[[2 + 0j], [1 + 0j]]),
        GradCheck(x=(2, 5)),
        GradCheck(x=(4, 3), axis=0, norm="ortho"),
        GradCheck(x=(1,), norm="forward"),
        GradCheck(x=(0, 4)),
        Rejects("axis 1 is not an axis of x, which has 1 dimensions", x=(2,), axis=1),
        Rejects("axis -1 has the size 0, but a transform needs an element", x=(2, 0)),
    ],
)
def real_fourier(x, *, axis: int = -1, norm: str = "backward"):
    """The Fourier transform of real numbers along ``axis``: the first n // 2 + 1 elements of `fourier`. The others are their conjugates."""
    if not x.numel():
        at = axis % x.ndim
        return x.new_zeros((*x.shape[:at], x.shape[at] // 2 + 1, *x.shape[at + 1 :]), dtype=x.dtype.to_complex())
    return torch.fft.rfft(x, dim=axis, norm=norm).contiguous()


@real_fourier.infer_shape
def real_fourier_shape(x, *, axis, norm):
    at = _require_axis_with_elements(x.shape, axis, norm)
    length = x.shape[at]
    half = length // 2 + 1 if isinstance(length, int) else "?half"
    return (*x.shape[:at], half, *x.shape[at + 1 :])


@predict_size(real_fourier, bounded=True)
def count_half(x, *, axis, norm):
    return x.shape[axis] // 2 + 1


@real_fourier.gradient("x", sensitive_to="place")
def real_fourier_dx(dy, x_shape, *, axis, norm):
    """The real part of the transform of ``dy`` in the other direction, with zeros for the missing elements."""
    at = axis % len(x_shape)
    length = x_shape[at]
    if not dy.numel():
        return dy.new_zeros(x_shape, dtype=dy.dtype.to_real())
    whole = torch.fft.ifft(dy, n=length, dim=at, norm=NORMS[norm])
    return whole.real.clone(memory_format=torch.contiguous_format)


@operator(
    "x: complex[...s n] -> y: complex.real[...t]",
    linear_in=("x",),
    sensitive_to="place",
    cases=[
        Case(x=[10 + 0j, -2 + 2j, -2 + 0j], length=4, y=[1.0, 2.0, 3.0, 4.0]),
        Case(x=[[2 + 9j], [1 + 9j]], axis=0, length=2, norm="forward", y=[[3.0], [1.0]]),
        GradCheck(x=(2, 3), length=5),
        GradCheck(x=(3, 2), axis=0, length=4, norm="ortho"),
        GradCheck(x=(1,), length=1),
        GradCheck(x=(0, 3), length=4, norm="forward"),
        Rejects("3 complex numbers along axis -1 are the transform of 4 or 5 real numbers, not of 6", x=(3,), length=6),
        Rejects("0 complex numbers along axis -1 are the transform of no real numbers, not of 0", x=(0,), length=0),
    ],
)
def real_fourier_inverse(x, *, length: int, axis: int = -1, norm: str = "backward"):
    """The inverse of `real_fourier`, ``length`` real numbers.

    The imaginary parts of the first element and, for an even length, of the last one are ignored.
    """
    if not x.numel():
        at = axis % x.ndim
        return x.new_zeros((*x.shape[:at], length, *x.shape[at + 1 :]), dtype=x.dtype.to_real())
    return torch.fft.irfft(x, n=length, dim=axis, norm=norm).contiguous()


@real_fourier_inverse.infer_shape
def real_fourier_inverse_shape(x, *, length, axis, norm):
    if norm not in NORMS:
        raise ArgumentError(f"norm must be one of {', '.join(NORMS)}, not {norm!r:.40}")
    at = require_axis(x.shape, axis)
    count = x.shape[at]
    if length < 1 or (isinstance(count, int) and count != length // 2 + 1):
        most = 2 * count - 1 if isinstance(count, int) else 0
        fits = f"{most - 1} or {most}" if most > 1 else "1" if most == 1 else "no"
        raise ShapeError(f"{count} complex numbers along axis {axis} are the transform of {fits} real numbers, not of {length}")
    return (*x.shape[:at], length, *x.shape[at + 1 :])


@real_fourier_inverse.gradient("x", sensitive_to="place")
def real_fourier_inverse_dx(dy, x_shape, *, length, axis, norm):
    """The transform of ``dy``, doubled for elements that also represent their conjugate."""
    at = axis % len(x_shape)
    if length // 2 + 1 != x_shape[at]:
        raise ValueError(f"x has {x_shape[at]} complex numbers, but {length} real numbers have {length // 2 + 1}")
    if not dy.numel():
        return dy.new_zeros(x_shape, dtype=dy.dtype.to_complex())
    half = torch.fft.rfft(dy, dim=at, norm=NORMS[norm])
    number = torch.arange(x_shape[at], device=dy.device)
    times = torch.where((number == 0) | (2 * number == length), 1.0, 2.0).to(half.real.dtype).reshape(-1, *[1] * (half.ndim - at - 1))
    return half * times
