"""The initializers and the check that each fits its variable."""

import math

from oarlock.errors import VerifyError
from oarlock.ir.dtype import DType
from oarlock.ir.program import Program
from oarlock.ir.size import format_shape
from oarlock.ir.var import HeldValue, Var

__all__ = ["KINDS", "OF_COMPLEX", "verify_initializers"]

KINDS: dict[str, dict[str, type]] = {
    "constant": {"value": float},
    "uniform": {"low": float, "high": float},
    "normal": {"mean": float, "deviation": float},
    "truncated_normal": {"mean": float, "deviation": float, "low": float, "high": float},
    "orthogonal": {"gain": float},
    "identity": {"gain": float, "groups": int},
    "sparse": {"sparsity": float, "deviation": float},
    "array": {"data": bytes, "shape": tuple},
}
"""The initializers by name, with their attributes. Array data is little-endian, in row-major order."""

OF_COMPLEX = ("constant", "array", "uniform", "normal")
"""The initializers for complex variables. Both parts have the same distribution, scaled to the magnitude of real values."""


def verify_initializers(program: Program) -> None:
    """Check that every initializer fits its variable. Raises VerifyError for the first that does not."""
    for block in program.blocks:
        for var in block.vars.values():
            if var.initializer is not None and not isinstance(var.initializer, HeldValue):
                try:
                    _check(var)
                except ValueError as error:
                    raise VerifyError(
                        f'{block.path}: variable "{var.name}" has an invalid initializer: {error}', location=var.location
                    ) from None


def _check(var: Var) -> None:
    assert var.initializer is not None
    kind, attributes = var.initializer.type, var.initializer.attributes
    wanted = KINDS.get(kind)
    if wanted is None:
        raise ValueError(f'unknown initializer "{kind}"')
    for name in sorted(wanted.keys() | attributes.keys()):
        if name not in wanted:
            raise ValueError(f"{kind} has no attribute {name}")
        if name not in attributes:
            raise ValueError(f"{kind} needs the attribute {name}")
        if type(attributes[name]) is not wanted[name]:
            raise ValueError(f"attribute {name} of {kind} must be {wanted[name].__name__}, not {type(attributes[name]).__name__}")
    if kind == "constant":
        _check_constant(var.dtype, attributes["value"])  # type: ignore[arg-type]
    elif kind == "array":
        _check_array(var, attributes["data"], attributes["shape"])  # type: ignore[arg-type]
    elif not var.dtype.is_floating and not (var.dtype.is_complex and kind in OF_COMPLEX):
        raise ValueError(f"{kind} produces floats, but the variable is {var.dtype}")
    elif kind in _MATRICES:
        _check_matrix(kind, var.whole_shape or (), attributes)
    elif kind == "truncated_normal" and not (attributes["low"] < attributes["high"] and attributes["deviation"] > 0.0):  # type: ignore[operator]
        raise ValueError("truncated_normal needs deviation > 0 and low < high")


_MATRICES = {"orthogonal": (2, None), "identity": (2, None), "sparse": (2, 2)}
"""The initializers for matrices, with the minimum and maximum number of axes (None: unlimited)."""


def _check_matrix(kind: str, shape: tuple[object, ...], attributes: dict[str, object]) -> None:
    least, most = _MATRICES[kind]
    if len(shape) < least or (most is not None and len(shape) > most):
        raise ValueError(f"{kind} needs {least} axes{' or more' if most is None else ''}, but the variable has {len(shape)}")
    groups = attributes.get("groups", 1)
    if kind == "identity" and (groups < 1 or shape[0] % groups):  # type: ignore[operator]
        raise ValueError(f"{shape[0]} rows cannot be divided into {groups} groups")
    if kind == "sparse" and not 0.0 <= attributes["sparsity"] <= 1.0:  # type: ignore[operator]
        raise ValueError("sparsity must be from 0 to 1")


def _check_constant(dtype: DType, value: float) -> None:
    if dtype.is_inexact:
        return
    bits = 8 * dtype.itemsize
    low, high = (0, 1) if dtype is DType.BOOL else (0, 2**bits - 1) if dtype is DType.UINT8 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not math.isfinite(value) or value != int(value) or not low <= int(value) <= high:
        raise ValueError(f"{value} is not a valid {dtype}")


def _check_array(var: Var, data: bytes, shape: tuple[object, ...]) -> None:
    declared = var.whole_shape or ()
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError("the shape of an array must be non-negative integers")
    if len(shape) != len(declared) or any(isinstance(ours, int) and ours != size for ours, size in zip(declared, shape, strict=True)):
        raise ValueError(f"an array of shape {list(shape[:16])} does not fit {var.dtype}{format_shape(var.whole_shape)}")
    expected = math.prod(shape) * var.dtype.itemsize  # type: ignore[arg-type]
    if len(data) != expected:
        raise ValueError(f"the array has {len(data):,} bytes, but needs {expected:,}")
