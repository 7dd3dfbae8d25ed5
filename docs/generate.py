"""The generated reference: the pages of operators, layers, optimizers, errors and names in docs/reference, from what the package declares.

    python docs/generate.py

It stands beside what it writes, for it is no part of the package and no test; tests/test_pages.py says when
what is checked in is not what it would write. Signatures are the lines of the source, so that they are the same under every
version of Python.
"""

import ast
import enum
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType, ModuleType

import numpy

import oarlock
import oarlock.op.update  # its operators are standard ones too
from oarlock import errors
from oarlock.ir.printer import format_declaration
from oarlock.registry.catalogue import standard
from oarlock.registry.declaration import Operator
from oarlock.registry.page import format_page

sys.path.insert(0, str(Path(__file__).resolve().parent))
from composition_examples import EXAMPLES
from composition_examples import GIVEN as VALUES

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(oarlock.__file__).parent
MADE = "<!-- Written by docs/generate.py: change what it reads, then `make docs`. -->"
SECTIONS = ("Inputs", "Attributes", "Outputs", "Promises", "Gradients", "Examples", "Refused")


def make_reference() -> dict[str, str]:
    """The text of each generated file, by its path in the repository."""
    made = {
        "operators": operators(),
        "compositions": compositions(),
        "layers": layers(),
        "optimizers": optimizers(),
        "errors": error_classes(),
        "api": public_names(),
    }
    texts = {name: "\n".join([MADE, "", *lines]).rstrip() + "\n" for name, lines in made.items()}
    return {f"docs/reference/{name}.md": re.sub(r"\n{3,}", "\n\n", text) for name, text in texts.items()}


# Operators.


def operators() -> Iterator[str]:
    families: dict[str, list[Operator]] = {}
    for operator in standard:
        if operator.kernel.__module__.startswith("oarlock.op."):  # a process may have registered operators of its own
            families.setdefault(operator.kernel.__module__, []).append(operator)
    families = {module: families[module] for module in sorted(families, key=family)}
    aliases = operator_aliases()
    yield from (
        "# Operators",
        "",
        "Every operator that a program may use without declaring one: `ol.op.NAME`. `oarlock ops NAME` prints the same, with examples.",
        "[Adding an operator](../guides/add_an_operator.md) says how a signature is read, [the language](language.md) what a program is.",
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
    """The page of an operator that `oarlock ops` prints, as Markdown; without what its signature says already."""
    signature, _, rest = format_page(operator).partition("\n")
    yield from ("```text", signature, "```", "", prose(operator.doc), "")
    page = page_sections(rest.replace(operator.doc, "", 1))
    kept = [slot.name for slot in operator.signature.outputs if slot.name in operator.intermediate]
    if aliases:
        yield f"- Also: {', '.join(f'`{alias}`' for alias in aliases)}"
    if kept:
        yield f"- Kept for the gradient, and not returned: {', '.join(f'`{name}`' for name in kept)}"
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
    """A gradient operator's signature is code; what is said in words stays words."""
    if "->" in item:
        return code(item)
    name, colon, words = item.partition(": ")
    return f"`{name}`: {words}" if colon else item


def operator_aliases() -> dict[str, list[str]]:
    """The public names beside `ol.op.NAME` under which an operator is found."""
    found: dict[str, list[str]] = {}
    for place, module in (("ol", oarlock), ("ol.layer", oarlock.layer)):
        for name in module.__all__:  # type: ignore[attr-defined]
            value = getattr(module, name)
            if isinstance(value, Operator):
                found.setdefault(value.type, []).append(f"{place}.{name}")
    return found


# Compositions.


def compositions() -> Iterator[str]:
    families: dict[str, dict[str, FunctionType]] = {}
    for name, function in public_compositions().items():
        families.setdefault(function.__module__, {})[name] = function
    families = {module: families[module] for module in sorted(families)}
    yield from (
        "# Compositions",
        "",
        "Functions of variables that `ol.op` offers beside [operators](operators.md), of which they are composed: they write several",
        "ops, and have the gradients of these. Where one fails, nothing of what it wrote is left. Below an example stands what it",
        "gives. All take these variables for granted, float32 and int64:",
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
            yield from (*python(EXAMPLES[name]), *verbatim("\n".join(values[EXAMPLES[name]])))


def composition_title(name: str) -> str:
    return f"ol.op.{name}"


def public_compositions() -> dict[str, FunctionType]:
    """The functions of `ol.op` that are no operators."""
    return {name: getattr(oarlock.op, name) for name in oarlock.op.compositions.__all__}


def values_of(examples: list[str]) -> dict[str, list[str]]:
    """The values that each example gives, a line each, by one run of them all."""
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
    """Numbers as Python writes them, with four digits."""
    if isinstance(value, list):
        return f"[{', '.join(map(as_text, value))}]"
    if isinstance(value, numpy.ndarray | numpy.generic):
        return as_text(value.tolist())
    return f"{value + 0.0:.4g}" if isinstance(value, float) else str(value)


# Layers.


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
"""The variables that the examples of layers take for granted."""
LISTED = 12  # parameters below an example


def layers() -> Iterator[str]:
    yield from (
        "# Layers",
        "",
        "Operators together with the parameters they need: `ol.layer.NAME`. [Adding an operator](../guides/add_an_operator.md) says",
        "how shapes and dtypes are read, [errors](errors.md) what an error means. Loops, branches, inputs, and what needs no parameters",
        "are among the [public names](api.md#oarlocklayer). Below an example stands what it gives, and the parameters that it makes.",
        "All take these for granted:",
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
    """The heading of a layer, which is not that of its family even where they are called alike."""
    return f"ol.layer.{name}"


def public_layers() -> dict[str, FunctionType]:
    """The functions of `ol.layer` that make layers, and others that have an example; not loops, branches, inputs and literals."""
    apart = ("oarlock.layer.control.", "oarlock.layer.inputs", "oarlock.layer.literal", "oarlock.layer.decoding")
    found = {name: getattr(oarlock.layer, name) for name in oarlock.layer.__all__}
    own = {name: value for name, value in found.items() if inspect.isfunction(value) and value.__name__ == name}
    return {
        name: value
        for name, value in own.items()
        if (value.__module__.startswith("oarlock.layer.") and not value.__module__.startswith(apart)) or has_example(value)
    }


def has_example(function: FunctionType) -> bool:
    """Whether the docstring of a function ends with an example."""
    return is_python(textwrap.dedent((inspect.getdoc(function) or "").rpartition("\n\n")[2]))


def made_by(example: str) -> Iterator[str]:
    """The variables to which an example gives names, then the parameters that it makes, as a program is printed."""
    with oarlock.Program() as program:
        names: dict[str, object] = {"ol": oarlock}
        exec(GIVEN, names)  # noqa: S102
        given = dict(names)
        exec(example, names)  # noqa: S102
    for name, value in names.items():
        if isinstance(value, oarlock.Var) and given.get(name) is not value and value not in program.main.inputs and not value.parameter:
            yield f"{name}: {value.type_text}"
    made = [format_declaration(var) for var in program.persistables() if not var.name.startswith("@")]
    yield from made[:LISTED]
    if len(made) > LISTED:
        yield f"and {len(made) - LISTED} more"


# Optimizers and schedules.

SCHEDULES = {
    "Constant": "Constant(0.5)",
    "CosineDecay": "CosineDecay(0.5, 6)",
    "CosineRestarts": "CosineRestarts(0.5, 2, 2)",
    "Cyclic": "Cyclic(0.1, 0.5, 3, 2)",
    "ExponentialDecay": "ExponentialDecay(0.5, 0.9)",
    "InverseTimeDecay": "InverseTimeDecay(0.5, 1.0, 2)",
    "LinearDecay": "LinearDecay(0.5, 5)",
    "MultiStepDecay": "MultiStepDecay(0.5, [2, 5])",
    "NaturalExponentialDecay": "NaturalExponentialDecay(0.5, 1.0, 4)",
    "Noam": "Noam(64, 4)",
    "OneCycle": "OneCycle(0.5, 8)",
    "Piecewise": "Piecewise([2, 5], [0.5, 0.2, 0.1])",
    "PolynomialDecay": "PolynomialDecay(0.5, 6, power=2.0)",
    "ReduceOnPlateau": "ReduceOnPlateau(0.5, factor=0.5, patience=1)",
    "Sequential": "Sequential([Constant(0.1), StepDecay(0.5, 2)], [3])",
    "StepDecay": "StepDecay(0.5, 3)",
    "WarmUp": "WarmUp(ExponentialDecay(0.5, 0.9), 4)",
}
"""Each schedule as an example of it has it. Of a plateau the cost does not fall."""


def optimizers() -> Iterator[str]:
    kinds = [value for value in map(vars(oarlock.optimizer).get, oarlock.optimizer.__all__) if inspect.isclass(value)]
    of_others = (oarlock.optimizer.Groups, oarlock.optimizer.LossScaling)  # which are no rule themselves
    rules = [kind for kind in kinds if issubclass(kind, oarlock.optimizer.Optimizer) and kind not in of_others]
    yield from (
        "# Optimizers and schedules",
        "",
        "Below the equations of each optimizer stands what it adds to a program for one parameter `w`, float32[3, 2]: the state that it",
        "keeps, and the ops of a step. `options` are keywords of every optimizer: [ol.optimizer.Optimizer](api.md#oloptimizeroptimizer).",
        "[Optimizers](../guides/optimizers.md) shows how they are used, and how one of your own is written.",
        "",
        f"Optimizers: {', '.join(f'[{kind.__name__}](#{kind.__name__.lower()})' for kind in rules if not inspect.isabstract(kind))}.",
        "",
        f"Schedules: {', '.join(f'[{name}](#{name.lower()})' for name in SCHEDULES)}.",
    )
    for kind in rules:
        if not inspect.isabstract(kind):
            yield from ("", f"## {kind.__name__}", "", *class_page(kind), "```text", *update_lines(kind()), "```")
    for name, example in SCHEDULES.items():
        yield from ("", f"## {name}", "", *class_page(getattr(oarlock.optimizer.schedule, name)))
        yield f"The rates of `{example}` in its first steps: {', '.join(f'{rate:.4g}' for rate in first_rates(example))}."


def class_page(kind: type) -> Iterator[str]:
    """The file of a class, its constructor, and its docstring."""
    source = kind.__module__.replace(".", "/") + ".py"
    yield from (f"[{source.removeprefix('oarlock/')}](../../src/{source})", "")
    lines = [*fields(kind)] or [header(kind.__init__, "__init__")]
    yield from python("\n".join([f"class {kind.__name__}:", *(textwrap.indent(line, "    ") for line in lines)]))
    yield from (prose(inspect.getdoc(kind)), "")


def update_lines(optimizer: oarlock.optimizer.Optimizer) -> list[str]:
    """The lines of a program that are there for the update of one parameter."""
    with oarlock.Program() as program:
        w = oarlock.layer.create_parameter([3, 2], name="w", initializer=oarlock.initializer.constant(0.0))
        optimizer.minimize(oarlock.op.reduce_sum(oarlock.op.multiply(w, w)))
    text = program.to_text(source=False)
    states = re.findall(r"^  state .*$", text, re.MULTILINE)
    return [line.removeprefix("  ") for line in (*states, *text[text.index("\n  update:") :].rstrip("}\n").splitlines())]


def first_rates(example: str) -> list[float]:
    with oarlock.Program() as program:
        b = oarlock.layer.create_parameter([], name="b", initializer=oarlock.initializer.constant(1.0))
        schedule = eval(example, dict(vars(oarlock.optimizer.schedule)))  # noqa: S307  one of SCHEDULES
        oarlock.optimizer.SGD(schedule).minimize(oarlock.op.multiply(b, oarlock.op.full(shape=(), value=0.0)))
    scope, executor = oarlock.init(program, oarlock.Scope()), oarlock.Executor()
    return [float(executor.run(program, {}, ["sgd_0.learning_rate"], scope=scope, training=True)[0]) for _ in range(8)]


# Errors.


def error_classes() -> Iterator[str]:
    yield from (
        "# Errors",
        "",
        "`oarlock explain` prints this tree, `oarlock explain NAME` the text below a name. All are names of `oarlock`.",
        "",
        *verbatim(inspect.getdoc(errors)),
    )
    for name in errors.__all__:
        yield from ("", f"## {name}", "", *verbatim(inspect.getdoc(getattr(errors, name))))


# Public names.


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
        "layers in [layers](layers.md), exceptions in [errors](errors.md). [Documents](../README.md) lists the guides, which say how",
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


def header(function: object, name: str) -> str:
    """The lines that declare a function, as they are written, up to the colon, under its public name."""
    source, node = definition(function)
    assert isinstance(node, ast.FunctionDef)
    first = node.body[0]
    lines = source.splitlines()[node.lineno - 1 : first.lineno]
    lines[-1] = lines[-1].encode()[: first.col_offset].decode()
    text = re.sub(r"\s+#.*", "", "\n".join(lines)).rstrip().removesuffix(":")
    if "__signature__" in vars(function):  # attributes may stand in their places
        text = text.replace("*, ", "", 1)
    return re.sub(r"\bdef \w+", f"def {name}", text, count=1)


def fields(cls: type) -> list[str]:
    """The fields that a class declares for its constructor, as they are written; none where it has a constructor of its own."""
    if "__init__" in vars(cls) and not hasattr(cls, "__dataclass_fields__"):
        return []
    source, node = definition(cls)
    assert isinstance(node, ast.ClassDef)
    found = [ast.get_source_segment(source, part) or "" for part in node.body if isinstance(part, ast.AnnAssign)]
    return [field for field in found if not field.startswith("_")]


@cache
def definition(value: object) -> tuple[str, ast.stmt]:
    """The source of a class or a function, and what it parses to."""
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(value)))  # type: ignore[arg-type]
    return source, ast.parse(source).body[0]


# Markdown.


def prose(text: str | None) -> str:
    """A docstring as Markdown: what is indented, or Python from the second line on, is code; nothing outside code is markup."""
    first, _, rest = (text or "").partition("\n\n")
    if rest and is_python(rest):
        return f"{escaped(first)}\n\n```python\n{rest}\n```"
    parts = []
    for part in re.split(r"\n\n+", text or ""):
        lines = part.splitlines()
        if lines and all(line.startswith("    ") for line in lines):
            block = textwrap.dedent(part)
            parts.append(f"```{'python' if is_python(block) else 'text'}\n{block}\n```")
        else:
            parts.append(escaped(part))
    return "\n\n".join(parts)


def is_python(text: str) -> bool:
    """Whether `text` is Python that does something; a reference such as "Knuth, 1973." is Python too, as far as grammar goes."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Call | ast.Assign) for node in ast.walk(tree))


def escaped(text: str) -> str:
    """`text` with nothing but code that Markdown would take for markup: emphasis, tags, links."""
    pieces = re.split(r"(``.*?``|`[^`]*`)", text, flags=re.DOTALL)
    markup = r"\*|(?<!\w)_|_(?!\w)|<(?=[a-zA-Z/!])|\](?=[(\[])"
    return "".join(piece if at % 2 else re.sub(markup, r"\\\g<0>", piece) for at, piece in enumerate(pieces))


def code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def verbatim(text: str | None) -> list[str]:
    return ["```text", text or "", "```"]


def python(text: str) -> list[str]:
    return ["```python", text, "```", ""]


def slug(heading: str) -> str:
    """The anchor of a heading, as a forge and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    for path, text in make_reference().items():
        (ROOT / path).write_text(text, encoding="utf-8", newline="\n")
