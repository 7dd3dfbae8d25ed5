"""The attributes of operators: their types, the conversion of values, symbols in shapes, and axes.

The kernel gets numbers for symbols in the shape attributes `told_attributes`, known from the op's own inputs. So
`broadcast_to(x, ids, shape=("n", 4))` has as many rows as `ids`, whose declared shape contains n.
"""

import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import or_
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeGuard

from oarlock.errors import ArgumentError, DeclarationError, ShapeError
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.python_number import as_python
from oarlock.ir.size import Shape, evaluate, format_shape, linear, names_in, solve_shapes
from oarlock.ir.var import Var
from oarlock.suggestions import did_you_mean

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator

__all__ = [
    "REQUIRED",
    "AttributeSpec",
    "UnknownSizes",
    "attribute_specs",
    "attributes_on_stacks",
    "axes_alone",
    "declared_shapes",
    "is_along_last",
    "needs_input_sizes",
    "require_default",
    "require_known_symbols",
    "substitute_numbers",
    "unknown_attribute",
]

REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class AttributeSpec:
    """One attribute: a keyword-only parameter of the kernel. With `variable`, a variable may provide its value.

    An attribute that was `added_later`, after programs with the operator existed, is stored in an op only if it is not the default.
    """

    name: str
    type: Any
    default: object
    variable: bool = False
    added_later: bool = False

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def type_text(self) -> str:
        return self.type.__name__ if isinstance(self.type, type) and not typing.get_origin(self.type) else str(self.type)

    def __str__(self) -> str:
        """Return the declaration: `axis: int | None = None`."""
        default = "" if self.required else f" = {self.default_text}"
        return f"{self.name}: {self.type_text}{' | None' if self.default is None else ''}{default}"

    @property
    def default_text(self) -> str:
        return f'"{self.default}"' if isinstance(self.default, str) else str(self.default)

    def convert(self, value: object) -> object:
        """Convert `value` to the type of the attribute. Raises ArgumentError."""
        if isinstance(value, Var):
            return self._require_variable(value)
        value = as_python(value)
        if isinstance(self.type, UnionType):
            return self._convert_to_one(value)
        if self.type is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if self.type is DType:
            return DType.of(value)
        if self.type is Sizes and isinstance(value, tuple | list):
            if all(isinstance(item, int | str) for item in value):
                return Sizes(value)
        elif typing.get_origin(self.type) is tuple:
            item_type = typing.get_args(self.type)[0]
            if isinstance(value, tuple | list) and all(type(item) is item_type for item in value):
                return tuple(value)
        elif isinstance(value, self.type) and (self.type is bool or not isinstance(value, bool)):
            return value
        raise ArgumentError(f"attribute {self.name} must be {self.type_text}, not {value!r}")

    def _convert_to_one(self, value: object) -> object:
        """Convert `value` to the first possible type of a union. Raises ArgumentError."""
        for option in typing.get_args(self.type):
            with suppress(ArgumentError):
                return replace(self, type=option).convert(value)
        raise ArgumentError(f"attribute {self.name} must be {self.type_text}, not {value!r}")

    def _require_variable(self, var: Var) -> Var:
        """Return `var` if it may provide the value: one number, or an int64 vector for a shape. Raises ArgumentError."""
        if not self.variable:
            raise ArgumentError(f"attribute {self.name} must be {self.type_text} when the program is built, not a variable")
        if self.type is Sizes:
            fits = var.dtype is DType.INT64 and var.ndim == 1 and isinstance(var.shape[0], int)  # type: ignore[index]
        else:
            fits = var.shape in ((), (1,)) and (var.dtype.is_floating if self.type is float else var.dtype.is_integer)
        if not fits:
            wanted = "int64[r] of known length" if self.type is Sizes else f"one {self.type_text}"
            raise ArgumentError(f'attribute {self.name} must be {wanted}, but "{var.name}" is {var.type_text}')
        return var

    def unknown(self, var: Var, fresh: Callable[[], str]) -> object:
        """Return a placeholder for the value of `var` before the run: a shape of known rank, or the default."""
        return UnknownSizes(fresh() for _ in range(var.shape[0])) if self.type is Sizes else self.default  # type: ignore[index, arg-type]


def unknown_attribute(name: str, attributes: Iterable[str], inputs: Iterable[str]) -> ArgumentError:
    """Return the error for a keyword that is neither an attribute nor an input of an operator."""
    names = list(attributes)
    hint = did_you_mean(name, [*names, *inputs])
    return ArgumentError(f"no attribute or input {name}; its attributes: {', '.join(names) or 'none'}", hint=hint)


class UnknownSizes(Sizes):
    """A shape provided by a variable: its sizes are unique symbols."""


def attribute_specs(operator: "Operator") -> dict[str, AttributeSpec]:
    """Return the attributes of an operator by name, from its kernel's parameters. A gradient shares the specs of its forward operator.

    Raises DeclarationError for one without a type, and as `require_default` does.
    """
    hints, known = typing.get_type_hints(operator.kernel), operator.forward.attributes if operator.forward is not None else {}
    specs: dict[str, AttributeSpec] = {}
    for name, parameter in inspect.signature(operator.kernel).parameters.items():
        if parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        kind = hints.get(name)
        if kind is None and name not in known:
            raise DeclarationError(f"{operator.type}: attribute {name} has no type")
        if isinstance(kind, UnionType):
            kind = functools.reduce(or_, (item for item in typing.get_args(kind) if item is not NoneType))
        spec = known.get(name)
        if kind is not None:
            later, variable = name in operator.added_later, name in operator.variable_attributes
            spec = AttributeSpec(name, kind, parameter.default, variable, later)
        assert spec is not None
        require_default(operator.type, spec, parameter)
        specs[name] = spec
    return specs


def require_default(type: str, spec: AttributeSpec, parameter: inspect.Parameter) -> None:
    """Check that the kernel has the default of an attribute that was added later. Raises DeclarationError."""
    if spec.added_later and (spec.required or parameter.default != spec.default):
        raise DeclarationError(f"{type}: {spec.name} was added later, so the kernel must declare its default too")


def needs_input_sizes(operator: "Operator", name: str, value: object) -> bool:
    """Return whether the kernel needs numbers for the symbols of attribute `name`."""
    if name not in operator.told_attributes or not isinstance(value, Sizes) or isinstance(value, UnknownSizes):
        return False
    return sum(isinstance(size, str) for size in value) > _inferred_by_kernel(operator, name, value)


def _inferred_by_kernel(operator: "Operator", name: str, value: Sizes) -> int:
    """Return how many symbols of an attribute the kernel can infer by itself, in addition to a size of -1; 0 if there are no elements."""
    return 0 if 0 in value else max(0, operator.told_attributes[name] - value.count(-1))


def require_known_symbols(operator: "Operator", name: str, value: object, shapes: Sequence[Shape]) -> None:
    """Check that the inputs determine all symbols of an attribute that the kernel needs. Raises ShapeError."""
    if not isinstance(value, Sizes) or not needs_input_sizes(operator, name, value):
        return
    there = {size for shape in shapes for size in shape if isinstance(size, str)}
    known = there | {found[0] for found in map(linear, there) if found}
    unknown = [size for size in value if isinstance(size, str) and size not in known and not names_in(size) <= known]
    if len(unknown) > _inferred_by_kernel(operator, name, value):
        slot = next((slot.name for slot in operator.signature.inputs if slot.variadic), None)
        where = f"; pass variables of that size as {slot}=[...]" if slot else ""
        raise ShapeError(f"no input determines {' and '.join(dict.fromkeys(unknown))} of {format_shape(value)}{where}")


def substitute_numbers(sizes: Sizes, shapes: Iterable[Shape], given: Iterable[Sequence[int]]) -> Sizes:
    """Return the sizes with symbols replaced by numbers, for inputs declared with `shapes` and given others. Unknown symbols stay."""
    return _substituted(sizes, tuple(shapes), tuple(map(tuple, given)))


@lru_cache(maxsize=4096)  # consecutive steps have the same arguments
def _substituted(sizes: Sizes, shapes: tuple[Shape, ...], given: tuple[tuple[int, ...], ...]) -> Sizes:
    values = solve_shapes(shapes, given)
    found = ((size, evaluate(size, values)) for size in sizes)
    return Sizes(size if number is None else number for size, number in found)


def declared_shapes(op: Op, operator: "Operator") -> tuple[Shape, ...]:
    """Return the declared shapes of an op's inputs, in slot order."""
    return tuple(var.shape or () for slot in operator.signature.inputs for var in op.inputs.get(slot.name, ()))


def axes_alone(operator: "Operator", attributes: Mapping[str, object], rank: int) -> int:
    """Return the number of leading axes whose indexes are computed independently, for the maximum rank `rank`. 0 if nothing is declared."""
    first = attributes.get(operator.axis_attribute or "", operator.axis_left_out)
    if _names_some(first, operator):
        return min(axis if axis >= 0 else rank + axis for axis in first)
    if isinstance(first, tuple):
        return next((place for place, axis in enumerate(first) if axis != place), len(first))
    if not isinstance(first, int):
        return 0
    return first if first >= 0 else rank + first


def attributes_on_stacks(operator: "Operator", attributes: Mapping[str, object]) -> dict[str, object] | None:
    """Return the attributes for inputs with an additional leading axis that is computed independently; None if nothing is declared."""
    name = operator.axis_attribute or ""
    first = attributes.get(name)
    if is_along_last(operator, attributes):
        return dict(attributes)
    if _names_some(first, operator):
        return {**attributes, name: tuple(axis + 1 if axis >= 0 else axis for axis in first)}
    if isinstance(first, tuple):
        return {**attributes, name: (0, *(axis + 1 for axis in first))}
    if not isinstance(first, int):
        return None
    return {**attributes, name: first + 1 if first >= 0 else first}


def is_along_last(operator: "Operator", attributes: Mapping[str, object]) -> bool:
    """Return whether an operator computes across the last axis because no axis is given."""
    return operator.axis_left_out == -1 and operator.axis_attribute not in attributes


def _names_some(axes: object, operator: "Operator") -> TypeGuard[tuple[int, ...]]:
    """Return whether `axes` are the axes that an operator computes across, not a permutation of all axes."""
    kind = operator.attributes[operator.axis_attribute].type if operator.axis_attribute else None
    return isinstance(axes, tuple) and isinstance(kind, UnionType)
