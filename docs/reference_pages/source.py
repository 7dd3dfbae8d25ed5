"""Declarations as the source has them, which do not depend on the version of Python."""

import ast
import inspect
import re
import textwrap
from functools import cache


def header(function: object, name: str) -> str:
    """Return the source lines that declare a function, up to the colon, with its public name."""
    source, node = definition(function)
    assert isinstance(node, ast.FunctionDef)
    first = node.body[0]
    lines = source.splitlines()[node.lineno - 1 : first.lineno]
    lines[-1] = lines[-1].encode()[: first.col_offset].decode()
    text = re.sub(r"\s+#.*", "", "\n".join(lines)).rstrip().removesuffix(":")
    if "__signature__" in vars(function):  # attributes may be passed by position
        text = text.replace("*, ", "", 1)
    return re.sub(r"\bdef \w+", f"def {name}", text, count=1)


def fields(cls: type) -> list[str]:
    """Return the source lines of the constructor fields of a class; none if the class defines a constructor."""
    if "__init__" in vars(cls) and not hasattr(cls, "__dataclass_fields__"):
        return []
    source, node = definition(cls)
    assert isinstance(node, ast.ClassDef)
    found = [ast.get_source_segment(source, part) or "" for part in node.body if isinstance(part, ast.AnnAssign)]
    return [field for field in found if not field.startswith("_")]


@cache
def definition(value: object) -> tuple[str, ast.stmt]:
    """Return the source of a class or a function, and its syntax tree."""
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(value)))  # type: ignore[arg-type]
    return source, ast.parse(source).body[0]
