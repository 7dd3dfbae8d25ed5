"""Differences between two programs, block by block: added, removed, moved and changed parts."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from oarlock.ir.attribute import format_attribute
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.printer import format_declaration, format_op, format_sharding
from oarlock.ir.program import Program
from oarlock.ir.var import HeldValue, Var, are_same

__all__ = ["Difference", "diff_programs"]


@dataclass(frozen=True)
class Difference:
    """One difference. `kind` is "added", "removed", "moved" or "changed", `path` the block, `text` the line concerned.

    `details` lists the changes, one per line.
    """

    kind: str
    path: str
    text: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        mark = {"added": "+", "removed": "-", "moved": ">", "changed": "~"}[self.kind]
        return "\n".join([f"{mark} {self.path}: {self.text}", *(f"      {line}" for line in self.details)])


def diff_programs(before: Program, after: Program) -> list[Difference]:
    """Return every difference in meaning; an empty list if the programs differ at most in names of local values.

    Ops are matched by the names they define, else by the values they compute from matched inputs. So renaming is not a difference, and one
    added op does not make all later ops differ. Nested blocks are compared if their ops match. Locations are ignored.
    """
    found = list(_diff_header(before, after))
    matched: dict[Var, Var] = {}
    found += _diff_blocks(before.main, after.main, matched)
    return found + list(_diff_targets(before, after, matched))


def _diff_header(before: Program, after: Program) -> Iterator[Difference]:
    details = [f"seed {before.seed} became {after.seed}"] if before.seed != after.seed else []
    if before.training != after.training:
        details.append(f"training {before.training} became {after.training}")
    if details:
        yield Difference("changed", "program", "header", tuple(details))


def _diff_targets(before: Program, after: Program, matched: dict[Var, Var]) -> Iterator[Difference]:
    for label, var in before.targets.items():
        if label not in after.targets:
            yield Difference("removed", "program", f"target {label} = {var.name}")
        elif matched.get(var) is not after.targets[label]:
            yield Difference("changed", "program", f"target {label}", (f"{var.name} became {after.targets[label].name}",))
    for label, var in after.targets.items():
        if label not in before.targets:
            yield Difference("added", "program", f"target {label} = {var.name}")


def _diff_blocks(before: Block, after: Block, matched: dict[Var, Var]) -> Iterator[Difference]:
    """Compare two corresponding blocks. Adds the pairs of corresponding variables to `matched`."""
    yield from _diff_inputs(before, after, matched)
    yield from _diff_state(before, after, matched)
    pairs = _match_ops(before, after, matched)
    partners = dict(pairs)
    places = {op: place for place, op in enumerate(after.ops)}
    moved = _moved([places[right] for _, right in pairs])
    taken = set(partners.values())
    for op in before.ops:
        if op not in partners:
            yield Difference("removed", before.path, _line(op))
            continue
        partner = partners[op]
        details = tuple(_diff_ops(op, partner, matched))
        if details:
            yield Difference("changed", after.path, _line(partner), details)
        for left, right in zip(op.blocks, partner.blocks, strict=False):
            yield from _diff_blocks(left, right, matched)
    for op in after.ops:
        if op not in taken:
            yield Difference("added", after.path, _line(op))
    for number, (_, right) in enumerate(pairs):
        if number in moved:
            yield Difference("moved", after.path, _line(right))
    yield from _diff_outputs(before, after, matched)


def _line(op: Op) -> str:
    return f"{op.writes[0].name} <- {op.reads[0].name}" if op.is_commit else format_op(op)


def _diff_inputs(before: Block, after: Block, matched: dict[Var, Var]) -> Iterator[Difference]:
    """Compare inputs: by name in the main block, because callers use the names; by position in nested blocks."""
    if before.parent is None:
        others = {var.name: var for var in after.inputs}
        pairs = [(var, others.pop(var.name, None)) for var in before.inputs]
        added = list(others.values())
    else:
        pairs = [(var, after.inputs[number] if number < len(after.inputs) else None) for number, var in enumerate(before.inputs)]
        added = after.inputs[len(before.inputs) :]
    for left, right in pairs:
        if right is None:
            yield Difference("removed", before.path, f"input {left.name}: {left.type_text}")
            continue
        matched[left] = right
        details = _diff_vars(left, right)
        if details:
            yield Difference("changed", after.path, f"input {right.name}: {right.type_text}", tuple(details))
    for var in added:
        yield Difference("added", after.path, f"input {var.name}: {var.type_text}")


def _diff_state(before: Block, after: Block, matched: dict[Var, Var]) -> Iterator[Difference]:
    """Compare persistable variables by name, because scopes and files store their values by name."""
    others = {var.name: var for var in after.vars.values() if var.persistable}
    for var in before.vars.values():
        if not var.persistable:
            continue
        other = others.pop(var.name, None)
        if other is None:
            yield Difference("removed", before.path, format_declaration(var))
            continue
        matched[var] = other
        details = _diff_vars(var, other)
        if details:
            yield Difference("changed", after.path, format_declaration(other), tuple(details))
    for var in others.values():
        yield Difference("added", after.path, format_declaration(var))


def _diff_vars(left: Var, right: Var) -> list[str]:
    """Return the differences between two variables."""
    details = [f"{left.type_text} became {right.type_text}"] if left.type_text != right.type_text else []
    for flag in ("parameter", "trainable", "stop_gradient"):
        if getattr(left, flag) != getattr(right, flag):
            details.append(f"{flag}: {getattr(left, flag)} became {getattr(right, flag)}".lower())
    if left.row_splits_of != right.row_splits_of:
        details.append(f"row_splits_of: {left.row_splits_of or 'nothing'} became {right.row_splits_of or 'nothing'}")
    if left.sharding != right.sharding:
        details.append(f"sharding: {format_sharding(left.sharding) or 'none'} became {format_sharding(right.sharding) or 'none'}")
    if left.place != right.place:
        details.append(f"place: {left.place} became {right.place}")
    before, after = left.update_settings.stated, right.update_settings.stated
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            details.append(f"update, {name}: {before.get(name, 'absent')} became {after.get(name, 'absent')}")
    if not isinstance(left.initializer or right.initializer, HeldValue) and left.initializer != right.initializer:
        details.append("it starts differently")
    return details


def _match_ops(before: Block, after: Block, matched: dict[Var, Var]) -> list[tuple[Op, Op]]:
    """Return pairs of corresponding ops, in the order of `before`.

    Ops of the same type are matched first by their computation from matched values, then by the names they define.
    """
    by_name: dict[tuple[str, tuple[str, ...]], list[Op]] = defaultdict(list)
    by_meaning: dict[object, list[Op]] = defaultdict(list)
    for op in after.ops:
        by_name[op.type, tuple(var.name for var in op.writes)].append(op)
        by_meaning[_meaning(op, {})].append(op)
    free = set(after.ops)
    pairs: list[tuple[Op, Op]] = []
    for op in before.ops:
        same = [other for other in by_meaning.get(_meaning(op, matched), ()) if other in free]
        named = [other for other in by_name.get((op.type, tuple(var.name for var in op.writes)), ()) if other in free]
        partner = next((other for other in named if other in same), None) or next(iter(same), None) or next(iter(named), None)
        if partner is None:
            continue
        free.remove(partner)
        pairs.append((op, partner))
        if not op.is_commit:
            for left, right in zip(op.writes, partner.writes, strict=False):
                matched[left] = right
    return pairs


def _meaning(op: Op, matched: dict[Var, Var]) -> object:
    """Return the computation of an op: its type, attributes except blocks, and inputs mapped to the other program."""
    inputs = tuple((slot, tuple(id(matched.get(var, var)) for var in vars)) for slot, vars in _arguments(op).items())
    target = tuple(id(matched.get(var, var)) for var in op.writes) if op.is_commit else ()
    return op.type, inputs, _attributes(op), target


def _arguments(op: Op) -> dict[str, tuple[Var, ...]]:
    """Return the inputs by slot, followed by the attributes that are variables, by name."""
    return op.inputs | {name: (value,) for name, value in op.attributes.items() if isinstance(value, Var)}


def _attributes(op: Op) -> tuple[tuple[str, str], ...]:
    return tuple((name, format_attribute(value)) for name, value in sorted(op.attributes.items()) if not isinstance(value, Block | Var))


def _diff_ops(left: Op, right: Op, matched: dict[Var, Var]) -> Iterator[str]:
    """Compare two ops of the same type."""
    before, after = dict(_attributes(left)), dict(_attributes(right))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield f"{name}: {before.get(name, 'absent')} became {after.get(name, 'absent')}"
    given, taken = _arguments(left), _arguments(right)
    for slot in dict.fromkeys([*given, *taken]):
        old, new = given.get(slot, ()), taken.get(slot, ())
        if not are_same([matched.get(var, var) for var in old], new):
            yield f"{slot}: {_names(old)} became {_names(new)}"
    types = [var.type_text for var in left.writes], [var.type_text for var in right.writes]
    if types[0] != types[1]:
        yield f"type: {', '.join(types[0])} became {', '.join(types[1])}"
    cuts = [[var.row_splits_of or "nothing" for var in op.writes] for op in (left, right)]
    if cuts[0] != cuts[1]:
        yield f"row_splits_of: {', '.join(cuts[0])} became {', '.join(cuts[1])}"
    if left.role is not right.role:
        yield f"role: {left.role.name.lower()} became {right.role.name.lower()}"
    if len(left.blocks) != len(right.blocks):
        yield f"it has {len(left.blocks)} blocks, then {len(right.blocks)}"


def _diff_outputs(before: Block, after: Block, matched: dict[Var, Var]) -> Iterator[Difference]:
    if not are_same([matched.get(var, var) for var in before.outputs], after.outputs):
        yield Difference("changed", after.path, "outputs", (f"{_names(before.outputs)} became {_names(after.outputs)}",))


def _names(vars: Sequence[Var]) -> str:
    return f"[{', '.join(var.name for var in vars)}]" if len(vars) != 1 else vars[0].name


def _moved(places: list[int]) -> set[int]:
    """Return the pairs outside a longest increasing subsequence (patience sorting)."""
    ends: list[int] = []
    holders: list[int] = []
    before: list[int | None] = []
    for number, place in enumerate(places):
        at = bisect_left(ends, place)
        before.append(holders[at - 1] if at else None)
        ends[at : at + 1] = [place]
        holders[at : at + 1] = [number]
    kept: set[int] = set()
    at_end: int | None = holders[-1] if holders else None
    while at_end is not None:
        kept.add(at_end)
        at_end = before[at_end]
    return set(range(len(places))) - kept
