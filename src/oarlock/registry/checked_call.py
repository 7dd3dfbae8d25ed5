"""Calls of public functions and classes: arguments that do not fit are refused as those of operators are, with the caller's line.

Python refuses them with a TypeError that knows neither the line of the program nor what is near a wrong keyword. Packages publish their
functions and classes, so that those who write one have nothing to do for it. Numbers that NumPy computed, such as a number of classes,
become Python's.
"""

import enum
import inspect
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, Signature
from types import FunctionType
from typing import Any, TypeVar

from oarlock.errors import ArgumentError, OarlockError
from oarlock.ir.location import here
from oarlock.ir.python_number import as_python
from oarlock.ir.var import Var
from oarlock.registry.call_signature import by_name, format_types
from oarlock.suggestions import did_you_mean, refuse_calls, suggest_names

__all__ = ["checked", "publish"]

_T = TypeVar("_T")
_NONE = Parameter("none", Parameter.POSITIONAL_ONLY)


def checked(value: _T, *, methods: bool = False, attributes_in_place: bool = False) -> _T:
    """`value`, a function, as users call it; a class itself, whose constructor is checked from now on, with `methods` those too.

    `attributes_in_place` is that of `publish`.
    A function is always the same one, in the module that defines it too, where pickle looks for it. What is neither a function nor a
    class of ours is `value` itself.
    """
    if isinstance(value, FunctionType) and _is_ours(value):
        function = _checked_function(value, attributes_in_place)
        home = sys.modules[value.__module__]
        if vars(home).get(value.__name__) is value:
            setattr(home, value.__name__, function)
        return function  # type: ignore[return-value]
    if isinstance(value, type) and _is_ours(value) and not issubclass(value, BaseException | enum.Enum):
        _check_class(value, methods)
    return value  # type: ignore[return-value]


def publish(package: str, *, attributes_in_place: bool = False) -> None:
    """Make a package one that users see: its functions and classes are checked, methods too; a name that it lacks, and a module in it that
    is called, say what is meant.

    With `attributes_in_place` the keyword-only parameters of functions are attributes as those of kernels are: they may stand behind the
    others, in their order.
    """
    module = sys.modules[package]
    for name in module.__all__:
        if name in vars(module):
            setattr(module, name, checked(vars(module)[name], methods=True, attributes_in_place=attributes_in_place))
    suggest_names(package)
    refuse_calls(package)


def _is_ours(value: FunctionType | type) -> bool:
    return value.__module__.startswith("oarlock.") and not hasattr(value, "_checked")


@cache
def _checked_function(function: FunctionType, attributes_in_place: bool) -> Callable[..., Any]:
    return _wrapped(function, function.__name__, attributes_in_place=attributes_in_place)


@cache
def _check_class(cls: type, methods: bool) -> None:
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType) and not hasattr(member, "_checked") and (name == "__init__" or (methods and name[:1] != "_")):
            setattr(cls, name, _wrapped(member, "" if name == "__init__" else f".{name}", of_instance=True))


def _wrapped(function: FunctionType, name: str, *, of_instance: bool = False, attributes_in_place: bool = False) -> Callable[..., Any]:
    options = _options_of(function)
    shown = inspect.signature(function)
    shown = _in_place(shown) if attributes_in_place else shown
    written = shown == inspect.signature(function)

    takes_data = name[:1] == "."  # a method, such as `Scope.set`

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        if not takes_data and any(type(each).__module__ == "numpy" for each in (*arguments, *keywords.values())):
            arguments, keywords = tuple(map(as_python, arguments)), {key: _setting(key, each) for key, each in keywords.items()}
        if options is None or options.issuperset(keywords):
            try:
                return function(*arguments, **keywords)
            except TypeError as error:
                if isinstance(error, OarlockError):
                    raise
                if _fits(inspect.signature(function), arguments, keywords):
                    raise
        if not written and _fits(shown, arguments, keywords):
            return function(**_all_by_name(shown, arguments, keywords))
        refused = _find_misfit(shown, name, arguments, keywords, of_instance)
        if refused is not None:
            raise refused
        return function(*arguments, **keywords)

    call._checked = True  # type: ignore[attr-defined]
    if not written:
        call.__signature__ = shown  # type: ignore[attr-defined]
    return call


def _setting(name: str, value: object) -> object:
    """The value of a keyword, a number of NumPy as Python's; not that of a `value`, whose dtype counts."""
    return value if name == "value" else as_python(value)


def _in_place(signature: Signature) -> Signature:
    """The signature of a function whose keyword-only parameters may stand behind the others, all but the `name` of what it gives."""
    parameters = list(signature.parameters.values())
    attributes = [each for each in parameters if each.kind is Parameter.KEYWORD_ONLY and each.name != "name"]
    if len(attributes) + sum(each.kind is Parameter.POSITIONAL_OR_KEYWORD for each in parameters) < len(
        [each for each in parameters if each.name != "name"]
    ):
        return signature  # it takes any number of variables, or keywords
    rest = [each for each in parameters if each not in attributes]
    named = [each for each in rest if each.kind is Parameter.KEYWORD_ONLY]
    placed = [each.replace(kind=Parameter.POSITIONAL_OR_KEYWORD) for each in attributes]
    return signature.replace(parameters=[*by_name([*(each for each in rest if each not in named), *placed]), *named])


def _fits(signature: Signature, arguments: Sequence[object], keywords: Mapping[str, object]) -> bool:
    try:
        signature.bind(*arguments, **keywords)
    except TypeError:
        return False
    return True


def _all_by_name(signature: Signature, arguments: Sequence[object], keywords: Mapping[str, object]) -> dict[str, Any]:
    return dict(signature.bind(*arguments, **keywords).arguments)


def _options_of(function: FunctionType) -> frozenset[str] | None:
    """The keywords of a function that takes those of a TypedDict too, of which Python checks none; None where it checks them."""
    if not inspect.unwrap(function).__code__.co_flags & inspect.CO_VARKEYWORDS:
        return None
    expanded = _expanded(inspect.signature(function))
    kinds = {each.kind for each in expanded.parameters.values()}
    return None if Parameter.VAR_KEYWORD in kinds else frozenset([*expanded.parameters, *getattr(function, "old_keywords", ())])


def _expanded(signature: Signature) -> Signature:
    """The signature with the keywords of ``**options: Unpack[Options]``, each by itself."""
    *others, last = signature.parameters.values() or [_NONE]
    if last.kind is not Parameter.VAR_KEYWORD or typing.get_origin(last.annotation) is not typing.Unpack:
        return signature
    (options,) = typing.get_args(last.annotation)
    named = [Parameter(name, Parameter.KEYWORD_ONLY, default=..., annotation=kind) for name, kind in options.__annotations__.items()]
    return signature.replace(parameters=[*others, *(each for each in named if each.name not in signature.parameters)])


def _find_misfit(
    signature: Signature, name: str, arguments: Sequence[object], keywords: Mapping[str, object], of_instance: bool
) -> ArgumentError | None:
    """The error for arguments that a function does not take, so that nothing of it has run; None where it takes them."""
    signature = _expanded(signature)
    if _fits(signature, arguments, keywords):
        return None
    if of_instance:
        name = f"{type(arguments[0]).__name__}{name}" if arguments else name
        _, *parameters = signature.parameters.values()
        signature, arguments = signature.replace(parameters=parameters), arguments[1:]
    message, hint = _say_misfit(signature, arguments, keywords)
    plain = [each.replace(annotation=Parameter.empty) for each in signature.parameters.values()]
    given = dict.fromkeys(value for value in (*arguments, *keywords.values()) if isinstance(value, Var))
    return ArgumentError(
        f"{name}: {message}",
        location=here(),
        contract=f"{name}{format_types(Signature(plain))}",
        given=[value.describe() for value in given],
        hint=hint,
    )


def _say_misfit(signature: Signature, arguments: Sequence[object], keywords: Mapping[str, object]) -> tuple[str, str | None]:
    """The first thing that does not fit - a keyword that is wrong, too many arguments, one that is given twice or missing - and a hint."""
    parameters = signature.parameters.values()
    placed = [each.name for each in parameters if each.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    named = [each.name for each in parameters if each.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    others = [name for name in named if name not in placed]
    unknown = next((name for name in keywords if name not in named), None)
    if unknown is not None:
        return f"no argument {unknown:.60}", did_you_mean(unknown, [name for name in named if name not in keywords])
    if len(arguments) > len(placed):
        taken = " and ".join([", ".join(placed[:-1]), placed[-1]] if len(placed) > 1 else placed) or "none"
        message = f"{len(arguments)} argument{'' if len(arguments) == 1 else 's'} given, where it takes {taken}"
        return message, f"what follows has a name: {others[0]}=..." if others else None
    twice = next((name for name in placed[: len(arguments)] if name in keywords), None)
    if twice is not None:
        return f"{twice} is given twice", None
    required = [each.name for each in parameters if each.default is Parameter.empty and each.name in (*placed, *others)]
    missing = [name for name in required if name not in keywords and name not in placed[: len(arguments)]]
    return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing", None
