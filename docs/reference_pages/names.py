"""The page of public names."""

import enum
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from functools import cached_property
from types import FunctionType, ModuleType

from reference_pages.compositions import composition_title, public_compositions
from reference_pages.layers import layer_title, public_layers
from reference_pages.markdown import prose, python, slug
from reference_pages.source import fields, header

import oarlock
from oarlock import errors
from oarlock.registry.declaration import Operator


def unwrapped(value: object) -> object:
    """A function without the check of its calls, which not every module that has it has put around it."""
    return inspect.unwrap(value) if inspect.isfunction(value) else value


def public_names() -> Iterator[str]:
    groups = public_groups()
    places: dict[int, list[str]] = {}
    for names in groups.values():
        for path, value in names.items():
            places.setdefault(id(unwrapped(value)), []).append(path)
    for paths in places.values():
        paths.sort(key=lambda path: path.count("."))  # the shortest is where it is described
    yield from (
        "# Public names",
        "",
        "What `import oarlock as ol` gives, by the package that it comes from. Operators are in [operators](operators.md) and",
        "[compositions](compositions.md),",
        "layers in [layers](layers.md), data sets in [data sets](datasets.md), exceptions in [errors](errors.md).",
        "[Documents](../README.md) lists the guides, which say how",
        "all this is used.",
    )
    in_layers, composed = list(public_layers().values()), list(public_compositions().values())
    for group, names in groups.items():
        yield from ("", f"## {group}", "", prose(inspect.getdoc(importlib.import_module(group))))
        links = []
        described = []
        for path, value in names.items():
            first, *others = places[id(unwrapped(value))]
            if path != first and first in names:
                continue
            if isinstance(value, Operator):
                links.append(f"[`{path}`](operators.md#{value.type})")
            elif inspect.isclass(value) and issubclass(value, errors.OarlockError):
                links.append(f"[`{path}`](errors.md#{value.__name__.lower()})")
            elif value in composed:
                links.append(f"[`{path}`](compositions.md#{slug(composition_title(value.__name__))})")
            elif value in in_layers:
                links.append(f"[`{path}`](layers.md#{slug(layer_title(value.__name__))})")
            elif path != first:
                links.append(f"[`{path}`](#{slug(first)})")
            else:
                described += ["", f"### {path}", ""]
                described += [f"Also {', '.join(f'`{other}`' for other in others)}.", ""] if others else []
                described += entry(path.rpartition(".")[2], value)
        if links:
            yield from ("", "Described elsewhere:", "", *(f"- {link}" for link in links))
        yield from described


def public_groups() -> dict[str, dict[str, object]]:
    """The public names of each package by their whole path: first those of `oarlock` itself, then those of its public modules."""
    groups: dict[str, dict[str, object]] = {}
    for home, names in oarlock._NAMES.items():  # type: ignore[attr-defined]
        group = groups.setdefault(".".join(home.split(".")[:2]), {})
        for name in names:
            public = name.split(" as ")[-1]
            add_name(groups, group, f"ol.{public}", getattr(oarlock, public))
    for name in oarlock._MODULES:  # type: ignore[attr-defined]
        add_module(groups, getattr(oarlock, name), f"ol.{name}")
    return groups


def add_module(groups: dict[str, dict[str, object]], module: ModuleType, path: str) -> None:
    group = groups.setdefault(module.__name__, {})
    for name in getattr(module, "__all__", ()):
        if module is not oarlock.op or not isinstance(getattr(module, name), ModuleType):  # the families have a page of their own
            add_name(groups, group, f"{path}.{name}", getattr(module, name))


def add_name(groups: dict[str, dict[str, object]], group: dict[str, object], path: str, value: object) -> None:
    if isinstance(value, ModuleType):
        if not value.__name__.startswith("oarlock.datasets."):  # each data set has its place on a page of their own
            add_module(groups, value, path)
    else:
        group[path] = value


def entry(name: str, value: object) -> Iterator[str]:
    if inspect.isclass(value):
        yield from class_entry(value)
    elif inspect.isfunction(value):
        yield from python(header(value, name))
        yield prose(inspect.getdoc(value))
    else:
        yield "A type, for annotations." if hasattr(value, "__origin__") else f"A `{type(value).__name__}`."


def class_entry(cls: type) -> Iterator[str]:
    lines = [f"class {cls.__name__}:"]
    if issubclass(cls, enum.Enum):
        lines += [f"    {member.name}" for member in cls]
    else:
        lines += [textwrap.indent(line, "    ") for line in fields(cls)]
        if inspect.isfunction(vars(cls).get("__init__")) and not fields(cls):
            lines.append(textwrap.indent(header(cls.__init__, "__init__"), "    "))
    yield from python("\n".join(lines) if len(lines) > 1 else lines[0].removesuffix(":"))
    yield prose(inspect.getdoc(cls))
    for name, kind, function in methods(cls):
        yield from ("", *python(kind + header(function, name)))
        yield prose(inspect.getdoc(function))


def methods(cls: type) -> list[tuple[str, str, FunctionType]]:
    """The public methods and properties that a class adds to its bases, as they stand in its source; then those that other files attach."""
    kinds = {property: "@property\n", cached_property: "@property\n", classmethod: "@classmethod\n", staticmethod: "@staticmethod\n"}
    found = []
    for name, member in vars(cls).items():
        function = member.fget if isinstance(member, property) else getattr(member, "func", getattr(member, "__func__", member))
        if not name.startswith("_") and inspect.isfunction(function):
            found.append((name, kinds.get(type(member), ""), function))
    return sorted(found, key=lambda item: place(cls, item[2]))


def place(cls: type, function: FunctionType) -> tuple[bool, str, int]:
    return function.__module__ != cls.__module__, function.__module__, inspect.unwrap(function).__code__.co_firstlineno
