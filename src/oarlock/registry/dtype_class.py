"""Dtype classes in signatures, and inference of dtypes between slots.

float, integer, real, complex, inexact, number any such dtype, the same in all slots complex.real, number.real, inexact.real the dtype of
the real and imaginary parts; unchanged for real dtypes float.complex the complex dtype whose parts have this dtype
"""

from collections.abc import Callable, MutableMapping

from oarlock.errors import DTypeError
from oarlock.ir.dtype import DType

__all__ = ["CLASSES", "bind_dtype", "find_dtype", "is_dtype_text", "real_class"]

CLASSES: dict[str, tuple[str, Callable[[DType], bool]]] = {
    "float": ("a float", lambda dtype: dtype.is_floating),
    "integer": ("an integer", lambda dtype: dtype.is_integer),
    "real": ("a real number", lambda dtype: dtype.is_floating or dtype.is_integer),
    "complex": ("complex", lambda dtype: dtype.is_complex),
    "inexact": ("a float or complex", lambda dtype: dtype.is_inexact),
    "number": ("a number", lambda dtype: dtype is not DType.BOOL),
}
"""The classes: the name of a member in messages, and a membership test."""

_DTYPES = frozenset(dtype.value for dtype in DType)


def is_dtype_text(text: str) -> bool:
    """Return whether `text` is a valid dtype in a signature."""
    kind, dot, part = text.partition(".")
    if dot:
        return kind in CLASSES and part in ("real", "complex")
    return text in CLASSES or text in _DTYPES or text in ("any", "shape") or text[:1] == "{" or len(text) == 1


def real_class(kind: str) -> str:
    """Return the class of the real dtypes in the class `kind`; other texts unchanged."""
    kind = kind.removesuffix(".real")
    return {"number": "real", "inexact": "float"}.get(kind, kind)


def bind_dtype(name: str, kind: str, dtype: DType, known: MutableMapping[str, DType], source: MutableMapping[str, str]) -> None:
    """Bind the dtype class `kind` of slot `name` to `dtype`. Raises DTypeError on a conflict.

    `known` holds the dtype of each class so far, and `source` the slot that determined it.
    """
    if kind in ("any", "shape"):
        return
    if "." in kind:
        _bind_part(name, kind, dtype, known, source)
        return
    if kind in CLASSES:
        described, takes = CLASSES[kind]
        if not takes(dtype):
            raise DTypeError(f"{name} must be {described}, not {dtype}")
    elif len(kind) > 1:
        if dtype.value != kind:
            raise DTypeError(f"{name} must be {kind}, not {dtype}")
        return
    first = known.setdefault(kind, dtype)
    if first is not dtype:
        raise DTypeError(f"{name} is {dtype}, but {source[kind]} is {first}; they must have the same dtype")
    source.setdefault(kind, name)


def find_dtype(kind: str, known: MutableMapping[str, DType], source: MutableMapping[str, str]) -> DType | None:
    """Return the dtype bound to `kind`, or None if it is unknown. Raises DTypeError if there is none."""
    if kind in known:
        return known[kind]
    kind, dot, part = kind.partition(".")
    if dot:
        return _part_of(known[kind], part, source[kind]) if kind in known else None
    return DType(kind) if kind in _DTYPES else None


def _bind_part(name: str, kind: str, dtype: DType, known: MutableMapping[str, DType], source: MutableMapping[str, str]) -> None:
    kind, _, part = kind.partition(".")
    if kind in known:
        wanted = _part_of(known[kind], part, source[kind])
        if dtype is not wanted:
            raise DTypeError(f"{name} must be {wanted}, not {dtype}, because {source[kind]} is {known[kind]}")
        return
    whole = dtype.complex if part == "real" else dtype.real
    if whole is None or dtype.is_complex is (part == "real"):
        raise DTypeError(f"{name} must be {'float32 or float64' if part == 'real' else 'complex'}, not {dtype}")
    if kind in ("complex", "float"):  # other classes contain both
        known[kind] = whole
        source[kind] = name


def _part_of(dtype: DType, part: str, owner: str) -> DType:
    found = dtype.real if part == "real" else dtype.complex
    if found is None:
        raise DTypeError(f"{owner} must be float32 or float64, not {dtype}: no complex dtype has such parts")
    return found
