"""Fourier transforms. Complex numbers are pairs here; PyTorch's are compared as such."""

from oarlock import op

__all__ = ["CALLS"]


def of_pairs(function):
    """A transform along an axis, of what PyTorch takes as complex."""
    return lambda x, n=None, dim=-1, norm=None: function(op.complex_pairs(x), n, axis=dim, norm=norm or "backward")


def of_reals(function):
    return lambda x, n=None, dim=-1, norm=None: function(x, n, axis=dim, norm=norm or "backward")


def axes_of(x, s, dim):
    """The axes, and how long they are to be: -1 stands for as long as they are."""
    s, dim = ((each,) if isinstance(each, int) else each for each in (s, dim))
    axes = dim if dim is not None else tuple(range(len(x.shape))) if s is None else tuple(range(len(x.shape) - len(s), len(x.shape)))
    return tuple(axes), s


def several_of_pairs(function):
    def call(x, s=None, dim=None, norm=None):
        axes, lengths = axes_of(x, s, dim)
        return function(op.complex_pairs(x), _lengths(x, lengths, axes), axes=axes, norm=norm or "backward")

    return call


def several_of_reals(function):
    def call(x, s=None, dim=None, norm=None):
        axes, lengths = axes_of(x, s, dim)
        return function(x, _lengths(x, lengths, axes), axes=axes, norm=norm or "backward")

    return call


def _lengths(x, lengths, axes):
    if lengths is None:
        return None
    return [x.shape[axis] if size == -1 else size for axis, size in zip(axes, lengths, strict=True)]


def two(several):
    """A transform along two axes, the last ones."""
    return lambda x, s=None, dim=(-2, -1), norm=None: several(x, s, dim, norm)


CALLS = {
    "fft.fft": of_pairs(op.fft),
    "fft.fft2": two(several_of_pairs(op.fftn)),
    "fft.fftn": several_of_pairs(op.fftn),
    "fft.hfft": of_pairs(op.hfft),
    "fft.ifft": of_pairs(op.ifft),
    "fft.ifft2": two(several_of_pairs(op.ifftn)),
    "fft.ifftn": several_of_pairs(op.ifftn),
    "fft.ihfft": of_reals(op.ihfft),
    "fft.irfft": of_pairs(op.irfft),
    "fft.irfft2": two(several_of_pairs(op.irfftn)),
    "fft.irfftn": several_of_pairs(op.irfftn),
    "fft.rfft": of_reals(op.rfft),
    "fft.rfft2": two(several_of_reals(op.rfftn)),
    "fft.rfftn": several_of_reals(op.rfftn),
    "fft.fftshift": lambda x, dim=None: op.fftshift(x, axes=(dim,) if isinstance(dim, int) else dim),
    "fft.ifftshift": lambda x, dim=None: op.ifftshift(x, axes=(dim,) if isinstance(dim, int) else dim),
    "complex": op.complex_pairs,
    "polar": op.polar,
}
"""From PyTorch's name to the call."""
