"""Settings that are declared: the type and the first value of each, and what is given to one as a value of its type."""

import dataclasses
import tomllib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from oarlock.errors import ArgumentError
from oarlock.training.configuration import Given

__all__ = ["Setting", "convert", "declared_by"]

_ORDER = (bool, int, float, None, str)  # in which the types of a union are tried; None stands for all others


@dataclasses.dataclass(frozen=True)
class Setting:
    """A setting that is declared: its type, and its value unless another is given."""

    type: Any
    default: object


def declared_by(defaults: object, above: str = "") -> dict[str, Setting]:
    """The settings in a dict of values, or in a dataclass, nested ones too, by dotted names. Raises ArgumentError for what is neither."""
    if isinstance(defaults, Mapping):
        fields = [(str(name), _type_of(value), value) for name, value in defaults.items()]
    elif dataclasses.is_dataclass(defaults) and not isinstance(defaults, type):
        hints = typing.get_type_hints(type(defaults))
        fields = [(field.name, hints[field.name], getattr(defaults, field.name)) for field in dataclasses.fields(defaults) if field.init]
    else:
        raise ArgumentError(
            f"settings are a dict of values, or an instance of a dataclass, not {defaults!r:.60}",
            hint='ol.settings({"hidden": 32, "lr": 1e-3})',
        )
    found: dict[str, Setting] = {}
    for name, kind, value in fields:
        if isinstance(value, Mapping) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
            found |= declared_by(value, f"{above}{name}.")
        else:
            found[above + name] = Setting(kind, value)
    return found


def _type_of(value: object) -> Any:
    """The type of a setting whose first value is `value`; any, where that is None."""
    if isinstance(value, list | tuple) and value:
        kinds = {type(item) for item in value}
        return list[kinds.pop()] if len(kinds) == 1 else list[float] if kinds == {int, float} else list  # type: ignore[misc]
    return Any if value is None else type(value)


def convert(name: str, setting: Setting, given: Given) -> object:
    """The value that is given, as the type of the setting. Raises ArgumentError where it is none."""
    try:
        return _read(setting.type, str(given.value)) if given.is_text else _checked(setting.type, given.value)
    except (ValueError, TypeError):
        usual = "" if setting.default is None else f", such as {setting.default!r:.40}"
        raise ArgumentError(
            f'"{name}" is {_in_words(setting.type)}{usual}, not {given.value!r:.60}', given=[f"{given.where} gives it"]
        ) from None


def _read(kind: Any, text: str) -> object:
    """The text of a command line as a value of a type. Raises ValueError."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if kind is str:
        return text
    if kind is bool:
        return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else _fail()
    if kind in (int, float):
        return kind(text)
    if origin in (typing.Union, types.UnionType):
        return _first(inside, _read, text)
    if kind is types.NoneType:
        return None if text.lower() == "none" else _fail()
    if origin is typing.Literal:
        found = [each for each in inside if str(each) == text]
        return found[0] if found else _fail()
    if list in (kind, origin) or tuple in (kind, origin):
        if text.startswith("["):
            return _checked(kind, _toml(text))
        return _many(kind, [word.strip() for word in text.split(",")] if text else [], _read)
    if isinstance(kind, type) and issubclass(kind, Path):
        return kind(text)
    try:  # of any type
        return _toml(text)
    except ValueError:
        return text


def _checked(kind: Any, value: object) -> object:
    """A value of TOML as one of a type, where nothing is lost. Raises ValueError."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if kind in (str, bool, int):
        return value if type(value) is kind else _fail()
    if kind is float:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _fail()
    if origin in (typing.Union, types.UnionType):
        return _first(inside, _checked, value)
    if kind is types.NoneType:  # which TOML has not
        return _fail()
    if origin is typing.Literal:
        return value if value in inside else _fail()
    if list in (kind, origin) or tuple in (kind, origin):
        return _many(kind, value, _checked) if isinstance(value, list) else _fail()
    if isinstance(kind, type) and issubclass(kind, Path):
        return kind(value) if isinstance(value, str) else _fail()
    return value


def _many(kind: Any, values: Sequence[Any], read: Callable[[Any, Any], object]) -> object:
    """Values as a list or a tuple, each as the type of its place."""
    inside = typing.get_args(kind)
    if tuple in (kind, typing.get_origin(kind)):
        kinds = [inside[0] if inside else Any] * len(values) if not inside or inside[-1] is ... else list(inside)
        return tuple(read(each, value) for each, value in zip(kinds, values, strict=True))
    return [read(inside[0] if inside else Any, value) for value in values]


def _first(kinds: Sequence[Any], read: Callable[[Any, Any], object], value: object) -> object:
    """The value as the first type that takes it."""
    for each in sorted(kinds, key=lambda each: _ORDER.index(each if each in _ORDER else None)):
        try:
            return read(each, value)
        except (ValueError, TypeError):
            continue
    return _fail()


def _toml(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise ValueError(text) from error


def _fail() -> NoReturn:
    raise ValueError


def _in_words(kind: Any) -> str:
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text", types.NoneType: "none", Any: "a value"}
    if kind in words:
        return words[kind]
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_in_words(each) for each in inside)
    if origin is typing.Literal:
        return f"one of {', '.join(map(repr, inside))}"
    if list in (kind, origin) or tuple in (kind, origin):
        return "a list" + (f", each {_in_words(inside[0])}" if inside else "")
    return "a path" if isinstance(kind, type) and issubclass(kind, Path) else f"of type {getattr(kind, '__name__', kind)}"
