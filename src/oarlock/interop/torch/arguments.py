"""Bind the arguments of a node to the schema of its overload, and promote dtypes as PyTorch does inside its operators."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch.fx import Node

from oarlock.backend.torch.private import schema_of
from oarlock.interop.torch.rules.registry import RESULT, Rule, Unsupported
from oarlock.ir.dtype import DType
from oarlock.ir.size import Size
from oarlock.ir.var import Var
from oarlock.op.dtype_conversion import cast
from oarlock.tensor.dtype import from_torch, to_torch

__all__ = ["bind", "cast_to", "common_dtype", "map_values", "promote_arguments", "select_arguments"]

_WITHOUT_MEANING = ("device", "layout", "pin_memory", "memory_format", "non_blocking", "generator", "copy", "implicit")
"""Arguments that only affect the memory of a result, which a program does not specify."""

_NUMBERS = ("Tensor", "number", "Optional[Tensor]", "Optional[number]")


def map_values(value: object, function: Callable[[object], object]) -> object:
    """Apply `function` to every leaf of nested lists, tuples and dicts. Subclasses of these become the plain types."""
    if isinstance(value, dict):
        return {key: map_values(item, function) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [map_values(item, function) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return function(value)


def bind(node: Node, read: Callable[[object], object], variable_of: Callable[[Size], Var]) -> dict[str, object]:
    """Return the arguments of `node` by the names in its schema, as rules take them. `read` maps an argument to its value.

    A size in place of a tensor or a number becomes a variable. Raises Unsupported for dtypes that programs do not have and for complex
    numbers.
    """
    schema = schema_of(node.target)  # type: ignore[arg-type]
    bound: dict[str, object] = {}
    positional = list(node.args)
    for argument in schema.arguments:
        if positional and not argument.kwarg_only:
            value: object = positional.pop(0)
        elif argument.name in node.kwargs:
            value = node.kwargs[argument.name]
        else:
            value = argument.default_value
        value = _converted(read(value))
        if isinstance(value, str) and str(argument.type) in _NUMBERS:
            value = variable_of(value)
        bound[argument.name] = value
    return bound


def _converted(value: object) -> object:
    if isinstance(value, torch.dtype):
        ours = from_torch(value)
        if ours is None:
            raise Unsupported(f"programs do not support {str(value).removeprefix('torch.')}")
        return ours
    if isinstance(value, complex):
        raise Unsupported("programs do not support complex numbers")
    if isinstance(value, list | tuple):
        return [_converted(item) for item in value]
    return value


def select_arguments(node: Node, bound: Mapping[str, object], rule: Rule) -> dict[str, object]:
    """Return the arguments that `rule` takes. Raises Unsupported if an argument that it does not take differs from its default."""
    schema = schema_of(node.target)  # type: ignore[arg-type]
    for argument in schema.arguments:
        name, value = argument.name, bound[argument.name]
        if name in rule.parameters or name in _WITHOUT_MEANING:
            continue
        if not argument.has_default_value() or _plain(value) != _plain(_converted(argument.default_value)):
            raise Unsupported(f"{name} = {_shown(value)} is not supported")
    return {name: value for name, value in bound.items() if name in rule.parameters and name != RESULT}


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _shown(value: object) -> str:
    return f'"{value.name}"' if isinstance(value, Var) else f"{value!r:.60}"


# Promotion


def promote_arguments(given: Mapping[str, object], names: Sequence[str], *, to_float: bool) -> dict[str, object]:
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
