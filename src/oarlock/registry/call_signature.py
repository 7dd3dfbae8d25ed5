"""Python signatures of operators, as shown by `inspect.signature`, `help` and editors: inputs, then attributes.

Attributes follow the inputs in the order of the kernel's parameters and may also be given by name. Those without a default that follow
optional parameters are keyword-only, and so are all attributes after them, as Python requires.
"""

import inspect
import re
import typing
from collections.abc import Mapping, Sequence
from functools import reduce
from inspect import Parameter, Signature
from operator import or_
from types import UnionType
from typing import TYPE_CHECKING, Any

from oarlock.ir.attribute import Sizes
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.registry.attributes import AttributeSpec
from oarlock.registry.signature import Slot

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator

__all__ = [
    "OfEach",
    "call_signature",
    "call_signatures",
    "format_call",
    "format_help",
    "format_type",
    "format_types",
    "given_attributes",
    "size_slot",
]

_BY_PASSES = ("random_id", "first_row", "all_rows")  # attributes of random ops that passes set, not callers
_LONGEST = 60  # maximum characters of a displayed default
_NUMBERS = {
    "integer": int,
    "bool": bool,
    "complex": complex,
    "inexact": complex,
    "number": complex,
}  # types of numbers accepted by a slot; float for other dtypes


def call_signature(operator: "Operator") -> Signature:
    """Return the signature of a call with every input positional or by name."""
    return call_signatures(operator)[0]


def call_signatures(operator: "Operator") -> list[Signature]:
    """Return every form of a call, the plain one first: see `call_signature`.

    The others pass keyword-only attributes positionally, omit an input that only provides sizes, or pass the variables of the last slot one
    by one.
    """
    slots, sizes_slot = operator.signature.inputs, size_slot(operator)
    behind = [_attribute(operator.attributes[name]) for name in given_attributes(operator)]
    inputs = [_input(slot, sizes_slot) for slot in slots]
    forms = _in_places(inputs + behind)
    if sizes_slot is not None:
        forms += _in_places([*inputs[:-1], *behind])
    elif slots and slots[-1].variadic:
        spread = inputs[-1].replace(kind=Parameter.VAR_POSITIONAL, annotation=Var, default=Parameter.empty)
        forms.append([*inputs[:-1], spread, *(each.replace(kind=Parameter.KEYWORD_ONLY) for each in behind)])
    name = Parameter("name", Parameter.KEYWORD_ONLY, default=None, annotation=str | None)
    return [Signature([*form, name], return_annotation=_result(operator)) for form in forms]


def _in_places(parameters: list[Parameter]) -> list[list[Parameter]]:
    """Return the plain form of parameters and, if that has keyword-only ones, the form with all positional and none omitted."""
    plain = by_name(parameters)
    if plain == parameters:
        return [plain]
    last = max(number for number, each in enumerate(parameters) if each.default is Parameter.empty)
    return [plain, [each.replace(default=Parameter.empty) for each in parameters[:last]] + parameters[last:]]


def given_attributes(operator: "Operator") -> list[str]:
    """Return the attributes that a caller may set, in positional order."""
    return [name for name, spec in operator.attributes.items() if spec.type is not Block and name not in _BY_PASSES]


def size_slot(operator: "Operator") -> Slot | None:
    """Return the last slot if it only provides the sizes of an attribute, so that calls may omit it."""
    last = operator.signature.inputs[-1] if operator.signature.inputs else None
    return last if operator.told_attributes and last is not None and last.variadic and last.shape_only else None


def by_name(parameters: Sequence[Parameter]) -> list[Parameter]:
    """Make parameters keyword-only from the first one without a default after one with a default."""
    found: list[Parameter] = []
    for each in parameters:
        late = each.default is Parameter.empty and any(other.default is not Parameter.empty for other in found)
        named = late or bool(found and found[-1].kind is Parameter.KEYWORD_ONLY)
        found.append(each.replace(kind=Parameter.KEYWORD_ONLY) if named else each)
    return found


def spread_numbers(operator: "Operator", attributes: Mapping[str, object]) -> dict[str, object]:
    """Expand a number given for a tuple attribute: to the length of its type, to the length of the operator's default tuples, or to one."""
    return {
        name: _spread(operator, name, value) if type(value) is int or type(value) is float else value for name, value in attributes.items()
    }


def _spread(operator: "Operator", name: str, value: float) -> object:
    spec = operator.attributes.get(name)
    if spec is None or typing.get_origin(spec.type) is not tuple:
        return (value,) if spec is not None and spec.type is Sizes else value
    item, *others = typing.get_args(spec.type)
    if not isinstance(value, item) and item is not float:
        return value
    rows = [other.default for other in operator.attributes.values() if isinstance(other.default, tuple)]
    count = max(map(len, rows), default=1) if others == [...] else 1 + len(others)
    return (item(value),) * count


def _input(slot: Slot, sizes_slot: Slot | None) -> Parameter:
    number = _NUMBERS.get(slot.dtype, float)
    kind: Any = Sequence[Var] | Var if slot.variadic else Var | number if slot.takes_number else Var
    default = () if slot is sizes_slot else None if slot.optional else Parameter.empty
    return Parameter(slot.name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind | None if slot.optional else kind)


def _attribute(spec: AttributeSpec) -> Parameter:
    kind = _given_type(spec.type)
    kind = kind | Var if spec.variable else kind
    kind = kind | None if spec.default is None else kind
    return Parameter(spec.name, Parameter.POSITIONAL_OR_KEYWORD, default=spec.default, annotation=kind)


def _given_type(kind: Any) -> Any:
    """Return the type of values that callers may pass for an attribute type."""
    if isinstance(kind, UnionType):
        return reduce(or_, map(_given_type, typing.get_args(kind)))
    if kind is Sizes:
        return int | Sequence[int | str]
    if kind is DType:
        return DType | str | type
    if typing.get_origin(kind) is tuple:
        item = typing.get_args(kind)[0]
        return item | Sequence[item]  # type: ignore[valid-type]
    return kind


def _result(operator: "Operator") -> Any:
    kinds = [list[Var] if slot.variadic else Var for slot in operator.signature.outputs if slot.name not in operator.intermediate]
    return kinds[0] if len(kinds) == 1 else tuple[tuple(kinds)]  # type: ignore[misc]


def format_call(operator: "Operator") -> str:
    """Return the signature on one line, attributes after inputs: `softmax(x: float[...s], axis=None) -> y: float[...s]`."""
    specs = [operator.attributes[name] for name in given_attributes(operator)]
    taken = [*map(str, operator.signature.inputs), *(spec.name if spec.required else f"{spec.name}={spec.default_text}" for spec in specs)]
    return f"{operator.type}({', '.join(taken)}) -> {', '.join(map(str, operator.signature.outputs))}"


def format_help(operator: "Operator") -> str:
    """Return the help text of an operator: its signature, documentation and attribute types."""
    attributes = [f"    {operator.attributes[name]}" for name in given_attributes(operator)]
    return "\n".join([format_call(operator), "", operator.doc, *(["", "Attributes:", *attributes] if attributes else [])])


def format_types(signature: Signature) -> str:
    """Format a Python signature with short type names: `(x: Var, axis: int | None = None, *, name: str | None = None) -> Var`."""
    texts = [_format(each) for each in signature.parameters.values()]
    kinds = [each.kind for each in signature.parameters.values()]
    if Parameter.KEYWORD_ONLY in kinds and Parameter.VAR_POSITIONAL not in kinds:
        texts.insert(kinds.index(Parameter.KEYWORD_ONLY), "*")
    if Parameter.POSITIONAL_ONLY in kinds:
        texts.insert(kinds.count(Parameter.POSITIONAL_ONLY), "/")
    given = signature.return_annotation
    return f"({', '.join(texts)})" + ("" if given is Signature.empty else f" -> {format_type(given)}")


def _format(parameter: Parameter) -> str:
    stars = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    typed = parameter.annotation is not Parameter.empty
    text = f"{stars}{parameter.name}{': ' + format_type(parameter.annotation) if typed else ''}"
    if parameter.default is Parameter.empty:
        return text
    shown = f'"{parameter.default}"' if isinstance(parameter.default, DType) else repr(parameter.default).replace("'", '"')
    if len(shown) > _LONGEST or shown[0] == "<" or parameter.default is ...:
        shown = "..."
    return f"{text} = {shown}" if typed else f"{text}={shown}"


def format_type(kind: Any) -> str:
    """Format a type without module names."""
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    return re.sub(r"\b[a-z_]\w*\.(?=\w)", "", text)


class OfEach:
    """A descriptor with a value per instance, computed by a function, and a separate value for the class: for `__doc__` and
    `__signature__`.

    A property with such a name would be used as the documentation or signature of the class.
    """

    def __init__(self, function: typing.Callable[[Any], object], of_class: object = None):
        self.function = function
        self.of_class = of_class

    def __get__(self, instance: object, owner: type) -> object:
        if instance is not None:
            return self.function(instance)
        if self.of_class is None:
            raise AttributeError("only instances have this attribute")
        return self.of_class
