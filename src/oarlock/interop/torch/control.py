"""Translate `torch.cond`, `while_loop` and `scan` to branches and loops of a program."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torch.fx import GraphModule, Node

from oarlock.interop.torch.rules.registry import Unsupported
from oarlock.ir.var import Var
from oarlock.layer.control.rnn import rnn
from oarlock.layer.control.switch import cond
from oarlock.layer.control.while_loop import while_loop
from oarlock.op.elementwise import assign

if TYPE_CHECKING:
    from oarlock.interop.torch.writer import Writer

__all__ = ["write"]


def write(writer: "Writer", node: Node, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """Write the higher-order operator at `node`. Raises Unsupported for an unknown one."""
    name = str(node.target)
    found = _OPERATORS.get(name)
    if found is None:
        raise Unsupported("programs do not support this higher-order operator")
    return found(writer, *args, **kwargs)


def _outer(writer: "Writer", values: Sequence[object]) -> list[Var]:
    """Return the inputs of a block as variables of the enclosing block."""
    found = [writer.variable_of(value) if isinstance(value, int | str) else writer.variable(value) for value in values]
    return [_require_var(value) for value in found]


def _require_var(value: object) -> Var:
    if not isinstance(value, Var):
        raise Unsupported(f"a block takes variables, not {value!r:.60}")
    return value


def _inner(writer: "Writer", module: GraphModule, given: Sequence[object]) -> list[Var]:
    """Write a block and return its outputs. Each is a distinct variable that the block defines."""
    made = [_require_var(writer.variable(value)) for value in writer.write(module, given)]
    return [var if var.op is not None and sum(other is var for other in made) == 1 else assign(var) for var in made]


def _cond(writer: "Writer", predicate: object, true: GraphModule, false: GraphModule, operands: Sequence[object] = ()) -> list[object]:
    if isinstance(predicate, bool):
        return writer.write(true if predicate else false, operands)
    given = [value if isinstance(value, int | str) else writer.variable(value) for value in operands]
    made = cond(_require_var(writer.variable(predicate)), lambda: _inner(writer, true, given), lambda: _inner(writer, false, given))
    return list(made) if isinstance(made, tuple) else [made]


def _while(
    writer: "Writer", condition: GraphModule, body: GraphModule, carried: Sequence[object], additional: Sequence[object] = ()
) -> list[object]:
    start = [assign(var) for var in _outer(writer, carried)]
    more = [value if isinstance(value, int | str) else writer.variable(value) for value in additional]
    (first,) = _inner(writer, condition, [*start, *more])
    loop = while_loop(first)
    with loop.block():
        after = _inner(writer, body, [*start, *more])
        for var, value in zip(start, after, strict=True):
            loop.carry(var, value)
        (again,) = _inner(writer, condition, [*after, *more])
        loop.update_condition(again)
    made = loop()
    return list(made) if isinstance(made, tuple) else [made]


def _scan(
    writer: "Writer", body: GraphModule, init: Sequence[object], sequences: Sequence[object], additional: Sequence[object] = ()
) -> list[object]:
    start, steps = _outer(writer, init), _outer(writer, sequences)
    more = [value if isinstance(value, int | str) else writer.variable(value) for value in additional]
    loop = rnn()
    with loop.step():
        given = [loop.step_input(sequence) for sequence in steps]
        memories = [loop.memory(init=var) for var in start]
        before = [loop.previous_memory(memory) for memory in memories]
        whole = [loop.whole(value) if isinstance(value, Var) else value for value in more]
        made = _inner(writer, body, [*before, *given, *whole])
        for memory, value in zip(memories, made, strict=False):
            loop.update_memory(memory, value)
        if made[len(memories) :]:
            loop.output(*made[len(memories) :])
    stacked = loop()
    stacked = [] if stacked is None else list(stacked) if isinstance(stacked, tuple | list) else [stacked]
    return [*loop.finals, *stacked]


_OPERATORS = {"cond": _cond, "while_loop": _while, "scan": _scan}
