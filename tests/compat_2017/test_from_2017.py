"""docs/guides/from_2017.md names what there is: each call of ours that it writes is one that can be made."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import oarlock as ol

GUIDE = (Path(__file__).parent.parent.parent / "docs" / "guides" / "from_2017.md").read_text(encoding="utf-8")


def objects() -> dict[str, object]:
    """The objects that the guide speaks of, by the names that it has for them."""
    with ol.Program() as program:
        var = ol.layer.data("x", shape=[2])
        loop, rnn, ie = ol.while_loop(ol.op.reduce_sum(var) > 0.0), ol.rnn(), ol.ifelse()
    scope, net = ol.Scope(), ol.Net(program)
    found = {"ol": ol, "oarlock": ol, "layer": ol.layer, "Executor": ol.Executor(), "scope": scope, "around": scope}
    found |= {"variable": scope.var("v"), "program": program, "block": program.main, "var": var, "rnn": rnn, "loop": loop, "ie": ie}
    return found | {"net": net, "builder": ol.NetBuilder(net), "context": ol.Context(scope)}


OBJECTS = objects()


def ours() -> list[str]:
    """The pieces of code in the column that says what became of an idea, or how we spell it."""
    rows = [re.split(r"(?<!\\)\|", line)[2] for line in GUIDE.splitlines() if line.startswith("| ") and not line.startswith("| the idea")]
    return [code for row in rows for code in re.findall("`([^`]+)`", row) if not code.endswith(".proto")]


def mentions() -> list[tuple[str, ast.Attribute | ast.Call]]:
    """The dotted names and the calls in each piece that is an expression of Python's."""
    found = []
    for code in ours():
        try:
            tree = ast.parse(code, mode="eval")
        except SyntaxError:
            continue  # a piece of a call, or another language
        found += [(code, node) for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Call)]
    return found


def find(node: ast.expr) -> object:
    """The object that a dotted name means, None where it begins with none that is known. Raises AttributeError."""
    if isinstance(node, ast.Name):
        return OBJECTS.get(node.id)
    around = find(node.value) if isinstance(node, ast.Attribute) else None
    return None if around is None or not isinstance(node, ast.Attribute) else getattr(around, node.attr)


def test_the_guide_is_read():
    assert len({code for code, node in mentions() if isinstance(node, ast.Call) and find(node.func) is not None}) > 50
    with pytest.raises(AttributeError):
        find(ast.parse("ol.layer.fcc", mode="eval").body)


@pytest.mark.parametrize(("code", "node"), [pytest.param(code, node, id=ast.unparse(node)) for code, node in mentions()])
def test_a_name_in_the_guide_is_there_and_takes_the_arguments_that_are_written(code, node):
    function = find(node.func if isinstance(node, ast.Call) else node)
    if isinstance(node, ast.Call) and function is not None and not any(ast.unparse(item) == "..." for item in node.args):
        keywords = {str(keyword.arg): None for keyword in node.keywords}
        inspect.signature(function).bind_partial(*node.args, **keywords)  # type: ignore[arg-type]
