"""Expression: calls of PyTorch that a plan writes in place of a call of a kernel, or of a variant of it."""

import ast
from collections.abc import Callable, Collection, Mapping

from oarlock.backend.torch.kernel_source import path_of
from oarlock.errors import DeclarationError

__all__ = ["Expression"]

_ROOTS = "torch", "aten"


class Expression:
    """Calls of PyTorch's functions, and of methods of tensors, that give the bits of a kernel or of a variant of it.

    `code`, a text or what was parsed of one, names inputs, attributes, `out`, and functions by their `paths`, which begin with `torch`, or
    with `aten` for the operators below that; beside names there are integers in it, and nothing else. It holds where those optional inputs
    are given that it names; where the inputs in `ranks` have that number of axes, or one of those; where the attributes in `when` have
    those values; where the input `dense` has no gaps between the elements of its last axis; and at a device of the kind `at`, or at any.
    Raises DeclarationError for code of another kind.
    """

    __slots__ = ("_template", "at", "dense", "names", "paths", "ranks", "when")

    def __init__(
        self,
        code: str | ast.expr,
        ranks: Mapping[str, int | Collection[int]] | None = None,
        when: Mapping[str, object] | None = None,
        dense: str | None = None,
        at: str | None = None,
    ):
        writer = _Writer(code)
        self._template = writer.write(ast.parse(code, mode="eval").body if isinstance(code, str) else code)
        self.paths = tuple(writer.paths)
        self.names = frozenset(writer.names)
        self.ranks = {slot: (rank,) if isinstance(rank, int) else tuple(rank) for slot, rank in (ranks or {}).items()}
        self.when = dict(when or {})
        self.dense = dense
        self.at = at

    @property
    def text(self) -> str:
        """The expression as it is read: what it names by those names."""
        return self.written({name: name for name in self.names}, str)

    def written(self, texts: Mapping[str, str], function: Callable[[str], str]) -> str:
        """The expression of what `texts` call its names, and `function` the functions at its paths."""
        return self._template.format(*map(function, self.paths), **texts)


class _Writer:
    """Writes an expression as the template of a format, with a field where it has a name, or the path of a function."""

    def __init__(self, code: str | ast.expr):
        self.code = code  # all of it, for an error
        self.names: set[str] = set()
        self.paths: list[str] = []

    def write(self, node: ast.expr) -> str:
        match node:
            case ast.Attribute() if (path := path_of(node)) and path[0] in _ROOTS:
                self.paths.append(".".join(path))
                return f"{{{len(self.paths) - 1}}}"
            case ast.Attribute(value=value, attr=name):
                return f"{self.write(value)}.{name}"
            case ast.Name(id=name):
                self.names.add(name)
                return f"{{{name}}}"
            case ast.Constant(value=number) if type(number) is int:
                return str(number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"-{self.write(operand)}"
            case ast.Call(func=function, args=arguments, keywords=keywords):
                called, written = self.write(function), [self.write(each) for each in arguments]
                written += [f"{each.arg}={self.write(each.value)}" for each in keywords]
                return f"{called}({', '.join(written)})"
        text = self.code if isinstance(self.code, str) else ast.unparse(self.code)
        raise DeclarationError(f"{text}: what a kernel lowers to is written with calls, names and integers")
