"""Declared settings: their types and defaults, and converting given values to those types."""

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

_ORDER = (bool, int, float, None, str)  # in which the types of a union are tried; None means all others


@dataclasses.dataclass(frozen=True)
class Setting:
    """A declared setting: its type and default."""

    type: Any
    default: object


def declared_by(defaults: object, above: str = "") -> dict[str, Setting]:
    """Return the settings in a dict or dataclass instance, including nested ones, by dotted names. Raises ArgumentError for other types."""
    if isinstance(defaults, Mapping):
        fields = [(str(name), _type_of(value), value) for name, value in defaults.items()]
    elif dataclasses.is_dataclass(defaults) and not isinstance(defaults, type):
        hints = typing.get_type_hints(type(defaults))
        fields = [(field.name, hints[field.name], getattr(defaults, field.name)) for field in dataclasses.fields(defaults) if field.init]
    else:
        raise ArgumentError(
            f"settings must be a dict or a dataclass instance, not {defaults!r:.60}",
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
    """Return the type of a setting with this default; Any for None."""
    if isinstance(value, list | tuple) and value:
        kinds = {type(item) for item in value}
        return list[kinds.pop()] if len(kinds) == 1 else list[float] if kinds == {int, float} else list  # type: ignore[misc]
    return Any if value is None else type(value)


def convert(name: str, setting: Setting, given: Given) -> object:
    """Return the given value as the type of the setting. Raises ArgumentError if it does not fit."""
    try:
        return _read(setting.type, str(given.value)) if given.is_text else _checked(setting.type, given.value)
    except (ValueError, TypeError):
        usual = "" if setting.default is None else f", such as {setting.default!r:.40}"
        raise ArgumentError(
            f'"{name}" must be {_in_words(setting.type)}{usual}, not {given.value!r:.60}', given=[f"given by {given.where}"]
        ) from None


def _read(kind: Any, text: str) -> object:
    """Convert command-line text to a type. Raises ValueError."""
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
    try:  # any type
        return _toml(text)
    except ValueError:
        return text


def _checked(kind: Any, value: object) -> object:
    """Convert a TOML value to a type without loss. Raises ValueError."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if kind in (str, bool, int):
        return value if type(value) is kind else _fail()
    if kind is float:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _fail()
    if origin in (typing.Union, types.UnionType):
        return _first(inside, _checked, value)
    if kind is types.NoneType:  # TOML has no null
        return _fail()
    if origin is typing.Literal:
        return value if value in inside else _fail()
    if list in (kind, origin) or tuple in (kind, origin):
        return _many(kind, value, _checked) if isinstance(value, list) else _fail()
    if isinstance(kind, type) and issubclass(kind, Path):
        return kind(value) if isinstance(value, str) else _fail()
    return value


def _many(kind: Any, values: Sequence[Any], read: Callable[[Any, Any], object]) -> object:
    """Convert values to a list or a tuple, each to the type of its position."""
    inside = typing.get_args(kind)
    if tuple in (kind, typing.get_origin(kind)):
        kinds = [inside[0] if inside else Any] * len(values) if not inside or inside[-1] is ... else list(inside)
        return tuple(read(each, value) for each, value in zip(kinds, values, strict=True))
    return [read(inside[0] if inside else Any, value) for value in values]


def _first(kinds: Sequence[Any], read: Callable[[Any, Any], object], value: object) -> object:
    """Convert a value to the first type that accepts it."""
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
