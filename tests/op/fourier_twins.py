"""Fourier transforms and complex numbers beside PyTorch's. Twins are of floats: complex numbers are fed as their parts, and so compared."""

from collections.abc import Callable

import torch
from op.pytorch_twins import Twin

import oarlock as ol

__all__ = ["FOURIER"]

op = ol.op


def _as_pairs(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


def _of_pairs(theirs: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A function of complex tensors, of their parts."""
    return lambda *given: _as_pairs(theirs(*map(torch.view_as_complex, given)))


def _of_reals(theirs: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A function of real tensors that gives complex ones, as their parts."""
    return lambda *given: _as_pairs(theirs(*given))


def _ours(function: Callable[..., ol.Var], *, of_pairs: bool = True) -> Callable[..., ol.Var]:
    """A function of ours, of the parts of what it takes, if that is complex, and giving those of what it gives."""

    def call(*given: ol.Var) -> ol.Var:
        y = function(*map(op.view_as_complex, given)) if of_pairs else function(*given)
        return op.view_as_real(y) if y.dtype.is_complex else y

    return call


def _transforms() -> list[Twin]:
    found = []
    for norm in ("backward", "ortho", "forward"):
        for name in ("fft", "ifft", "irfft", "hfft", "fft2", "ifft2", "irfft2", "fftn", "ifftn", "irfftn"):
            ours, theirs = getattr(op, name), getattr(torch.fft, name)
            found.append(
                Twin(
                    f"{name} {norm}",
                    _ours(lambda x, ours=ours, norm=norm: ours(x, norm=norm)),
                    _of_pairs(lambda x, theirs=theirs, norm=norm: theirs(x, norm=norm)),
                    ((2, 3, 5, 2),),
                )
            )
        for name in ("rfft", "ihfft", "rfft2", "rfftn"):
            ours, theirs = getattr(op, name), getattr(torch.fft, name)
            found.append(
                Twin(
                    f"{name} {norm}",
                    _ours(lambda x, ours=ours, norm=norm: ours(x, norm=norm), of_pairs=False),
                    _of_reals(lambda x, theirs=theirs, norm=norm: theirs(x, norm=norm)),
                    ((2, 3, 5),),
                )
            )
    return found


FOURIER = [
    *_transforms(),
    Twin("fft longer", _ours(lambda x: op.fft(x, 7, axis=0)), _of_pairs(lambda x: torch.fft.fft(x, 7, 0)), ((4, 3, 2),)),
    Twin("fft of reals", _ours(op.fft, of_pairs=False), _of_reals(torch.fft.fft), ((4, 3),)),
    Twin("irfft of reals", _ours(op.irfft, of_pairs=False), _of_reals(torch.fft.irfft), ((4, 3),)),
    Twin("ifft shorter", _ours(lambda x: op.ifft(x, 3, axis=-2)), _of_pairs(lambda x: torch.fft.ifft(x, 3, -2)), ((4, 3, 2),)),
    Twin("rfft longer", _ours(lambda x: op.rfft(x, 6), of_pairs=False), _of_reals(lambda x: torch.fft.rfft(x, 6)), ((3, 4),)),
    *(Twin(f"irfft {length}", _ours(lambda x, n=length: op.irfft(x, n)), _of_pairs(lambda x, n=length: torch.fft.irfft(x, n)), ((3, 4, 2),))
      for length in (1, 3, 6, 7, 10)),
    Twin("hfft odd", _ours(lambda x: op.hfft(x, 5)), _of_pairs(lambda x: torch.fft.hfft(x, 5)), ((3, 3, 2),)),
    Twin("fftn sized", _ours(lambda x: op.fftn(x, (2, 4), axes=(2, 0))), _of_pairs(lambda x: torch.fft.fftn(x, (2, 4), (2, 0))),
         ((3, 2, 3, 2),)),
    Twin("irfft2 sized", _ours(lambda x: op.irfft2(x, (4, 5))), _of_pairs(lambda x: torch.fft.irfft2(x, (4, 5))), ((3, 3, 2),)),
    Twin("fftshift", _ours(lambda x: op.fftshift(x, axes=(0, 1))), _of_pairs(lambda x: torch.fft.fftshift(x, (0, 1))), ((4, 5, 2),)),
    Twin("ifftshift", op.ifftshift, torch.fft.ifftshift, ((4, 5),)),
    Twin("stft", _ours(lambda x, w: op.stft(x, 8, step=3, window=w), of_pairs=False),
         _of_reals(lambda x, w: torch.stft(x, 8, 3, window=w, return_complex=True).mT), ((2, 20), (8,))),
    Twin("stft from the start", _ours(lambda x: op.stft(x, 8, centre=False), of_pairs=False),
         _of_reals(lambda x: torch.stft(x, 8, 2, window=torch.ones(8, dtype=x.dtype), center=False, return_complex=True).mT), ((20,),)),
    Twin("real", _ours(op.real), _of_pairs(torch.real), ((3, 2),)),
    Twin("imag", _ours(op.imag), _of_pairs(torch.imag), ((3, 2),)),
    Twin("conj", _ours(op.conj), _of_pairs(torch.conj), ((3, 2),)),
    Twin("abs of complex", _ours(op.abs), _of_pairs(torch.abs), ((4, 3, 2),)),
    Twin("abs of nothing", _ours(op.abs), _of_pairs(torch.abs), ([[0.0, 0.0], [3.0, -4.0]],)),
    Twin("sgn", _ours(op.sgn), _of_pairs(torch.sgn), ([[1.0, 2.0], [0.0, 0.0]],), orders=1),
    Twin("sgn twice", _ours(op.sgn), _of_pairs(torch.sgn), ((3, 2),), low=0.1),
    Twin("angle", _ours(op.angle), _of_pairs(torch.angle), ([[1.0, 2.0], [-1.0, 0.5], [0.0, -2.0], [0.0, 0.0]],), orders=1),
    Twin("polar", _ours(op.polar, of_pairs=False), _of_reals(torch.polar), ((3,), (3,)), low=0.1),
    Twin("complex product", _ours(op.multiply), _of_pairs(torch.mul), ((3, 4, 2), (4, 2))),
    Twin("complex quotient", _ours(op.divide), _of_pairs(torch.div), ((3, 4, 2), (4, 2)), low=0.2),
]  # fmt: skip
"""Twins of floats: values and gradients are compared."""
