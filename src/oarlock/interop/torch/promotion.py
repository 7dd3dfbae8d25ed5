"""Promote dtypes as PyTorch does inside its operators, with explicit casts."""

from collections.abc import Mapping, Sequence

import torch

from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.op.dtype_conversion import cast
from oarlock.tensor.dtype import from_torch, to_torch

__all__ = ["cast_to", "common_dtype", "promoted"]


def promoted(given: Mapping[str, object], names: Sequence[str], *, to_float: bool) -> dict[str, object]:
    """Return `given` with the arguments `names` cast to the common dtype that PyTorch computes in. Numbers are not cast."""
    items = [item for name in names for item in _items(given.get(name))]
    if not any(isinstance(item, Var) for item in items):
        return dict(given)
    dtype = common_dtype(items, to_float=to_float)
    return {name: _cast(value, dtype) if name in names else value for name, value in given.items()}


def common_dtype(items: Sequence[object], *, to_float: bool = False) -> DType:
    """Return the dtype in which PyTorch computes on variables and numbers together.

    Variables with dimensions determine it; scalar variables, and then numbers, only raise its kind: bool, integer, floating point.
    """
    groups: list[list[torch.dtype]] = [[], [], []]
    for item in items:
        if isinstance(item, Var):
            groups[0 if item.shape != () else 1].append(to_torch(item.dtype))
        else:
            groups[2].append(torch.bool if isinstance(item, bool) else torch.int64 if isinstance(item, int) else torch.get_default_dtype())
    found: torch.dtype | None = None
    for group in groups:
        dtype = group[0] if group else None
        for other in group[1:]:
            dtype = torch.promote_types(dtype, other)  # type: ignore[arg-type]
        if dtype is not None and (found is None or _kind(dtype) > _kind(found)):
            found = dtype
    assert found is not None
    if to_float and not found.is_floating_point:
        found = torch.get_default_dtype()
    ours = from_torch(found)
    assert ours is not None
    return ours


def cast_to(x: Var, dtype: DType) -> Var:
    """Cast `x` to `dtype`; return `x` itself if it already has that dtype."""
    return x if x.dtype is dtype else cast(x, dtype=dtype)


def _items(value: object) -> list[object]:
    if isinstance(value, list | tuple):
        return [item for item in value if item is not None]
    return [] if value is None else [value]


def _cast(value: object, dtype: DType) -> object:
    if isinstance(value, Var):
        return cast_to(value, dtype)
    if isinstance(value, list | tuple):
        return [_cast(item, dtype) for item in value]
    return value


def _kind(dtype: torch.dtype) -> int:
    return 0 if dtype is torch.bool else 2 if dtype.is_floating_point else 1
