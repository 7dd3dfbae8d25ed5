"""The page of layers."""

import importlib
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from types import FunctionType

from reference_pages.markdown import is_python, prose, python, slug, verbatim
from reference_pages.source import header

import oarlock
from oarlock.ir.printer import format_declaration
from oarlock.ir.var import is_among

GIVEN = """\
rows = ol.layer.data("rows", [8])                           # float32[n, 8]
signal = ol.layer.data("signal", [4, 16])                   # float32[n, 4, 16]
image = ol.layer.data("image", [4, 12, 12])                 # float32[n, 4, 12, 12]
volume = ol.layer.data("volume", [4, 6, 6, 6])              # float32[n, 4, 6, 6, 6]
vectors = ol.layer.data("vectors", ["t", 8])                # float32[n, t, 8]
memory = ol.layer.data("memory", ["s", 8])                  # float32[n, s, 8]
steps = ol.layer.data("steps", ["n", 8], batch="t")         # float32[t, n, 8]
words = ol.layer.data("words", [8], ragged=1)               # float32[words.t, 8], n sequences
ids = ol.layer.data("ids", ["t"], dtype="int64")            # int64[n, t]
label = ol.layer.data("label", [], dtype="int64")           # int64[n]
lengths = ol.layer.data("lengths", [], dtype="int64")       # int64[n]
"""
"""The inputs that the examples of layers use."""
LISTED = 12  # parameters below an example


def layers(start: Iterable[str]) -> Iterator[str]:
    """Yield the page. `start` is the table of the layers to start with."""
    yield from (
        "# Layers",
        "",
        "Operators with the parameters that they need: `ol.layer.NAME`. [Adding an operator](../guides/add_an_operator.md) explains how",
        "shapes and dtypes are written. Inputs, loops and branches are on a [page of their own](inputs_and_blocks.md).",
        "",
        *start,
        "",
        "The examples are followed by their results and the parameters that they create. They use these inputs:",
        "",
        *python(GIVEN.rstrip()),
        "| file | layers |",
        "|---|---|",
    )
    families: dict[str, dict[str, FunctionType]] = {}
    for name, function in sorted(public_layers().items()):
        families.setdefault(function.__module__, {})[name] = function
    families = {module: families[module] for module in sorted(families)}
    for module, members in families.items():
        title = module.rpartition(".")[2]
        yield f"| [{title}](#{slug(title)}) | {', '.join(f'[{name}](#{slug(layer_title(name))})' for name in members)} |"
    for module, members in families.items():
        title, source = module.rpartition(".")[2], module.removeprefix("oarlock.").replace(".", "/") + ".py"
        yield from ("", f"## {title}", "", f"[{source}](../../src/oarlock/{source})", "")
        yield prose(inspect.getdoc(importlib.import_module(module)))
        for name, function in members.items():
            about, _, example = (inspect.getdoc(function) or "").rpartition("\n\n")
            assert is_python(textwrap.dedent(example)), f"the docstring of {name} does not end with an example"
            yield from ("", f"### {layer_title(name)}", "", *python(header(function, name)), prose(about), "")
            yield from (*python(textwrap.dedent(example)), *verbatim("\n".join(made_by(textwrap.dedent(example)))))


def layer_title(name: str) -> str:
    """Return the heading of a layer, which differs from the heading of a family of the same name."""
    return f"ol.layer.{name}"


def public_layers() -> dict[str, FunctionType]:
    """Return the functions of `ol.layer` that create layers or have an example, without loops, branches, inputs and literals."""
    apart = ("oarlock.layer.control.", "oarlock.layer.inputs", "oarlock.layer.literal", "oarlock.layer.decoding")
    found = {name: getattr(oarlock.layer, name) for name in oarlock.layer.__all__}
    own = {name: value for name, value in found.items() if inspect.isfunction(value) and value.__name__ == name}
    return {
        name: value
        for name, value in own.items()
        if (value.__module__.startswith("oarlock.layer.") and not value.__module__.startswith(apart)) or has_example(value)
    }


def has_example(function: FunctionType) -> bool:
    """Return whether the docstring of a function ends with an example."""
    return is_python(textwrap.dedent((inspect.getdoc(function) or "").rpartition("\n\n")[2]))


def made_by(example: str) -> Iterator[str]:
    """Yield the variables that an example assigns, then the parameters that it creates, as a program prints them."""
    with oarlock.Program() as program:
        names: dict[str, object] = {"ol": oarlock}
        exec(GIVEN, names)  # noqa: S102
        given = dict(names)
        exec(example, names)  # noqa: S102
    for name, value in names.items():
        if (
            isinstance(value, oarlock.Var)
            and given.get(name) is not value
            and not is_among(value, program.main.inputs)
            and not value.parameter
        ):
            yield f"{name}: {value.type_text}"
    made = [format_declaration(var) for var in program.persistables() if not var.name.startswith("@")]
    yield from made[:LISTED]
    if len(made) > LISTED:
        yield f"and {len(made) - LISTED} more"
