"""The transforms of `torch.fft` and `numpy.fft`, of real and complex numbers.

A length pads with zeros at the end, or truncates. The norm "backward" divides inverses by the number of elements, "forward" the transforms,
"ortho" both by its square root.
"""

from collections.abc import Sequence

from oarlock.errors import ArgumentError, DTypeError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.shape_rules import require_axis
from oarlock.ir.size import Shape, Size
from oarlock.ir.var import Var
from oarlock.op.complex_parts import conjugated
from oarlock.op.composed.shape import known_shape
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add as add_up
from oarlock.op.elementwise import divide, floor_divide, multiply, subtract
from oarlock.op.fourier_transforms import NORMS, fourier, real_fourier, real_fourier_inverse
from oarlock.op.padding import pad
from oarlock.op.rearrangement import roll, windows
from oarlock.op.told_shape import arange
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
    "stft",
]

_LAST_TWO = (-2, -1)


def _sized(x: Var, axis: int, length: int | None, what: str) -> Var:
    """Return ``x`` with `length` elements along an axis: padded with zeros, or truncated."""
    if length is None:
        return x
    shape = known_shape(x, what)
    require_count(f"{what}: length", length)
    at = require_axis(shape, axis)
    if not isinstance(shape[at], int):
        raise ShapeError(
            f"{what}: the size of {x.name} along axis {axis} is {shape[at]}, but a length needs a number", location=here(),
            given=[x.describe()],
        )  # fmt: skip
    more = length - shape[at]  # type: ignore[operator]
    behind = (0,) * (len(shape) - at - 1)
    return pad(x, before=(0, *behind), after=(more, *behind)) if more else x


def _complex(x: Var, what: str) -> Var:
    """Return ``x`` as complex numbers; floats get imaginary parts of 0."""
    dtype = require_type(x, what).dtype.complex
    if dtype is None:
        raise DTypeError(
            f"{what}: {x.name} must be complex, or float32 or float64, not {x.dtype}", location=here(), given=[x.describe()],
            hint='use ol.op.cast(x, dtype="float32")',
        )  # fmt: skip
    return x if x.dtype is dtype else cast(x, dtype=dtype)


def fft(x: Var, length: int | None = None, *, axis: int = -1, norm: str = "backward") -> Var:
    """The Fourier transform along an axis: complex[...s n] -> complex[...s n]. Raises ShapeError or ArgumentError."""
    with undone_on_error(require_type(x, "fft").block.program):
        return fourier(_sized(_complex(x, "fft"), axis, length, "fft"), axis=axis, norm=norm)


def ifft(x: Var, length: int | None = None, *, axis: int = -1, norm: str = "backward") -> Var:
    """The inverse of `fft`."""
    with undone_on_error(require_type(x, "ifft").block.program):
        return fourier(_sized(_complex(x, "ifft"), axis, length, "ifft"), axis=axis, inverse=True, norm=norm)


def rfft(x: Var, length: int | None = None, *, axis: int = -1, norm: str = "backward") -> Var:
    """The Fourier transform of n real numbers: its first n // 2 + 1 elements, float[...s n] -> float.complex[...s m].

    The others are their conjugates.
    """
    with undone_on_error(require_type(x, "rfft").block.program):
        return real_fourier(_sized(x, axis, length, "rfft"), axis=axis, norm=norm)


def irfft(x: Var, length: int | None = None, *, axis: int = -1, norm: str = "backward") -> Var:
    """The inverse of `rfft`, `length` real numbers (default: 2 (m - 1), which is even): complex[...s m] -> complex.real[...s n]."""
    with undone_on_error(require_type(x, "irfft").block.program):
        x = _complex(x, "irfft")
        shape = known_shape(x, "irfft")
        count = shape[require_axis(shape, axis)]
        if length is None and not isinstance(count, int):
            raise ShapeError(
                f"irfft: the length cannot be inferred from {count} complex numbers",
                location=here(),
                given=[x.describe()],
                hint="pass length=...",
            )
        length = 2 * (count - 1) if length is None else length  # type: ignore[operator]
        given = _sized(x, axis, length // 2 + 1 if length > 0 else 0, "irfft")
        return real_fourier_inverse(given, length=length, axis=axis, norm=norm)


def hfft(x: Var, length: int | None = None, *, axis: int = -1, norm: str = "backward") -> Var:
    """The real Fourier transform of conjugate-symmetric numbers, given by their first half as in `irfft`, in the forward direction."""
    _require_norm(norm)
    with undone_on_error(require_type(x, "hfft").block.program):
        return irfft(conjugated(x), length, axis=axis, norm=NORMS[norm])


def ihfft(x: Var, length: int | None = None, *, axis: int = -1, norm: str = "backward") -> Var:
    """The inverse of `hfft`, of real numbers."""
    _require_norm(norm)
    with undone_on_error(require_type(x, "ihfft").block.program):
        return conjugated(rfft(x, length, axis=axis, norm=NORMS[norm]))


def _require_norm(norm: str) -> None:
    if norm not in NORMS:
        raise ArgumentError(f"norm must be one of {', '.join(NORMS)}, not {norm!r:.40}", location=here())


# Several axes


def _axes(shape: Shape, lengths: Sequence[int] | None, axes: Sequence[int] | None, what: str) -> list[tuple[int, int | None]]:
    """Return the axes of a transform and their lengths. Raises ArgumentError or ShapeError."""
    if axes is None:
        axes = range(len(shape)) if lengths is None else range(len(shape) - len(lengths), len(shape))
    chosen = [require_axis(shape, axis) for axis in axes]
    if not chosen or len(set(chosen)) < len(chosen) or (lengths is not None and len(lengths) != len(chosen)):
        raise ArgumentError(
            f"{what}: axes {tuple(axes)} are empty, contain the same axis twice, or do not match the lengths", location=here()
        )
    return list(zip(chosen, lengths or [None] * len(chosen), strict=True))


def fftn(x: Var, lengths: Sequence[int] | None = None, *, axes: Sequence[int] | None = None, norm: str = "backward") -> Var:
    """`fft` along several axes, by default all: complex[...s] -> complex[...s]."""
    with undone_on_error(require_type(x, "fftn").block.program):
        for axis, length in _axes(known_shape(x, "fftn"), lengths, axes, "fftn"):
            x = fft(x, length, axis=axis, norm=norm)
        return x


def ifftn(x: Var, lengths: Sequence[int] | None = None, *, axes: Sequence[int] | None = None, norm: str = "backward") -> Var:
    """The inverse of `fftn`."""
    with undone_on_error(require_type(x, "ifftn").block.program):
        for axis, length in _axes(known_shape(x, "ifftn"), lengths, axes, "ifftn"):
            x = ifft(x, length, axis=axis, norm=norm)
        return x


def rfftn(x: Var, lengths: Sequence[int] | None = None, *, axes: Sequence[int] | None = None, norm: str = "backward") -> Var:
    """`rfft` along the last of several axes, `fft` along the others: float[...s] -> float.complex[...t]."""
    with undone_on_error(require_type(x, "rfftn").block.program):
        *others, (last, length) = _axes(known_shape(x, "rfftn"), lengths, axes, "rfftn")
        y = rfft(x, length, axis=last, norm=norm)
        for axis, length in others:
            y = fft(y, length, axis=axis, norm=norm)
        return y


def irfftn(x: Var, lengths: Sequence[int] | None = None, *, axes: Sequence[int] | None = None, norm: str = "backward") -> Var:
    """The inverse of `rfftn`; the last length is the number of real numbers."""
    with undone_on_error(require_type(x, "irfftn").block.program):
        *others, (last, length) = _axes(known_shape(x, "irfftn"), lengths, axes, "irfftn")
        for axis, size in others:
            x = ifft(x, size, axis=axis, norm=norm)
        return irfft(x, length, axis=last, norm=norm)


def fft2(x: Var, lengths: Sequence[int] | None = None, *, axes: Sequence[int] = _LAST_TWO, norm: str = "backward") -> Var:
    """`fftn` along two axes, by default the last two."""
    return fftn(x, lengths, axes=axes, norm=norm)


def ifft2(x: Var, lengths: Sequence[int] | None = None, *, axes: Sequence[int] = _LAST_TWO, norm: str = "backward") -> Var:
    """`ifftn` along two axes, by default the last two."""
    return ifftn(x, lengths, axes=axes, norm=norm)


def rfft2(x: Var, lengths: Sequence[int] | None = None, *, axes: Sequence[int] = _LAST_TWO, norm: str = "backward") -> Var:
    """`rfftn` along two axes, by default the last two."""
    return rfftn(x, lengths, axes=axes, norm=norm)


def irfft2(x: Var, lengths: Sequence[int] | None = None, *, axes: Sequence[int] = _LAST_TWO, norm: str = "backward") -> Var:
    """`irfftn` along two axes, by default the last two."""
    return irfftn(x, lengths, axes=axes, norm=norm)


# Frequencies, and their order


def fftfreq(count: int, *, spacing: float = 1.0, dtype: DType | str = DType.FLOAT32) -> Var:
    """The frequencies of `fft` for ``count`` samples, from 0 on, then the negative ones: {dtype}[count]."""
    require_count("fftfreq: count", count)
    number = arange([], stop=(count,))
    middle = (count + 1) // 2
    signed = subtract(number, multiply(floor_divide(add_up(number, count - middle), count), count))
    return _frequencies(signed, count, spacing, dtype)


def rfftfreq(count: int, *, spacing: float = 1.0, dtype: DType | str = DType.FLOAT32) -> Var:
    """The frequencies of `rfft` for ``count`` samples: {dtype}[count / 2 + 1]."""
    require_count("rfftfreq: count", count)
    return _frequencies(arange([], stop=(count // 2 + 1,)), count, spacing, dtype)


def _frequencies(numbers: Var, count: int, spacing: float, dtype: DType | str) -> Var:
    return divide(cast(numbers, dtype=dtype), count * spacing)


def fftshift(x: Var, *, axes: Sequence[int] | None = None) -> Var:
    """``x`` with frequency 0 moved to the middle of axes, by default all."""
    return _shifted(x, axes, lambda size: size // 2, "fftshift")


def ifftshift(x: Var, *, axes: Sequence[int] | None = None) -> Var:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, lambda size: -(size // 2), "ifftshift")


def _shifted(x: Var, axes: Sequence[int] | None, shift, what: str) -> Var:
    shape = known_shape(require_type(x, what), what)
    chosen = tuple(range(len(shape))) if axes is None else tuple(require_axis(shape, axis) for axis in axes)
    sizes: list[Size] = [shape[axis] for axis in chosen]
    if not all(isinstance(size, int) for size in sizes):
        raise ShapeError(f"{what}: axes {chosen} of {x.name} have no known sizes", location=here(), given=[x.describe()])
    with undone_on_error(x.block.program):
        return roll(x, shifts=tuple(shift(size) for size in sizes), axes=chosen)


def stft(x: Var, size: int, *, step: int | None = None, window: Var | None = None, centre: bool = True, norm: str = "backward") -> Var:
    """The short-time Fourier transform: the `rfft` of windows of `size` samples, float[*b t] -> float.complex[*b w size/2+1].

    There is a window every `step` samples (default: size / 4); samples are multiplied by `window`, float[size]. With `centre`, the signal
    is mirrored at its ends, so that window i is centred at sample i times the step (Allen, 1977). Frequencies are the last axis;
    `torch.stft` has them before the windows. Raises ShapeError.
    """
    shape = known_shape(require_type(x, "stft"), "stft")
    if not shape:
        raise ShapeError(f"stft: {x.name} has no axis of samples", location=here(), given=[x.describe()])
    require_count("stft: size", size)
    with undone_on_error(x.block.program):
        signal = pad(x, before=(size // 2,), after=(size // 2,), mode="reflect") if centre else x
        rows = windows(signal, axis=-1, size=size, step=max(1, size // 4) if step is None else step)
        return rfft(rows if window is None else multiply(rows, window), norm=norm)
