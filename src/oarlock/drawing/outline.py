"""A program as a tree of frames and items, which all drawing formats show.

A frame is a box: a section of the main block, a nested block, or the ops of a layer. It contains items, one below the other. An item is an
op, an input or output variable, or a layer, and may contain frames. The time is linear in the size of the program.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from oarlock.drawing.details import (
    count_text,
    describe_layer,
    describe_op,
    describe_var,
    elements_of,
    operators_text,
    plain,
    shorten,
    type_of,
)
from oarlock.drawing.lanes import ABOVE, Lanes, assign_lanes
from oarlock.ir.block import Block
from oarlock.ir.layer_names import Path, layer_paths, runs
from oarlock.ir.operation import Op, Role
from oarlock.ir.printer import COMMITS, ROLES
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var

__all__ = ["Frame", "Item", "Outline", "Word", "count_ops"]

_NAME = 34  # characters of a name
_NAMED = 5  # variables that an item names
_LETTERS = 64  # characters of all names of an item, approximately
_NESTED = 10  # nested layers
_LONG = 150  # items of a frame before they are grouped
_SOME = 50  # items of a group
_FORWARD = ROLES[Role.FORWARD]

Place = tuple["tuple[Frame, int]", ...]
"""The frames of a block that enclose an item, outermost first, each with the number of the item in it."""


@dataclass(frozen=True)
class Word:
    """A word of an item: its text, its `kind` ("value", "parameter" or "note"), and the `anchor` of the item that defines it."""

    text: str
    kind: str = "note"
    anchor: str = ""


@dataclass(eq=False)
class Item:
    """A line of a drawing: a label, words, and the type of the first result.

    `kind` is "op", "layer", "feed", "input", "output" or "target"; `anchor` is its identifier in the drawing; `details` is the text of its
    tooltip; `weighs`: it reads parameters.
    """

    kind: str
    anchor: str
    label: str
    words: list[Word]
    result: str
    details: str
    weighs: bool = False
    frames: "list[Frame]" = field(default_factory=list)
    lanes: Lanes = field(default_factory=Lanes)


@dataclass(eq=False)
class Frame:
    """A box of items. `kind` is "section", "block" or "layer", `level` the number of enclosing frames, `ops` the number of ops inside.

    `within` is the prefix of names in a layer.
    """

    kind: str
    title: str
    level: int
    role: str
    ops: int = 0
    items: list[Item] = field(default_factory=list)
    lanes: int = 1
    within: str = ""
    reads: list[list[Var]] = field(default_factory=list)
    defined: dict[Var, int] = field(default_factory=dict)

    def add(self, item: Item) -> int:
        """Append an item; return its number."""
        self.items.append(item)
        self.reads.append([])
        return len(self.items) - 1


def count_ops(count: int) -> str:
    return f"{count:,} op{'' if count == 1 else 's'}"


class Outline:
    """The `frames` of a block: the sections of the main block, or another block itself. `ops` and `blocks` count the contents.

    `anchors` are the identifiers of the definitions of variables. `persistables` are the persistable variables, for a nested block those
    that it reads.
    """

    def __init__(self, block: Block, *, source: bool = True):
        self.block = block
        self.source = source
        self.persistables = block.program.persistables()
        if block.parent is not None:
            read = {var for op in walk(block) for var in op.reads}
            self.persistables = [var for var in self.persistables if var in read]
        self.anchors: dict[Var, str] = {var: f"p{number}" for number, var in enumerate(self.persistables)}
        self._places: dict[Var, Place] = {}
        self._all: list[Frame] = []
        self._entered: set[Block] = set()
        self._counts = dict.fromkeys("oglt", 0)
        self._targets: dict[Var, list[str]] = {}
        for label, var in block.program.targets.items():
            self._targets.setdefault(var, []).append(label)
        self.frames = self._sections(block) if block.parent is None else [self._block(block, 0, ROLES[Role.FORWARD], block.name)]
        for frame in self._all:
            lanes, frame.lanes = assign_lanes(frame.reads, frame.defined)
            for item, lane in zip(frame.items, lanes, strict=True):
                item.lanes = lane

    @property
    def ops(self) -> int:
        return self._counts["o"]

    @property
    def blocks(self) -> int:
        return len(self._entered)

    def _anchor(self, kind: str) -> str:
        """Return a unique identifier, for an op (o), a layer (g), an input (l) or an output (t)."""
        self._counts[kind] += 1
        return f"{kind}{self._counts[kind] - 1}"

    # Frames

    def _sections(self, block: Block) -> list[Frame]:
        self._entered.add(block)
        start = block.tail_start
        parts = [(ROLES[role], ROLES[role], list(ops)) for role, ops in groupby(block.ops[:start], lambda op: op.role)]
        parts += [(COMMITS[role], ROLES[role], list(ops)) for role, ops in groupby(block.ops[start:], lambda op: op.role)]
        if not parts or parts[0][0] != _FORWARD:
            parts.insert(0, (_FORWARD, _FORWARD, []))
        last = max(number for number, part in enumerate(parts) if part[0] == _FORWARD)
        found = []
        for number, (title, role, ops) in enumerate(parts):
            frame = Frame("section", title, 0, role, len(ops))
            if number == 0:
                self._add_inputs(frame, block, "feed")
            self._add_ops(frame, ops, layer_paths(ops), (0, len(ops), 0), ())
            if number == last:
                for label, var in self.block.program.targets.items():
                    self._add_output(frame, var, "target", label)
            self._all.append(frame)
            found.append(frame)
        return found

    def _block(self, block: Block, level: int, role: str, title: str) -> Frame:
        frame = Frame("block", title, level, role, len(block.ops))
        if block not in self._entered:  # only once: an unverified program may use a block twice
            self._entered.add(block)
            self._add_inputs(frame, block, "input")
            self._add_ops(frame, block.ops, layer_paths(block.ops), (0, len(block.ops), 0), ())
            for var in block.outputs:
                self._add_output(frame, var, "output", "")
            self._all.append(frame)
        return frame

    # Items

    def _add_inputs(self, frame: Frame, block: Block, kind: str) -> None:
        for var in block.inputs:
            self.anchors[var] = anchor = self._anchor("l")
            words = [Word(_name(var), "value")]
            if var.initializer is not None:
                words.append(Word(f"= {plain(var.initializer.type, 40)}"))
            number = frame.add(Item(kind, anchor, kind, words, type_of(var), describe_var(var, source=self.source)))
            self._places[var] = ((frame, number),)

    def _add_output(self, frame: Frame, var: Var, kind: str, label: str) -> None:
        words = [*([Word(plain(label, 60), "value"), Word("=")] if label else []), self._word(var)]
        number = frame.add(Item(kind, self._anchor("t"), kind, words, type_of(var), describe_var(var, source=self.source)))
        self._connect(var, ((frame, number),))

    def _add_ops(self, frame: Frame, ops: Sequence[Op], paths: Sequence[Path], part: tuple[int, int, int], around: Place) -> None:
        """Add a range of ops, with layers as single items. `part` is the first and last op, and the number of name parts already used.

        Very long ranges are grouped.
        """
        first, last, depth = part
        found = list(runs(paths, first, last, depth)) if len(around) < _NESTED else [((), at, at + 1) for at in range(first, last)]
        if len(found) > _LONG and len(around) < _NESTED:
            size = max(_SOME, -(-len(found) // _LONG))
            for start in range(0, len(found), size):
                some = found[start : start + size]
                begin, end = some[0][1], some[-1][2]
                inside = ops[begin:end]
                label = f"ops {begin + 1:,} to {end:,}"
                chunk = self._new_frame(frame, len(inside), frame.within)
                number = frame.add(self._layer_item(label, f"{label} of {len(ops):,}", inside, chunk))
                self._add_runs(chunk, ops, paths, some, depth, (*around, (frame, number)))
            return
        self._add_runs(frame, ops, paths, found, depth, around)

    def _add_runs(
        self, frame: Frame, ops: Sequence[Op], paths: Sequence[Path], found: Sequence[tuple[Path, int, int]], depth: int, around: Place
    ) -> None:
        for path, start, end in found:
            if path:
                inside = ops[start:end]
                layer = self._new_frame(frame, len(inside), ".".join(path) + ".")
                label = ".".join(path[depth - 1 if depth and path[depth].isdigit() else depth :])
                number = frame.add(self._layer_item(label, ".".join(path), inside, layer))
                self._add_ops(layer, ops, paths, (start, end, len(path)), (*around, (frame, number)))
            else:
                self._add_op(frame, ops[start], around)

    def _new_frame(self, around: Frame, ops: int, within: str) -> Frame:
        frame = Frame("layer", "", around.level + 1, around.role, ops, within=within)
        self._all.append(frame)
        return frame

    def _add_op(self, frame: Frame, op: Op, around: Place) -> None:
        item = self._op_item(op, frame.within)
        place = (*around, (frame, frame.add(item)))
        for var in op.reads:
            self._connect(var, place)
        for var in op.writes:
            if not var.persistable:
                self._places.setdefault(var, place)
        for name, inner in op.attributes.items():
            if isinstance(inner, Block):
                item.frames.append(self._block(inner, frame.level + 1, frame.role, f"{plain(name, 40)} {_short(inner.name)}"))

    def _op_item(self, op: Op, within: str) -> Item:
        anchor = self._anchor("o")
        reads, writes = dict.fromkeys(op.reads), op.writes
        for var in writes:
            self.anchors.setdefault(var, anchor)
        words = self._words(list(reads), _NAMED, within)
        if writes:
            words += [Word("\u2192"), *self._words(writes, 2, within, own=True)]
        words = _fitted(words)
        labels = [label for var in writes for label in self._targets.get(var, ())]
        words += [Word(plain(label, 30), "target") for label in labels[:3]]
        return Item(
            "op",
            anchor,
            plain(op.type, 40),
            words,
            _result(op),
            describe_op(op, source=self.source),
            weighs=any(var.parameter for var in reads),
        )

    def _layer_item(self, label: str, name: str, ops: Sequence[Op], frame: Frame) -> Item:
        parameters = list(dict.fromkeys(var for op in ops for var in op.reads if var.parameter))
        count = [Word(f"{count_text(elements_of(parameters))} parameters", "parameter")] if parameters else []
        words = [*count, Word(operators_text(ops, 3))]
        details = describe_layer(name, ops, parameters, source=self.source)
        result = "" if ops[-1].is_commit else _result(ops[-1])
        return Item("layer", self._anchor("g"), plain(label, 40), words, result, details, weighs=bool(parameters), frames=[frame])

    def _words(self, vars: Sequence[Var], most: int, within: str, *, own: bool = False) -> list[Word]:
        words = [self._word(var, within, own=own) for var in vars[:most]]
        return [*words, Word(f"+{len(vars) - most}")] if len(vars) > most else words

    def _word(self, var: Var, within: str = "", *, own: bool = False) -> Word:
        kind = "parameter" if var.parameter else "state" if var.persistable else "value"
        return Word(_name(var, within), kind, "" if own else self.anchors.get(var, ""))

    # Lines

    def _connect(self, var: Var, reader: Place) -> None:
        """Record that the item at `reader` reads a variable defined in the same section or block."""
        definer = self._places.get(var)
        if definer is None or definer[0][0] is not reader[0][0]:
            return
        level = 0
        while level < min(len(definer), len(reader)) - 1 and definer[level] == reader[level]:
            level += 1
        frame, number = reader[level]
        defined = definer[level][1]
        if defined >= number:
            return
        frame.defined[var] = defined
        frame.reads[number].append(var)
        for inner, inside in reader[level + 1 :]:
            inner.defined.setdefault(var, ABOVE)
            inner.reads[inside].append(var)


def _fitted(words: list[Word]) -> list[Word]:
    """Shorten the names in words if they are too long in total."""
    for longest in (26, 18):
        if sum(len(word.text) + 1 for word in words) > _LETTERS:
            words = [replace(word, text=shorten(word.text, longest)) for word in words]
    return words


def _result(op: Op) -> str:
    """Return the type of the first result, and the number of others."""
    writes = op.writes
    if not writes:
        return ""
    return type_of(writes[0]) + (f" +{len(writes) - 1}" if len(writes) > 1 else "")


def _name(var: Var, within: str = "") -> str:
    """Return the name of a variable, in a layer without the prefix `within` of the layer, which ends with a dot."""
    return _short(f"\u2026{var.name.removeprefix(within)}" if within and var.name.startswith(within) else var.name)


def _short(name: str) -> str:
    return shorten(plain(name, 256), _NAME)
