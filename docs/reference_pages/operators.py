"""The page of operators."""

import importlib
import inspect
from collections.abc import Iterable, Iterator

from reference_pages.markdown import code, escaped, prose

import oarlock
import oarlock.op.update  # its operators are standard ones too
from oarlock.registry.catalogue import standard
from oarlock.registry.declaration import Operator
from oarlock.registry.page import format_page

SECTIONS = ("Inputs", "Attributes", "Outputs", "Promises", "Gradients", "Examples", "Refused")


def operators(start: Iterable[str]) -> Iterator[str]:
    """Yield the page. `start` is the table of the operators to start with."""
    families: dict[str, list[Operator]] = {}
    for operator in standard:
        if operator.kernel.__module__.startswith("oarlock.op."):  # a process may have registered operators of its own
            families.setdefault(operator.kernel.__module__, []).append(operator)
    families = {module: families[module] for module in sorted(families, key=family)}
    aliases = operator_aliases()
    yield from (
        "# Operators",
        "",
        "The standard operators, `ol.op.NAME`. `oarlock ops NAME` prints the same text, with examples.",
        "[Adding an operator](../guides/add_an_operator.md) explains signatures, [the language](language.md) specifies programs.",
        "",
        *start,
        "",
        "| family | operators |",
        "|---|---|",
    )
    for module, members in families.items():
        yield f"| [{family(module)}](#{family(module)}) | {', '.join(f'[{one.type}](#{one.type})' for one in members)} |"
    for module, members in families.items():
        source = module.replace(".", "/") + ".py"
        yield from ("", f"## {family(module)}", "", f"[{source.removeprefix('oarlock/')}](../../src/{source})", "")
        yield prose(inspect.getdoc(importlib.import_module(module)))
        for operator in members:
            yield from ("", f"### {operator.type}", "", *operator_entry(operator, aliases.get(operator.type, [])))


def family(module: str) -> str:
    return module.removeprefix("oarlock.op.").removeprefix("control.")


def operator_entry(operator: Operator, aliases: list[str]) -> Iterator[str]:
    """Yield the text of `oarlock ops` as Markdown, without the sections that the signature repeats."""
    signature, _, rest = format_page(operator).partition("\n")
    yield from ("```text", signature, "```", "", prose(operator.doc), "")
    page = page_sections(rest.replace(operator.doc, "", 1))
    kept = [slot.name for slot in operator.signature.outputs if slot.name in operator.intermediate]
    if aliases:
        yield f"- Also: {', '.join(f'`{alias}`' for alias in aliases)}"
    if kept:
        yield f"- Kept for the gradient, not returned: {', '.join(f'`{name}`' for name in kept)}"
    for title in ("Attributes", "Gradients", "Promises"):
        items = page.get(title, [])
        if title == "Gradients" and not items:
            yield "- Gradients: none"
        elif items and title == "Promises":
            yield f"- Promises: {'; '.join(map(escaped, items))}"
        elif items:
            yield f"- {title}:"
            yield from (f"  - {gradient(item) if title == 'Gradients' else code(item)}" for item in items)


def page_sections(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    items: list[str] = []
    for line in text.splitlines():
        if line in SECTIONS:
            items = found.setdefault(line, [])
        elif line.startswith("    "):
            items.append(line.strip())
    return found


def gradient(item: str) -> str:
    """Return a gradient as Markdown: a signature as code, a description as text."""
    if "->" in item:
        return code(item)
    name, colon, words = item.partition(": ")
    return f"`{name}`: {words}" if colon else item


def operator_aliases() -> dict[str, list[str]]:
    """Return the public names of each operator outside `ol.op`."""
    found: dict[str, list[str]] = {}
    for place, module in (("ol", oarlock), ("ol.layer", oarlock.layer)):
        for name in module.__all__:  # type: ignore[attr-defined]
            value = getattr(module, name)
            if isinstance(value, Operator):
                found.setdefault(value.type, []).append(f"{place}.{name}")
    return found
