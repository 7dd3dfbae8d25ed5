"""Expression: calls of PyTorch that a plan writes in place of a call of a kernel, or of a variant of it."""

import ast
from collections.abc import Callable, Collection, Mapping

from oarlock.errors import DeclarationError

__all__ = ["Expression"]

_ROOTS = "torch", "aten"
_PARTS = (ast.Expression, ast.Call, ast.keyword, ast.Attribute, ast.Name, ast.Load, ast.UnaryOp, ast.USub)


class Expression:
    """Calls of PyTorch's functions, and of methods of tensors, that give the bits of a kernel or of a variant of it.

    `text` names inputs, attributes, `out`, and functions by their `paths`, which begin with `torch`, or with `aten` for the operators below
    that; beside names there are integers in it, and nothing else. It holds where those optional inputs are given that it names; where
    the inputs in `ranks` have that number of axes, or one of those; where the attributes in `when` have those values; where the input
    `dense` has no gaps between the elements of its last axis; and at a device of the kind `at`, or at any. Raises DeclarationError
    for a text of another kind.
    """

    __slots__ = ("_template", "at", "dense", "names", "paths", "ranks", "text", "when")

    def __init__(
        self,
        text: str,
        ranks: Mapping[str, int | Collection[int]] | None = None,
        when: Mapping[str, object] | None = None,
        dense: str | None = None,
        at: str | None = None,
    ):
        tree = ast.parse(text, mode="eval")
        for node in ast.walk(tree):
            if not isinstance(node, _PARTS) and not (isinstance(node, ast.Constant) and type(node.value) is int):
                raise DeclarationError(f"{text}: what a kernel lowers to is written with calls, names and integers")
        fields = _Fields()
        self._template = ast.unparse(fields.visit(tree))
        self.text = text
        self.paths = tuple(fields.paths)
        self.names = frozenset(fields.names)
        self.ranks = {slot: (rank,) if isinstance(rank, int) else tuple(rank) for slot, rank in (ranks or {}).items()}
        self.when = dict(when or {})
        self.dense = dense
        self.at = at

    def written(self, texts: Mapping[str, str], function: Callable[[str], str]) -> str:
        """The expression of what `texts` call its names, and `function` the functions at its paths."""
        return self._template.format(*map(function, self.paths), **texts)


class _Fields(ast.NodeTransformer):
    """Puts the field of a format where an expression has a name, or the path of a function."""

    def __init__(self):
        self.names: set[str] = set()
        self.paths: list[str] = []

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        path = ast.unparse(node)
        if path.partition(".")[0] not in _ROOTS:
            return self.generic_visit(node)
        self.paths.append(path)
        return ast.Name(f"{{{len(self.paths) - 1}}}")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        self.names.add(node.id)
        return ast.Name(f"{{{node.id}}}")
