"""Fourier transforms as DFT, with complex numbers as parts. ONNX has no inverse of a one-sided transform."""

import math

from oarlock.interop.onnx.export_graph import Graph, Unsupported, Value
from oarlock.interop.onnx.export_rule import export_of_complex

_DIVISIONS = {"backward": 0.0, "ortho": 0.5, "forward": 1.0}
"""The power of n that divides a transform; its inverse is divided by the rest, so that the powers add up to 1."""


def _transform(g: Graph, x: Value, at: int, inverse: bool, norm: str, *, onesided: bool = False) -> str:
    """Apply DFT along an axis of complex or real numbers. ONNX divides the inverse by n."""
    length = x.sizes[at]
    if not isinstance(length, int):
        raise Unsupported("transforms along an axis of unknown size are not supported")
    given = g.unsqueeze(x, 0)  # DFT requires a batch axis
    if onesided:
        given = g.unsqueeze(given, x.rank + 1)
    how = {"inverse": int(inverse), "onesided": int(onesided)}
    y = g("DFT", given, "", g.ints(at + 1), **how) if g.opset >= 20 else g("DFT", given, axis=at + 1, **how)
    y = g.squeeze(y, 0)
    power = _DIVISIONS[norm] if inverse else -_DIVISIONS[norm]
    return g("Mul", y, g.scalar(math.pow(length, power), x.dtype)) if power else y


@export_of_complex("fourier")
def fourier(g: Graph, x: Value, *, axis: int, inverse: bool, norm: str) -> str:
    return _transform(g, x, axis % (x.rank - 1), inverse, norm)


@export_of_complex("fourier_dx")
def fourier_dx(g: Graph, dy: Value, *, axis: int, inverse: bool, norm: str) -> str:
    turned = {"backward": "forward", "ortho": "ortho", "forward": "backward"}[norm]
    return _transform(g, dy, axis % (dy.rank - 1), not inverse, turned)


@export_of_complex("real_fourier")
def real_fourier(g: Graph, x: Value, *, axis: int, norm: str) -> str:
    return _transform(g, x, axis % x.rank, False, norm, onesided=True)


@export_of_complex("real_fourier_dx", "real_fourier_inverse", "real_fourier_inverse_dx")
def halves(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX has no inverse of a one-sided Fourier transform")
