"""The page of compositions: functions of variables that are composed of operators."""

import importlib
import inspect
from collections.abc import Iterable, Iterator
from types import FunctionType

import numpy
from reference_pages.composition_examples import EXAMPLES
from reference_pages.composition_examples import GIVEN as VALUES
from reference_pages.markdown import prose, python, slug, verbatim
from reference_pages.source import header

import oarlock
from oarlock.op.composed.edges import COMPOSITION_EDGES
from oarlock.registry.page import AT


def compositions(start: Iterable[str]) -> Iterator[str]:
    """Yield the page. `start` is the table of the functions to start with."""
    families: dict[str, dict[str, FunctionType]] = {}
    for name, function in public_compositions().items():
        families.setdefault(function.__module__, {})[name] = function
    families = {module: families[module] for module in sorted(families)}
    yield from (
        "# Compositions",
        "",
        "Functions of `ol.op` that are composed of [operators](operators.md): each appends several ops and gets its gradient from theirs.",
        "If one fails, the program is left unchanged.",
        "",
        *start,
        "",
        "The examples are followed by their results. They use these variables, float32 and int64:",
        "",
        *python("\n".join(f"{name} = {value}" for name, value in VALUES.items())),
        "| file | functions |",
        "|---|---|",
    )
    for module, members in families.items():
        title = module.rpartition(".")[2]
        yield f"| [{title}](#{slug(title)}) | {', '.join(f'[{name}](#{slug(composition_title(name))})' for name in members)} |"
    values = values_of([EXAMPLES[name] for name in public_compositions()])
    for module, members in families.items():
        title = module.rpartition(".")[2]
        yield from ("", f"## {title}", "", f"[op/composed/{title}.py](../../src/oarlock/op/composed/{title}.py)", "")
        yield prose(inspect.getdoc(importlib.import_module(module)))
        for name, function in members.items():
            yield from ("", f"### {composition_title(name)}", "", *python(header(function, name)), prose(inspect.getdoc(function)), "")
            yield from edges(name)
            yield from (*python(EXAMPLES[name]), *verbatim("\n".join(values[EXAMPLES[name]])))


def edges(name: str) -> Iterator[str]:
    """Yield the points at which the gradient differs from PyTorch's, with the reasons."""
    reasons = COMPOSITION_EDGES.get(name, {})
    if reasons:
        yield (
            "Gradients that differ from PyTorch's: " + "; ".join(f"{AT[kind]}, {reason}" for kind, reason in sorted(reasons.items())) + "."
        )
        yield ""


def composition_title(name: str) -> str:
    return f"ol.op.{name}"


def public_compositions() -> dict[str, FunctionType]:
    """Return the functions of `ol.op` that are not operators."""
    return {name: getattr(oarlock.op, name) for name in oarlock.op.compositions.__all__}


def values_of(examples: list[str]) -> dict[str, list[str]]:
    """Return the results of each example, one line each. All examples run as one program."""
    with oarlock.Program() as program:
        names: dict[str, object] = {"ol": oarlock}
        for name, value in VALUES.items():
            array = numpy.asarray(value)
            array = array.astype("float32") if array.dtype.kind == "f" else array
            names[name] = oarlock.layer.data(name, list(array.shape), array.dtype.name, batch=None, value=array)
        found = {example: eval(example, dict(names)) for example in examples}  # noqa: S307
    several = {example: list(given) if isinstance(given, list | tuple) else [given] for example, given in found.items()}
    fetch = [var for given in several.values() for var in given]
    values = iter(oarlock.Executor().run(program, {}, fetch, scope=oarlock.Scope()))
    return {example: [f"{var.type_text}  {as_text(next(values))}" for var in given] for example, given in several.items()}


def as_text(value: object) -> str:
    """Return numbers as Python prints them, with four digits."""
    if isinstance(value, list):
        return f"[{', '.join(map(as_text, value))}]"
    if isinstance(value, numpy.ndarray | numpy.generic):
        return as_text(value.tolist())
    return f"{value + 0.0:.4g}" if isinstance(value, float) else str(value)
