"""Checked calls of public functions and classes: wrong arguments raise an ArgumentError with the caller's line.

Python's TypeError lacks the program's line and suggestions for a misspelled keyword. Packages apply the check to everything they export, so
functions need no code for it. NumPy numbers in arguments are converted to Python numbers.
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
    """Return the checked form of a function; for a class, add checks to its constructor and, with `methods`, its methods.

    `attributes_in_place` is as for `publish`. The checked function also replaces the original in its module, where pickle looks it up.
    Other objects are returned unchanged.
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
    """Make a package's exports checked, methods included, and add suggestions for missing names and for calls of its modules.

    With `attributes_in_place`, keyword-only parameters of functions may be passed positionally after the others, like attributes of
    operators.
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
    """Convert a NumPy number to Python, except for the keyword `value`, whose dtype matters."""
    return value if name == "value" else as_python(value)


def _in_place(signature: Signature) -> Signature:
    """Return a signature whose keyword-only parameters except `name` may be positional."""
    parameters = list(signature.parameters.values())
    attributes = [each for each in parameters if each.kind is Parameter.KEYWORD_ONLY and each.name != "name"]
    if len(attributes) + sum(each.kind is Parameter.POSITIONAL_OR_KEYWORD for each in parameters) < len(
        [each for each in parameters if each.name != "name"]
    ):
        return signature  # it has *args or **kwargs
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
    """Return the keywords of a function with `**options: Unpack[TypedDict]`, which Python does not check; None for other functions."""
    if not inspect.unwrap(function).__code__.co_flags & inspect.CO_VARKEYWORDS:
        return None
    expanded = _expanded(inspect.signature(function))
    kinds = {each.kind for each in expanded.parameters.values()}
    return None if Parameter.VAR_KEYWORD in kinds else frozenset([*expanded.parameters, *getattr(function, "old_keywords", ())])


def _expanded(signature: Signature) -> Signature:
    """Return the signature with ``**options: Unpack[Options]`` replaced by its keywords."""
    *others, last = signature.parameters.values() or [_NONE]
    if last.kind is not Parameter.VAR_KEYWORD or typing.get_origin(last.annotation) is not typing.Unpack:
        return signature
    (options,) = typing.get_args(last.annotation)
    named = [Parameter(name, Parameter.KEYWORD_ONLY, default=..., annotation=kind) for name, kind in options.__annotations__.items()]
    return signature.replace(parameters=[*others, *(each for each in named if each.name not in signature.parameters)])


def _find_misfit(
    signature: Signature, name: str, arguments: Sequence[object], keywords: Mapping[str, object], of_instance: bool
) -> ArgumentError | None:
    """Return the error for arguments that do not match the signature, or None."""
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
    """Describe the first mismatch (unknown keyword, too many arguments, duplicate or missing argument), with a hint."""
    parameters = signature.parameters.values()
    placed = [each.name for each in parameters if each.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    named = [each.name for each in parameters if each.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    others = [name for name in named if name not in placed]
    unknown = next((name for name in keywords if name not in named), None)
    if unknown is not None:
        return f"no argument {unknown:.60}", did_you_mean(unknown, [name for name in named if name not in keywords])
    if len(arguments) > len(placed):
        taken = " and ".join([", ".join(placed[:-1]), placed[-1]] if len(placed) > 1 else placed) or "none"
        message = f"{len(arguments)} argument{'' if len(arguments) == 1 else 's'} given, but it takes {taken}"
        return message, f"pass the others by name: {others[0]}=..." if others else None
    twice = next((name for name in placed[: len(arguments)] if name in keywords), None)
    if twice is not None:
        return f"{twice} is given twice", None
    required = [each.name for each in parameters if each.default is Parameter.empty and each.name in (*placed, *others)]
    missing = [name for name in required if name not in keywords and name not in placed[: len(arguments)]]
    return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing", None
