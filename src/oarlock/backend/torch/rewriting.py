"""A kernel rewritten: the same but for what it returns, and for copies that are not made. See `derivation`, which says what is written."""

import ast
import copy
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, TypeVar

from oarlock.backend.torch.kernel_source import definition, definitions, is_check, names_in
from oarlock.registry.declaration import Operator
from oarlock.tensor.memory_format import copies, lay_as, lies_as_made

__all__ = ["ALONE", "GUARD", "LAY", "calls_copies", "names_copied", "rewritten"]

Statement = TypeVar("Statement", bound=ast.stmt)

GUARD, LAY, ALONE = "lies_as_made", "lay_as", "alone"
"""Names that may be written beside those that a kernel has: two functions, and a parameter that says that nothing else lies in a memory."""

_SUPPORT = {GUARD: lies_as_made, LAY: lay_as}


def rewritten(
    operator: Operator, name: str, write: Callable[[ast.expr], ast.expr | None], *, parameter: str | None = None, in_place: bool = False
) -> Callable[..., object] | None:
    """The kernel under another `name`, with what `write` makes of each expression that it returns, and one more parameter.

    None where `write` makes nothing of one, and where the kernel cannot be read or has such names already. What is called `in_place`
    copies nothing, and checks nothing that a plan has checked by then.
    """
    kernel, node = operator.kernel, definition(operator.kernel)
    if node is None or not _names_of(kernel.__code__).isdisjoint({parameter, ALONE, *_SUPPORT}):  # type: ignore[attr-defined]
        return None
    rewrite = _Rewrite(write)
    body = node.body
    if in_place:
        checked = [statement for statement in body if not is_check(kernel, statement, operator.preconditions)]
        body = [statement for statement in checked if not names_copied(kernel, statement)]
        if _says_alone(kernel.__code__):  # type: ignore[attr-defined]
            body = [_Alone().visit(copy.deepcopy(statement)) for statement in body]
            rewrite.names.add(ALONE)
    body = rewrite.body(body)
    if rewrite.failed:
        return None
    more: dict[str, ast.expr | None] = {} if parameter is None else {parameter: None}
    more |= {each: ast.Name(each, ast.Load()) for each in _SUPPORT if each in rewrite.names}
    more |= {ALONE: ast.Constant(False)} if ALONE in rewrite.names else {}
    args = node.args
    arguments = ast.arguments(
        args.posonlyargs,
        [_plain(each) for each in args.args],
        args.vararg,
        [*map(_plain, args.kwonlyargs), *(ast.arg(each) for each in more)],
        [*args.kw_defaults, *more.values()],
        args.kwarg,
        args.defaults,
    )
    made = _located(ast.FunctionDef(name, arguments, body, []), node)
    scope: dict[str, Any] = dict(_SUPPORT)  # the globals are those of the kernel, whatever becomes of them
    exec(compile(ast.Module([made], []), f"<{name}>", "exec"), kernel.__globals__, scope)  # noqa: S102  # the source of a kernel
    definitions[scope[name]] = made
    return scope[name]


class _Rewrite:
    """Puts what `write` makes of it in the place of each expression that a kernel returns. What was read stays as it is."""

    def __init__(self, write: Callable[[ast.expr], ast.expr | None]):
        self.write = write
        self.failed = False
        self.names: set[str] = set()  # of `_SUPPORT`, and `ALONE`: those in what has been written

    def body(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self._statement(statement) for statement in body]

    def _statement(self, statement: ast.stmt) -> ast.stmt:
        """A statement rewritten. A function inside the kernel stays as it is: what that returns is not the result."""
        if isinstance(statement, ast.Return):
            return _located(ast.Return(self._choose(statement.value)), statement)  # type: ignore[arg-type]
        if not hasattr(statement, "body") or isinstance(statement, ast.FunctionDef):
            return statement
        made = copy.copy(statement)
        for field in ("body", "orelse", "finalbody"):
            if hasattr(statement, field):
                setattr(made, field, self.body(getattr(statement, field)))
        return made

    def _choose(self, value: ast.expr) -> ast.expr:
        if isinstance(value, ast.IfExp):
            return ast.IfExp(value.test, self._choose(value.body), self._choose(value.orelse))
        written = self.write(value)
        self.failed |= written is None
        if written is None or written is value:
            return value
        self.names |= _names_without_place(written) & {ALONE, *_SUPPORT}
        return written


class _Alone(ast.NodeTransformer):
    """Hands on `alone`, where a kernel says that its copies are alone in their memory. What is updated where it lies may not be."""

    def visit_keyword(self, keyword: ast.keyword) -> ast.keyword:
        self.generic_visit(keyword)
        if keyword.arg == ALONE:
            keyword.value = ast.copy_location(ast.Name(ALONE, ast.Load()), keyword.value)
        return keyword


def _plain(argument: ast.arg) -> ast.arg:
    """A parameter without its annotation."""
    return argument if argument.annotation is None else ast.arg(argument.arg)


def _located(node: Statement, like: ast.stmt) -> Statement:
    """`node`, of which each part without a place in a file, where it is new, is given that of `like`."""
    new: list[ast.AST] = [node]
    while new:
        made = new.pop()
        made.lineno, made.col_offset = like.lineno, like.col_offset  # type: ignore[attr-defined]
        made.end_lineno, made.end_col_offset = like.end_lineno, like.end_col_offset  # type: ignore[attr-defined]
        new += _new_parts(made)
    return node


def _new_parts(node: ast.AST) -> list[ast.AST]:
    """The nodes just below one that have no place in a file."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, ast.arguments | ast.operator | ast.boolop | ast.expr_context):
                found += _new_parts(each)
            elif isinstance(each, ast.AST) and not hasattr(each, "lineno"):
                found.append(each)
    return found


def _names_without_place(node: ast.AST) -> set[str]:
    """The names in what has been written: what was read has a place in a file."""
    named = {node.id} if isinstance(node, ast.Name) else set()
    return named.union(*map(_names_without_place, _new_parts(node)))


def _says_alone(code: CodeType) -> bool:
    """Whether a function calls something with the keyword `alone`."""
    return any(isinstance(each, tuple) and ALONE in each for each in code.co_consts)


def _names_of(code: CodeType) -> set[str]:
    """The names in a function, and in the functions inside."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return {*code.co_names, *code.co_varnames, *code.co_freevars}.union(*map(_names_of, inner))


def calls_copies(kernel: Callable[..., object]) -> bool:
    return isinstance(kernel, FunctionType) and "copies" in kernel.__code__.co_names and kernel.__globals__.get("copies") is copies


def names_copied(kernel: Callable[..., object], statement: ast.stmt) -> list[str]:
    """The names that a statement gives to copies of what they have named, all by one call; none where it does something else."""
    if not isinstance(statement, ast.Assign) or not calls_copies(kernel):
        return []
    names = names_in(statement.targets[0])
    given = statement.value.args if isinstance(statement.value, ast.Call) else []
    texts = {f"copies({names[0]})", f"copies([{', '.join(names)}])", f"map(copies, ({', '.join(names)}))"} if names and given else set()
    return names if ast.unparse(statement.value) in texts else []
