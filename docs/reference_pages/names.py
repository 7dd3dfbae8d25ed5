"""The pages of public names by area, and the place of every public name in the reference."""

import enum
import functools
import inspect
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType, ModuleType

from reference_pages.areas import AREAS
from reference_pages.compositions import composition_title, public_compositions
from reference_pages.layers import layer_title, public_layers
from reference_pages.markdown import first_sentence, prose, python, slug
from reference_pages.source import fields, header

import oarlock
from oarlock import errors
from oarlock.datasets.data_set import DataSet
from oarlock.registry.declaration import Operator

OPTIMIZERS = ("oarlock.optimizer", "oarlock.optimizer.schedule")


@dataclass(frozen=True)
class Home:
    """The page and the heading that describe a public value, and its paths, the shortest first."""

    page: str
    anchor: str
    paths: tuple[str, ...]

    @property
    def link(self) -> str:
        return f"{self.page}.md#{self.anchor}"


def area_page(name: str) -> Iterator[str]:
    area = AREAS[name]
    yield from (f"# {area.title}", "", area.about, "", *first_names(area.first))
    yield from entries(name, area.packages, area.first)


def first_names(paths: Sequence[str]) -> Iterator[str]:
    """Yield a table of names with links and the first sentences of their docstrings."""
    yield from ("| start with | |", "|---|---|")
    for path in paths:
        value = functools.reduce(getattr, path.split(".")[1:], oarlock)  # type: ignore[arg-type]
        if hasattr(value, "__origin__"):
            doc = "A type for annotations."
        else:
            doc = value.doc if isinstance(value, Operator) else inspect.getdoc(value)
        yield f"| [`{path}`]({home_of(value).link}) | {first_sentence(doc).replace('|', chr(92) + '|')} |"


def entries(page: str, packages: Sequence[str], first: Sequence[str] = (), without: Sequence[str] = ()) -> Iterator[str]:
    """Yield the entries of a page, `first` first and the others by path; then links to the names that other pages describe."""
    names = {path: value for package in packages for path, value in public_groups()[package].items() if path not in without}
    links = []
    for path in sorted(names, key=lambda path: (first.index(path) if path in first else len(first), path.lower())):
        home = home_of(names[path])
        if home.page != page and home.anchor != slug(path):
            links.append(f"[`{path}`]({home.link})")
        elif home.page == page and path == home.paths[0]:
            yield from ("", f"## {path}", "")
            if len(home.paths) > 1:
                yield from (f"Also {', '.join(f'`{other}`' for other in home.paths[1:])}.", "")
            yield from entry(path.rpartition(".")[2], names[path])
    modules = {path: package for path, package in public_modules().items() if package in packages}
    if modules:
        yield from ("", "## Modules")
    for path, package in modules.items():
        yield from ("", f"### {path}", "", prose(inspect.getdoc(sys.modules[package])))
    if links:
        yield from ("", "## On other pages", "", ", ".join(links) + ".")


def unwrapped(value: object) -> object:
    """Return a function without the check of its calls, which not every module of the function has put around it."""
    return inspect.unwrap(value) if inspect.isfunction(value) else value


def home_of(value: object) -> Home:
    return homes()[id(unwrapped(value))]


@functools.cache
def homes() -> dict[int, Home]:
    """Return the home of each public value by its id."""
    paths: dict[int, list[tuple[str, str]]] = {}
    values: dict[int, object] = {}
    for package, names in public_groups().items():
        for path, value in names.items():
            paths.setdefault(id(unwrapped(value)), []).append((path, package))
            values[id(unwrapped(value))] = value
    layers, composed = list(public_layers().values()), list(public_compositions().values())
    found = {}
    for key, value in values.items():
        places = sorted(paths[key], key=lambda place: place[0].count("."))  # a stable sort
        name = getattr(value, "__name__", "")
        if isinstance(value, Operator):
            page, anchor = "operators", value.type
        elif inspect.isclass(value) and issubclass(value, errors.OarlockError):
            page, anchor = "errors", name.lower()
        elif value in composed:
            page, anchor = "compositions", slug(composition_title(name))
        elif value in layers:
            page, anchor = "layers", slug(layer_title(name))
        else:
            page, anchor = page_of(places[0][1]), slug(places[0][0])
        found[key] = Home(page, anchor, tuple(path for path, _ in places))
    return found


def page_of(package: str) -> str:
    pages = [name for name, area in AREAS.items() if package in area.packages] + ["optimizers"] * (package in OPTIMIZERS)
    if len(pages) != 1:
        raise ValueError(f"package {package} is in {len(pages)} areas of docs/reference_pages/areas.py: add it to one")
    return pages[0]


@functools.cache
def public_groups() -> dict[str, dict[str, object]]:
    """Return the public names of each package by path: first those of `oarlock` itself, then those of its public modules."""
    groups: dict[str, dict[str, object]] = {}
    for home, names in oarlock._NAMES.items():  # type: ignore[attr-defined]
        group = groups.setdefault(".".join(home.split(".")[:2]), {})
        for name in names:
            public = name.split(" as ")[-1]
            add_name(groups, group, f"ol.{public}", getattr(oarlock, public))
    for name in oarlock._MODULES:  # type: ignore[attr-defined]
        add_module(groups, getattr(oarlock, name), f"ol.{name}")
    for name, operator in oarlock.registry.standard.operators.items():
        if getattr(oarlock.op, name, None) is operator:
            groups["oarlock.op"][f"ol.op.{name}"] = operator
    return groups


@functools.cache
def public_modules() -> dict[str, str]:
    """Return the public modules by path, one path each, with the names under which Python imports them."""
    found: dict[str, str] = {}
    for name in oarlock._MODULES:  # type: ignore[attr-defined]
        module = getattr(oarlock, name)
        found.setdefault(module.__name__, f"ol.{name}")
        for inner in getattr(module, "__all__", ()):
            value = getattr(module, inner)
            if isinstance(value, ModuleType) and module is not oarlock.op and module is not oarlock.datasets:
                found.setdefault(value.__name__, f"ol.{name}.{inner}")
    return {path: module for module, path in sorted(found.items())}


def add_module(groups: dict[str, dict[str, object]], module: ModuleType, path: str) -> None:
    group = groups.setdefault(module.__name__, {})
    for name in getattr(module, "__all__", ()):
        if module is not oarlock.op or not isinstance(getattr(module, name), ModuleType):  # operators are added from the registry
            add_name(groups, group, f"{path}.{name}", getattr(module, name))


def add_name(groups: dict[str, dict[str, object]], group: dict[str, object], path: str, value: object) -> None:
    if isinstance(value, ModuleType):
        add_module(groups, value, path)
    elif not isinstance(value, DataSet):  # the page of data sets describes each of them
        group[path] = value


def entry(name: str, value: object) -> Iterator[str]:
    if inspect.isclass(value):
        yield from class_entry(value)
    elif inspect.isfunction(value):
        yield from python(header(value, name))
        yield prose(inspect.getdoc(value))
    else:
        yield "A type for annotations." if hasattr(value, "__origin__") else f"A `{type(value).__name__}`."


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
    """Return the public methods and properties that a class adds to its bases, in the order of its file; those of other files last."""
    kinds = {property: "@property\n", cached_property: "@property\n", classmethod: "@classmethod\n", staticmethod: "@staticmethod\n"}
    found = []
    for name, member in vars(cls).items():
        function = member.fget if isinstance(member, property) else getattr(member, "func", getattr(member, "__func__", member))
        if not name.startswith("_") and inspect.isfunction(function):
            found.append((name, kinds.get(type(member), ""), function))
    return sorted(found, key=lambda item: place(cls, item[2]))


def place(cls: type, function: FunctionType) -> tuple[bool, str, int]:
    return function.__module__ != cls.__module__, function.__module__, inspect.unwrap(function).__code__.co_firstlineno
