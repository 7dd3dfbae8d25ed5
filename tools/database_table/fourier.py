"""Fourier transforms, and complex numbers and their parts."""

from oarlock import op

__all__ = ["CALLS"]


def along(function):
    """A transform along an axis."""
    return lambda x, n=None, dim=-1, norm=None: function(x, n, axis=dim, norm=norm or "backward")


def axes_of(x, s, dim):
    """Return the axes and their lengths; -1 keeps a length."""
    s, dim = ((each,) if isinstance(each, int) else each for each in (s, dim))
    axes = dim if dim is not None else tuple(range(len(x.shape))) if s is None else tuple(range(len(x.shape) - len(s), len(x.shape)))
    return tuple(axes), s


def several(function):
    def call(x, s=None, dim=None, norm=None):
        axes, lengths = axes_of(x, s, dim)
        return function(x, _lengths(x, lengths, axes), axes=axes, norm=norm or "backward")

    return call


def _lengths(x, lengths, axes):
    if lengths is None:
        return None
    return [x.shape[axis] if size == -1 else size for axis, size in zip(axes, lengths, strict=True)]


def of_complex(function):
    """A complex function that returns real inputs unchanged, as in PyTorch."""
    return lambda x: function(x) if x.dtype.is_complex else op.assign(x)


def two(transform):
    """A transform along the last two axes."""
    return lambda x, s=None, dim=(-2, -1), norm=None: transform(x, s, dim, norm)


CALLS = {
    "fft.fft": along(op.fft),
    "fft.fft2": two(several(op.fftn)),
    "fft.fftn": several(op.fftn),
    "fft.hfft": along(op.hfft),
    "fft.ifft": along(op.ifft),
    "fft.ifft2": two(several(op.ifftn)),
    "fft.ifftn": several(op.ifftn),
    "fft.ihfft": along(op.ihfft),
    "fft.irfft": along(op.irfft),
    "fft.irfft2": two(several(op.irfftn)),
    "fft.irfftn": several(op.irfftn),
    "fft.rfft": along(op.rfft),
    "fft.rfft2": two(several(op.rfftn)),
    "fft.rfftn": several(op.rfftn),
    "fft.fftshift": lambda x, dim=None: op.fftshift(x, axes=(dim,) if isinstance(dim, int) else dim),
    "fft.ifftshift": lambda x, dim=None: op.ifftshift(x, axes=(dim,) if isinstance(dim, int) else dim),
    "complex": op.complex,
    "polar": op.polar,
    "real": of_complex(op.real),
    "imag": op.imag,
    "angle": op.angle,
    "conj": of_complex(op.conj),
    "conj_physical": of_complex(op.conj),
    "resolve_conj": op.assign,
    "resolve_neg": op.assign,
    "cfloat": lambda x, memory_format=None: op.cast(x, dtype="complex64"),
    "cdouble": lambda x, memory_format=None: op.cast(x, dtype="complex128"),
    "view_as_real": op.view_as_real,
    "view_as_complex": op.view_as_complex,
}
"""From PyTorch's name to the call."""
