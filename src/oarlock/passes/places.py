"""Places: which of the places of a run each op of a program runs at, and the moves between them."""

from collections.abc import Sequence

from oarlock.errors import ProgramError
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.substitution import replace_reads
from oarlock.ir.traversal import walk_ops
from oarlock.ir.var import Var
from oarlock.op.control.layout import Layout
from oarlock.passes.rewriter import declare
from oarlock.registry.catalogue import Catalogue, standard

__all__ = ["find_places", "places_named", "write_moves"]


def places_named(program: Program, catalogue: Catalogue) -> set[int]:
    """The numbers of places that a program names: those of its variables, and of its moves."""
    moved = {int(op.attributes["place"]) for op in program.main.ops if _is_move(op, catalogue)}  # type: ignore[call-overload]
    return moved | {var.place for var in program.persistables()}


def find_places(ops: Sequence[Op], catalogue: Catalogue) -> dict[Op, int]:
    """The number of the place at which each of `ops`, those of a main block or some of them, runs.

    An op runs where the first parameter lies that it reads, for itself or for its block: parameters are large, and stay. One that reads
    none runs where the first kept variable lies that is at another place than 0. Any other has a choice where its inputs were computed at
    several places: it runs at that of them where an op runs that reads its result and has no choice, else where the input was computed
    that was computed last, since values flow on. What reads shapes alone runs where they were computed, what reads nothing where it is
    read first, a commit where its variable lies, and `move` where it says. All of a block runs at one place. Raises ProgramError for a
    `move` inside a block.
    """
    reads = {op: _moved(op, catalogue) for op in ops}
    decided = {op: place for op in ops if (place := _decided(op, reads[op], catalogue)) is not None}
    wanted: dict[Var, set[int]] = {}  # what is read -> the places of the readers that have no choice
    for op, place in decided.items():
        for var in reads[op]:
            wanted.setdefault(var, set()).add(place)
    found: dict[Op, int] = {}
    order: dict[Var, int] = {}  # what is computed here -> the number of its op
    waiting: dict[Var, Op] = {}  # what was made of nothing, and is not read yet
    for number, op in enumerate(ops):
        place = decided.get(op)
        if place is None:
            lies = {var: found[ops[order[var]]] if var in order else var.place for var in reads[op] if var not in waiting}
            computed = [var for var in lies if var in order] or [var for var in op.reads if var in order and var not in waiting]
            latest = max(computed, key=order.__getitem__, default=None)
            nexts = set().union(*(wanted.get(var, set()) for var in op.writes)).intersection(lies.values())
            place = nexts.pop() if len(nexts) == 1 else 0 if latest is None else found[ops[order[latest]]]
        found[op] = place
        for made in {waiting[var] for var in reads[op] if var in waiting}:
            found[made] = place
            for var in made.writes:
                waiting.pop(var)
        order |= dict.fromkeys(op.writes, number)
        if not op.reads and op not in decided:
            waiting |= dict.fromkeys(op.writes, op)
    return found


def _decided(op: Op, reads: Sequence[Var], catalogue: Catalogue) -> int | None:
    """The number of the place at which `op` must run; None where there is a choice. Raises ProgramError for a `move` inside a block."""
    for inner in walk_ops(inner for block in op.blocks for inner in block.ops):
        if _is_move(inner, catalogue):
            raise ProgramError(
                f"{inner.block.path} runs at one place, and a move stands in it", location=inner.location, hint="move values before the op"
            )
    if _is_move(op, catalogue):
        return int(op.attributes["place"])  # type: ignore[call-overload]
    if op.is_commit:
        return op.writes[0].place
    kept = [var for var in reads if var.persistable]
    return next((var.place for var in (*(each for each in kept if each.parameter), *(each for each in kept if each.place))), None)


def write_moves(program: Program, catalogue: Catalogue) -> dict[Op, int]:
    """Let each op of the main block read what lies at its place, and return the places of all; see `find_places`.

    Before, where v is at place 1              After
        h = linear(x, w)                           h = linear(x, w)
        y = linear(h, v)                           h@PLACE_1 = move(h, place=1)
                                                   y = linear(h@PLACE_1, v)

    A value is moved once to a place, before the first op there that reads it. What is read for its shape alone, or as a number, stays.
    """
    main, found = program.main, find_places(program.main.ops, catalogue)
    lies = {var: place for op, place in found.items() if not op.is_commit for var in op.writes}
    moves: dict[tuple[Var, int], Var] = {}
    ops: list[Op] = []
    tail = main.tail
    for op in main.ops:
        place, replaced = found[op], dict[Var, Var]()
        for var in _moved(op, catalogue) if not _is_move(op, catalogue) else ():
            if lies.get(var, var.place) != place:
                if (var, place) not in moves:
                    moves[var, place] = _move(var, place, op)
                    made = moves[var, place].op
                    assert made is not None
                    found[made] = place
                    ops.append(made)
                replaced[var] = moves[var, place]
        if replaced:
            _read_instead(op, replaced, catalogue)
        if not op.is_commit:
            ops.append(op)
    main.ops = [*ops, *tail]
    if moves:
        program.changed()
    return found


def _move(var: Var, place: int, reader: Op) -> Var:
    moved = declare(var, var.shape, f"PLACE_{place}")
    told = {"role": reader.role, "location": reader.location}
    moved.op = Op(reader.block, "move", {"x": (var,)}, {"y": (moved,)}, {"place": place}, **told)  # type: ignore[arg-type]
    return moved


def _read_instead(op: Op, replaced: dict[Var, Var], catalogue: Catalogue) -> None:
    declared = catalogue.get(op.type).signature.inputs
    whole = {slot.name for slot in declared if not slot.shape_only}
    op.inputs = {slot: tuple(replaced.get(var, var) if slot in whole else var for var in vars) for slot, vars in op.inputs.items()}
    for block in op.blocks:
        replace_reads(block, replaced)
    if op.blocks:
        Layout.of(op).write()


def _moved(op: Op, catalogue: Catalogue) -> list[Var]:
    """The variables whose values an op must have at its place: not those that are read for their shape, or as a number."""
    slots = catalogue.get(op.type).signature.inputs
    return list(dict.fromkeys(var for slot in slots if not slot.shape_only for var in op.inputs.get(slot.name, ())))


def _is_move(op: Op, catalogue: Catalogue) -> bool:
    return op.type == "move" and catalogue.find(op.type) is standard.find(op.type)
