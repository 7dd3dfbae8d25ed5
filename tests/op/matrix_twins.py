"""Linear algebra beside the function of `torch.linalg` that each is."""

import torch
from op.pytorch_twins import Twin
from torch import linalg

import oarlock as ol

__all__ = ["MATRICES"]

op = ol.op

_REGULAR = [[2.0, 0.5, -1.0], [0.25, 1.5, 0.5], [-0.5, 1.0, 3.0]]
_TWO = [_REGULAR, [[1.0, 2.0, 0.5], [0.0, 1.0, -1.0], [3.0, 0.5, 0.25]]]
_POSITIVE = [[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]]
_TALL = [[1.0, 0.5], [-0.25, 2.0], [0.75, 1.0]]
_WIDE = [[1.0, -0.25, 0.75], [0.5, 2.0, 1.0]]


def _part(x: torch.Tensor) -> torch.Tensor:
    """The symmetric part, which ours takes itself."""
    return (x + x.mT) / 2


def _wide(function):
    """A function that PyTorch does not have in half precision, in float32."""
    return lambda *given: function(*(each.float() if each.element_size() < 4 else each for each in given)).to(given[0].dtype)


def _twin(name, ours, theirs, *inputs, **given) -> Twin:
    return Twin(name, ours, _wide(theirs), inputs, **given)


MATRICES = [
    _twin("inverse", op.inverse, linalg.inv, _TWO),
    _twin("det", op.det, linalg.det, _TWO),
    _twin("det of what has no inverse", op.det, lambda x: x[0, 0] * x[1, 1] - x[0, 1] * x[1, 0], [[1.0, 2.0], [2.0, 4.0]], orders=1),
    _twin("slogdet", lambda x: op.slogdet(x)[1], lambda x: linalg.slogdet(x)[1], _TWO),
    _twin("solve", op.solve, linalg.solve, _TWO, (2, 3, 2)),
    _twin("solve of one matrix and many columns", op.solve, linalg.solve, _REGULAR, (2, 3, 2)),
    _twin("solve of a vector", op.solve, linalg.solve, _REGULAR, (3,)),
    _twin("solve of vectors", op.solve, linalg.solve, _TWO, (2, 3)),
    _twin("solve from the right", lambda a, b: op.solve(a, b, left=False), lambda a, b: linalg.solve(a, b, left=False), _TWO, (2, 2, 3)),
    _twin("solve_triangular", lambda a, b: op.solve_triangular(a, b, upper=True),
          lambda a, b: linalg.solve_triangular(a, b, upper=True), _TWO, (3, 2)),
    _twin("solve_triangular from the right", lambda a, b: op.solve_triangular(a, b, upper=False, left=False, unitriangular=True),
          lambda a, b: linalg.solve_triangular(a, b, upper=False, left=False, unitriangular=True), _TWO, (2, 3)),
    _twin("cholesky", op.cholesky, lambda x: linalg.cholesky(_part(x)), _POSITIVE),
    _twin("cholesky_solve", op.cholesky_solve, torch.cholesky_solve, (3, 2), [[2.0, 0.0, 0.0], [0.5, 1.5, 0.0], [-1.0, 0.75, 1.0]],
          still=1),
    _twin("cholesky_solve upper", lambda b, y: op.cholesky_solve(b, y, upper=True), lambda b, y: torch.cholesky_solve(b, y, upper=True),
          (3, 2), [[2.0, 0.5, 1.0], [0.0, 1.5, -0.5], [0.0, 0.0, 1.0]], still=1),
    # PyTorch has a gradient in the other triangle too, which does not count
    *(_twin(f"qr {name} {part}", lambda x, p=part: op.qr(x)[p], lambda x, p=part: linalg.qr(x)[p], given)
      for name, given in (("square", _TWO), ("tall", _TALL), ("wide", _WIDE)) for part in (0, 1)),
    *(_twin(f"svd {name}", lambda x: op.matrix_product(op.svd(x)[0], op.svd(x)[2]),
            lambda x: linalg.svd(x, full_matrices=False)[0] @ linalg.svd(x, full_matrices=False)[2], given)
      for name, given in (("square", _TWO), ("tall", _TALL), ("wide", _WIDE))),
    _twin("svdvals", op.svdvals, linalg.svdvals, _TWO),
    _twin("svdvals of equal ones", op.svdvals, linalg.svdvals, [[1.0, 0.0], [0.0, 1.0]], orders=1),
    _twin("eigvalsh", op.eigvalsh, lambda x: linalg.eigvalsh(_part(x)), _TWO),
    _twin("eigh", lambda x: op.square(op.eigh(x)[1]), lambda x: linalg.eigh(_part(x))[1] ** 2, _TWO),
    *(_twin(f"lu {part}", lambda x, p=part: op.lu(x)[p], lambda x, p=part: linalg.lu(x)[p], _TWO) for part in (1, 2)),
    *(_twin(f"pinv {name}", op.pinv, linalg.pinv, given) for name, given in (("square", _TWO), ("tall", _TALL), ("wide", _WIDE))),
    _twin("lstsq", op.lstsq, lambda a, b: linalg.pinv(a) @ b, _TALL, (3, 2)),
    _twin("matrix_exp", op.matrix_exp, linalg.matrix_exp, _TWO),
    *(_twin(f"matrix_power {n}", lambda x, n=n: op.matrix_power(x, n), lambda x, n=n: linalg.matrix_power(x, n), _TWO)
      for n in (-2, 0, 1, 3, 6)),
    *(_twin(f"matrix_norm {order}", lambda x, o=order: op.matrix_norm(x, order=o, axes=(0, -1)),
            lambda x, o=order: linalg.matrix_norm(x, o, (0, -1)), (3, 2, 4))
      for order in ("fro", "nuc", 1, 2, float("inf"), -1, -2, -float("inf"))),
    _twin("matrix_norm kept", lambda x: op.matrix_norm(x, order=2, axes=(1, 0), keepdim=True),
          lambda x: linalg.matrix_norm(x, 2, (1, 0), keepdim=True), (3, 2, 4)),
    _twin("nuclear_norm", op.nuclear_norm, lambda x: linalg.matrix_norm(x, "nuc"), _TALL),
]  # fmt: skip
"""Twins of floats: values and gradients are compared."""
