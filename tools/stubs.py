"""Write the `.pyi` files under src/oarlock, which give type checkers and editors the types that the source lacks.

    PYTHONPATH=src python tools/stubs.py

The functions of `ol.op` come from the declarations of operators, the names of `ol`, `ol.layer` and `ol.data` from their lazy
imports, and the methods of variables and blocks from the files that attach them. tests/architecture/test_stubs.py fails if the files in
git differ.
"""

import inspect
import keyword
import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import oarlock
import oarlock.op.update  # its operators are called by name too
from oarlock.ir.block import Block
from oarlock.ir.var import Var
from oarlock.registry.call_signature import call_signatures, format_call, format_types
from oarlock.registry.catalogue import standard
from oarlock.registry.declaration import Operator

PACKAGE = Path(oarlock.__file__).parent
MADE = "# Written by tools/stubs.py, which reads what the package declares."


def make_stubs() -> dict[str, str]:
    """Return the text of each stub, by its path inside the package."""
    made = {
        "__init__.pyi": names_of(oarlock),
        "data/__init__.pyi": names_of(oarlock.data),
        "ir/attached.pyi": attached(),
        "layer/__init__.pyi": names_of(oarlock.layer),
        "op/__init__.pyi": operators(),
    }
    return {path: "\n".join([MADE, "", *lines]).rstrip() + "\n" for path, lines in made.items()}


# Operators.


def callable_operators() -> list[Operator]:
    """Return the operators that a user calls by name: those without blocks, statement names and names of functions."""
    ours = [operator for operator in standard if operator.kernel.__module__.startswith("oarlock.op.")]
    called = [operator for operator in ours if not operator.block_attributes and not keyword.iskeyword(operator.type)]
    return [operator for operator in called if operator.type not in oarlock.op.__all__]


def operators() -> Iterator[str]:
    yield from (docstring(oarlock.op), "", "import builtins", "from collections.abc import Sequence", "from typing import overload", "")
    functions = {name: function for name in oarlock.op.__all__ if is_shown_otherwise(function := getattr(oarlock.op, name))}
    names = [f"from {home_of(oarlock.op, name)[0]} import {name} as {name}" for name in oarlock.op.__all__ if name not in functions]
    types = {line for function in functions.values() for line in imports_of(inspect.signature(function))}
    types |= {"from oarlock.ir.dtype import DType", "from oarlock.ir.var import Var"}
    yield from sorted({*names, *types} - {"from collections.abc import Sequence"})
    yield ""
    for name, function in functions.items():
        yield f"def {name}{format_types(inspect.signature(function))}:"
        yield from (quoted(inspect.getdoc(function) or name), "")
    for operator in callable_operators():
        forms = call_signatures(operator)
        for form in forms:
            if len(forms) > 1:
                yield "@overload"
            yield f"def {operator.type}{with_builtins(format_types(form))}:"
            yield from (quoted(f"{format_call(operator)}\n\n{operator.doc}"), "")


def with_builtins(types: str) -> str:
    """Return types in which Python's number types are distinguished from operators of the same name."""
    return re.sub(r"\bcomplex\b", "builtins.complex", types)


def is_shown_otherwise(function: object) -> bool:
    """Return whether a function accepts positional attributes, which its source does not show, or has types that are not text."""
    if not isinstance(function, FunctionType):
        return False
    shown, written = inspect.signature(function), inspect.signature(inspect.unwrap(function))
    kinds = [shown.return_annotation, *(each.annotation for each in shown.parameters.values())]
    return shown.parameters != written.parameters and not any(isinstance(kind, str) for kind in kinds)


# Names that load when they are first used.


def names_of(package: ModuleType) -> Iterator[str]:
    """Return import lines for the public names of a package, each from its module, and assignments for names that differ there."""
    lines, renamed = [], ["__all__: list[str]"]
    for name in package.__all__:  # type: ignore[attr-defined]
        module, there = home_of(package, name)
        if there == name:
            lines.append(f"from {module} import {name} as {name}")
        else:
            home, _, last = module.rpartition(".")
            lines.append(f"from {home} import {last} as _{last}")
            renamed.append(f"{name} = _{last}.{there}")
    if package is oarlock:
        renamed.append("__version__: str")
    yield from (docstring(package), "", *sorted(lines), "", *sorted(renamed))


def home_of(package: ModuleType, name: str) -> tuple[str, str]:
    """Return the module from which a package imports `name`, and the name in that module."""
    value, homes = getattr(package, name), getattr(package, "_HOMES", {})
    if isinstance(value, ModuleType):
        home, _, there = value.__name__.rpartition(".")
        return home, there
    if isinstance(value, Operator):
        return "oarlock.op", value.type
    if name in homes:
        home = homes[name]
        return home if isinstance(home, tuple) else (home if "." in home else f"{package.__name__}.{home}", name)
    assert isinstance(value, FunctionType | type), f"nothing tells where {name} is from"
    return value.__module__, value.__name__


# Members that other files attach to a class.


def attached() -> Iterator[str]:
    lines, imports = [], {"from oarlock.ir.block import Block", "from oarlock.ir.var import Var"}
    for cls in (Block, Var):
        (base,) = cls.__bases__
        lines += [f"class {base.__name__}:", quoted(inspect.getdoc(base) or "")]
        for name, member in sorted(vars(cls).items()):
            if member is None:
                lines.append(f"    {name}: None")
            elif isinstance(member, FunctionType) and member.__module__ != cls.__module__:
                lines += ["", f"    def {name}{format_types(of_self(member))}:", quoted(inspect.getdoc(member) or name, 8)]
                imports.update(imports_of(inspect.signature(member)))
        lines.append("")
    yield from ('"""The members of `Var` and `Block` that files of higher floors attach to them."""', "", *sorted(imports), "", *lines)


def of_self(function: FunctionType) -> inspect.Signature:
    """Return the signature of a function as a method, whose first parameter is the instance."""
    signature = inspect.signature(function)
    first, *others = signature.parameters.values()
    return signature.replace(parameters=[first.replace(name="self", annotation=first.empty), *others])


def imports_of(signature: inspect.Signature) -> Iterator[str]:
    """Return the lines that import the types of a signature."""
    kinds = [signature.return_annotation, *(each.annotation for each in signature.parameters.values())]
    while kinds:
        kind = kinds.pop()
        kinds += typing.get_args(kind)
        named = typing.get_origin(kind) or kind
        if named is typing.Literal:
            yield "from typing import Literal"
        elif isinstance(named, type) and named.__module__ not in ("builtins", "types", "typing"):
            yield f"from {named.__module__} import {named.__name__}"


# Text.


def docstring(module: ModuleType) -> str:
    return quoted((inspect.getdoc(module) or "").split("\n\n")[0], 0)


def quoted(text: str, indent: int = 4) -> str:
    """Return a text as an indented docstring."""
    first, *others = text.replace("\\", "\\\\").replace('"""', r"\"\"\"").splitlines()
    lines = [f'"""{first}', *others, '"""'] if others else [f'"""{first}"""']
    return "\n".join(" " * indent + line if line else "" for line in lines)


if __name__ == "__main__":
    for path, text in make_stubs().items():
        (PACKAGE / path).write_text(text, encoding="utf-8", newline="\n")
        print(f"{path}: {len(text.splitlines())} lines", file=sys.stderr)
