"""Complex numbers and their parts: construction from real numbers, real and imaginary parts, the conjugate.

The gradient with respect to ``z = x + iy`` is the gradient with respect to x plus i times the gradient with respect to y; for y = f(x) it
is ``dy * conj(f'(x))``, as in PyTorch. Decision 23 gives the reasons.
"""

import torch

from oarlock.ir.var import Var
from oarlock.op.creation import full
from oarlock.op.reduction import fit_to
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects

__all__ = ["complex_", "conj", "conjugated", "imag", "real", "view_as_complex", "view_as_real"]


def _nothing(like: Var) -> Var:
    return full(shape=(), value=0.0, dtype=like.dtype)


@operator(
    "real: float[*#s], imag: float[*#s] -> z: float.complex[*#s]",
    cases=[
        Case(real=[1.0, 2.0], imag=[3.0, -4.0], z=[1 + 3j, 2 - 4j]),
        Case(real=[[1.0], [2.0]], imag=0.5, z=[[1 + 0.5j], [2 + 0.5j]]),
    ],
)
def complex_(real, imag):
    """``real + imag * 1j``: complex64 from float32, complex128 from float64. Raises for other dtypes, for which
    there is no complex dtype.
    """
    return torch.complex(*torch.broadcast_tensors(real, imag))


complex_.gradient_programs(
    real=lambda dz, real_shape: fit_to(real(dz), real_shape),
    imag=lambda dz, imag_shape: fit_to(imag(dz), imag_shape),
)


@operator("z: complex[*b] -> x: complex.real[*b]", cases=[Case(z=[1 + 3j, 2 - 4j], x=[1.0, 2.0])])
def real(z):
    """The real part of a complex tensor."""
    return torch.real(z).clone(memory_format=torch.contiguous_format)


real.gradient_programs(z=lambda dx: complex_(dx, _nothing(dx)))


@operator("z: complex[*b] -> x: complex.real[*b]", cases=[Case(z=[1 + 3j, 2 - 4j], x=[3.0, -4.0])])
def imag(z):
    """The imaginary part of a complex tensor, a real number."""
    return torch.imag(z).clone(memory_format=torch.contiguous_format)


imag.gradient_programs(z=lambda dx: complex_(_nothing(dx), dx))


@operator("z: complex[*b] -> y: complex[*b]", cases=[Case(z=[1 + 3j, 2 - 4j], y=[1 - 3j, 2 + 4j])])
def conj(z):
    """The complex conjugate."""
    return torch.conj_physical(z)


conj.gradient_programs(z=lambda dy: conj(dy))


def conjugated(x: Var) -> Var:
    """Return the conjugate of a complex variable; a real variable is returned as it is, without an op."""
    return conj(x) if x.dtype.is_complex else x


@operator(
    "z: complex[...s] -> x: complex.real[...s 2]",
    aliases=("z",),
    cases=[Case(z=[1 + 3j, 2 - 4j], x=[[1.0, 3.0], [2.0, -4.0]]), GradCheck(z=(2, 3)), GradCheck(z=())],
)
def view_as_real(z):
    """The real and imaginary parts of complex numbers, along a new last axis of size 2."""
    return torch.view_as_real(z)


view_as_real.gradient_programs(z=lambda dx: view_as_complex(dx))


@operator(
    "x: float[...s 2] -> z: float.complex[...s]",
    cases=[
        Case(x=[[1.0, 3.0], [2.0, -4.0]], z=[1 + 3j, 2 - 4j]),
        GradCheck(x=(2, 3, 2)),
        GradCheck(x=(2,)),
        Rejects("a dimension is 2 in the signature but 3 in x", x=(2, 3)),
    ],
)
def view_as_complex(x):
    """Complex numbers from real and imaginary parts along the last axis, of size 2. Copies ``x``, which may not be aligned for complex."""
    return torch.view_as_complex(x.clone(memory_format=torch.contiguous_format))


view_as_complex.gradient_programs(x=lambda dz: view_as_real(dz))
