"""The error for a cost that depends on a parameter and has no gradient with respect to it: it names the op that stands between them."""

from collections.abc import Iterable, Iterator, Sequence

from oarlock.errors import GradientError
from oarlock.ir.operation import Op
from oarlock.ir.traversal import needed_ops
from oarlock.ir.var import Var
from oarlock.op.control.layout import Layout
from oarlock.registry.catalogue import standard

__all__ = ["depended_on", "explain_missing_path"]

Step = tuple[Var, Var, Op, bool]
"""One variable, another that `op` computes from it or hands in or out as, and whether a gradient goes that way back."""


def explain_missing_path(cost: Var, parameter: Var) -> GradientError:
    """The error for a parameter to which no gradient of `cost` leads: it names the last op that lets none through."""
    steps = list(_steps(needed_ops(cost.block.ops, [cost])))
    active = _closure({parameter}, [(source, target) for source, target, _, passes in steps if passes])
    reaching = _closure({cost}, [(target, source) for source, target, _, _ in steps])
    for source, target, op, passes in reversed(steps):
        if source in active and target in reaching and not passes:
            inside = "" if op.block.parent is None else f", in {op.block.path}"
            stopped = target.stop_gradient and target.dtype.is_inexact
            what = f'"{target.name}" is stop_gradient' if stopped else f'"{op.type}" has no gradient'
            remedy = f'let gradients through "{target.name}"' if stopped else f'declare the gradient of "{op.type}"'
            return GradientError(
                f'{what}, yet "{cost.name}" reaches "{parameter.name}" only through it{inside}',
                location=op.location,
                given=[parameter.describe()],
                hint=f'mark "{parameter.name}" not trainable, or {remedy}',
                op=op.type,
            )
    return GradientError(f'"{cost.name}" does not depend on "{parameter.name}"', given=[parameter.describe()])


def depended_on(cost: Var) -> set[Var]:
    """The variables on whose values that of `cost` depends, whether a gradient goes that way or not; inside of loops and branches too."""
    return _closure({cost}, [(target, source) for source, target in _influences(needed_ops(cost.block.ops, [cost]))])


def _influences(ops: Iterable[Op]) -> Iterator[tuple[Var, Var]]:
    """Each variable that an op reads, in `ops` and the blocks inside them, with each whose value may be another for it."""
    for op in ops:
        if not op.blocks:
            yield from ((source, target) for source in op.reads for target in op.writes)
            continue
        layout = Layout.of(op)
        out = [*layout.stacked, *layout.summed, *((each.following, each.final) for each in layout.carried)]
        yield from ((outer, inner) for inner, outer in layout.steps)
        yield from _influences(layout.body.ops)
        for each in layout.carried:  # of no trip, the initial value is the final one
            yield from ((each.initial, each.inside), (each.initial, each.final), (each.following, each.inside))
        yield from out
        handed_in = {*(outer for _, outer in layout.steps), *(each.initial for each in layout.carried), *op.inputs.get("free", ())}
        deciding = [var for var in op.reads if var not in handed_in] + ([layout.condition] if layout.condition is not None else [])
        yield from ((source, target) for source in deciding for target in op.writes)  # how often it runs, and on which rows


def _steps(ops: Sequence[Op]) -> Iterator[Step]:
    """Each step that a value takes through `ops` and the blocks inside them, in program order."""
    for op in ops:
        if not op.blocks:
            for slot, vars in op.inputs.items():
                differentiates = standard.get(op.type).differentiates(slot)
                for source in vars:
                    for target in op.writes:
                        yield source, target, op, differentiates and _passes(source, target)
            continue
        layout = Layout.of(op)
        into = [*((inner, outer) for inner, outer in layout.steps), *((each.inside, each.initial) for each in layout.carried)]
        yield from ((outer, inner, op, _passes(outer, inner)) for inner, outer in into)
        yield from _steps(layout.body.ops)
        yield from ((each.following, each.inside, op, _passes(each.following, each.inside)) for each in layout.carried)
        out = [*layout.stacked, *layout.summed, *((each.following, each.final) for each in layout.carried)]
        yield from ((inner, outer, op, _passes(inner, outer)) for inner, outer in out)


def _passes(source: Var, target: Var) -> bool:
    return source.dtype.is_inexact and target.dtype.is_inexact and not target.stop_gradient


def _closure(start: set[Var], pairs: Sequence[tuple[Var, Var]]) -> set[Var]:
    """All that is had from `start` by going from the first of a pair to the second; loops make it a fixpoint."""
    following: dict[Var, list[Var]] = {}
    for source, target in pairs:
        following.setdefault(source, []).append(target)
    found, pending = set(start), list(start)
    while pending:
        for target in following.get(pending.pop(), ()):
            if target not in found:
                found.add(target)
                pending.append(target)
    return found
