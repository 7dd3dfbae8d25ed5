"""Fourier transforms, and arithmetic on pairs, beside PyTorch's of complex tensors."""

from collections.abc import Callable

import torch
from op.pytorch_twins import Twin

import oarlock as ol

__all__ = ["FOURIER"]

op = ol.op


def _as_complex(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex((x.float() if x.element_size() < 4 else x).contiguous())


def _as_pairs(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


def _of_pairs(theirs: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A function of complex tensors, of pairs."""
    return lambda *given: _as_pairs(theirs(*map(_as_complex, given))).to(given[0].dtype)


def _of_reals(theirs: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A function of real tensors that gives complex ones, as pairs."""
    return lambda *given: _as_pairs(theirs(*(x.float() if x.element_size() < 4 else x for x in given))).to(given[0].dtype)


def _transforms() -> list[Twin]:
    found = []
    for norm in ("backward", "ortho", "forward"):
        for name in ("fft", "ifft", "irfft", "hfft", "fft2", "ifft2", "irfft2", "fftn", "ifftn", "irfftn"):
            ours, theirs = getattr(op, name), getattr(torch.fft, name)
            found.append(
                Twin(
                    f"{name} {norm}",
                    lambda x, ours=ours, norm=norm: ours(x, norm=norm),
                    _of_pairs(lambda x, theirs=theirs, norm=norm: theirs(x, norm=norm)),
                    ((2, 3, 5, 2),),
                )
            )
        for name in ("rfft", "ihfft", "rfft2", "rfftn"):
            ours, theirs = getattr(op, name), getattr(torch.fft, name)
            found.append(
                Twin(
                    f"{name} {norm}",
                    lambda x, ours=ours, norm=norm: ours(x, norm=norm),
                    _of_reals(lambda x, theirs=theirs, norm=norm: theirs(x, norm=norm)),
                    ((2, 3, 5),),
                )
            )
    return found


FOURIER = [
    *_transforms(),
    Twin("fft longer", lambda x: op.fft(x, 7, axis=0), _of_pairs(lambda x: torch.fft.fft(x, 7, 0)), ((4, 3, 2),)),
    Twin("ifft shorter", lambda x: op.ifft(x, 3, axis=-2), _of_pairs(lambda x: torch.fft.ifft(x, 3, -2)), ((4, 3, 2),)),
    Twin("rfft longer", lambda x: op.rfft(x, 6), _of_reals(lambda x: torch.fft.rfft(x, 6)), ((3, 4),)),
    *(Twin(f"irfft {length}", lambda x, n=length: op.irfft(x, n), _of_pairs(lambda x, n=length: torch.fft.irfft(x, n)), ((3, 4, 2),))
      for length in (1, 3, 6, 7, 10)),
    Twin("hfft odd", lambda x: op.hfft(x, 5), _of_pairs(lambda x: torch.fft.hfft(x, 5)), ((3, 3, 2),)),
    Twin("fftn sized", lambda x: op.fftn(x, (2, 4), axes=(2, 0)), _of_pairs(lambda x: torch.fft.fftn(x, (2, 4), (2, 0))), ((3, 2, 3, 2),)),
    Twin("irfft2 sized", lambda x: op.irfft2(x, (4, 5)), _of_pairs(lambda x: torch.fft.irfft2(x, (4, 5))), ((3, 3, 2),)),
    Twin("fftshift", lambda x: op.fftshift(x, axes=(0, 1)), lambda x: torch.fft.fftshift(x, (0, 1)), ((4, 5, 2),)),
    Twin("ifftshift", op.ifftshift, torch.fft.ifftshift, ((4, 5),)),
    Twin("stft", lambda x, w: op.stft(x, 8, step=3, window=w),
         _of_reals(lambda x, w: torch.stft(x, 8, 3, window=w, return_complex=True).mT), ((2, 20), (8,))),
    Twin("stft from the start", lambda x: op.stft(x, 8, centre=False),
         _of_reals(lambda x: torch.stft(x, 8, 2, window=torch.ones(8, dtype=x.dtype), center=False, return_complex=True).mT), ((20,),)),
    Twin("real_part", op.real_part, _of_pairs(torch.real), ((3, 2),)),
    Twin("imaginary_part", op.imaginary_part, _of_pairs(torch.imag), ((3, 2),)),
    Twin("conjugate", op.conjugate, _of_pairs(torch.conj), ((3, 2),)),
    Twin("magnitude", op.magnitude, _of_pairs(torch.abs), ((4, 3, 2),)),
    Twin("magnitude of nothing", op.magnitude, _of_pairs(torch.abs), ([[0.0, 0.0], [3.0, -4.0]],), orders=1),
    Twin("phase", op.phase, _of_pairs(torch.angle), ([[1.0, 2.0], [-1.0, 0.5], [0.0, -2.0], [0.0, 0.0]],), orders=1),
    Twin("polar", op.polar, _of_reals(torch.polar), ((3,), (3,)), low=0.1),
    Twin("complex_product", op.complex_product, _of_pairs(torch.mul), ((3, 4, 2), (4, 2))),
]  # fmt: skip
"""Twins of floats: values and gradients are compared."""
