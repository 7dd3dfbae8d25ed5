"""Trials of the law of rows: an operator, arguments with rows, and where workers have these."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from random import Random

import torch
from op.arguments import AnyCase, root, root_arguments

import oarlock as ol
from oarlock.ir.operation import Op
from oarlock.ir.size import Size, divide, evaluate, names_in
from oarlock.passes.parallel.analysis import Analysis
from oarlock.passes.parallel.placement import PARTIAL, REPLICATED, Decision, Kind, Placement, sharded, splits
from oarlock.passes.parallel.row_writing import with_known_sizes
from oarlock.passes.rows import SHAPED
from oarlock.registry import Operator, standard
from oarlock.tensor.dtype import from_torch
from oarlock.testing import takes_complex
from row_law.giving import Given, Layout, Place, counts_rows, find_layouts, give, is_splits

NUMBERING = {"nonzero": "y", "sequence_max": "at"}
"""Operators with a result that counts rows, which another op then reads whole."""
READ_WHOLE = "read_whole"

__all__ = ["READ_WHOLE", "Trial", "in_parts", "joined", "layouts_with_rows", "make", "rows_of_value"]


@dataclass
class Trial:
    """One op, which several workers compute. `cuts` are where the rows of each worker begin and end."""

    operator: Operator
    layout: Layout
    given: Given
    placements: dict[Place, Placement]
    cuts: list[int]
    random: Random

    @cached_property
    def program(self) -> ol.Program:
        """The op on inputs that have these names and numbers, `x.0`; another input has rows, as one of any program has. A partial sum is no
        input, but computed from one.
        """
        program = ol.Program(seed=1)
        given: dict[str, list[ol.Var]] = {}
        with program:
            for symbol in self.given.units:
                ol.layer.data(f"{symbol}.rows", [symbol], batch=None)
            for (slot, number), shape in self.layout.shapes.items():
                tensor = self.given.tensors[slot][number]
                var = ol.layer.data(f"{slot}.{number}", shape, str(from_torch(tensor.dtype)), batch=None)
                if self.placements[slot, number].kind is Kind.SPLITS:
                    var.row_splits_of = f"{slot}{number}.t"
                given.setdefault(slot, []).append(ol.op.assign(var) if self.placements[slot, number] is PARTIAL else var)
            many = {slot.name for slot in self.operator.signature.inputs if slot.variadic}
            self.operator(**{slot: vars if slot in many else vars[0] for slot, vars in given.items()}, **self.layout.attributes)  # type: ignore[arg-type]
            if self.operator.type in NUMBERING:
                (numbers,) = program.main.ops[-1].outputs[NUMBERING[self.operator.type]]
                ol.op.cumsum(numbers, axis=0, name=READ_WHOLE)
        return program

    @property
    def op(self) -> Op:
        return [op for op in self.program.main.ops if op.type == self.operator.type and not op.is_commit][-1]

    @property
    def attributes(self) -> dict[str, object]:
        """The attributes that the op of a worker has: a number for a size of -1 where that is known."""
        return {**self.layout.attributes, **({"shape": with_known_sizes(self.op)} if self.operator.type in SHAPED else {})}

    @cached_property
    def placed(self) -> dict[ol.Var, Placement]:
        """Where the inputs are."""
        found = {self.program.main.vars[f"{slot}.{number}"]: placement for (slot, number), placement in self.placements.items()}
        return found | {self.program.main.vars[f"{symbol}.rows"]: sharded() for symbol in self.given.units}

    @cached_property
    def analysis(self) -> Analysis:
        analysis = Analysis(standard)
        analysis.run(self.program.main, self.placed)
        return analysis

    @property
    def decision(self) -> Decision:
        return self.analysis.decisions[self.op]

    @cached_property
    def values(self) -> dict[ol.Var, torch.Tensor]:
        """The arguments with all rows."""
        vars = self.program.main.vars
        found = {vars[f"{slot}.{number}"]: item for slot, items in self.given.tensors.items() for number, item in enumerate(items)}
        for op in self.program.main.ops:
            if op.type == "assign" and op is not self.op and not op.is_commit:  # to a partial sum
                found[op.writes[0]] = found[op.reads[0]]
        return found | {vars[f"{symbol}.rows"]: torch.zeros(spans[-1][1] if spans else 0) for symbol, spans in self.given.units.items()}

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.cuts[-1]

    def spans(self, size: Size) -> list[tuple[int, int]]:
        """Where each row begins and ends along an axis of this size."""
        (symbol,) = names_in(size)
        return self.given.units[symbol]

    def counts(self, var: ol.Var, placement: Placement) -> bool:
        """Whether an axis is as long as the rows, rather than as values tell."""
        return names_in(var.shape[placement.axis]) <= self.given.units.keys()  # type: ignore[index]

    def count_before(self, row: int, size: Size) -> int:
        """A size of the rows before a row."""
        numbers = {symbol: spans[row - 1][1] if row else 0 for symbol, spans in self.given.units.items()}
        count = evaluate(size, numbers)
        assert isinstance(count, int), (size, numbers)
        return count

    def describe(self) -> str:
        shapes = self.layout.shapes
        given = [f"{slot}.{at} {_text(shapes[slot, at])} {_words(placement)}" for (slot, at), placement in self.placements.items()]
        case = f"{self.layout.structure.case!r:.80}"
        return f"{self.operator.type}({', '.join(given)}; {dict(self.layout.attributes)}; {case}; rows cut at {self.cuts}"


def _text(shape: Sequence[Size]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _words(placement: Placement) -> str:
    more = f" along {placement.axis}" if placement.by_rows else ""
    return f"{placement.kind.value}{more}{f' in {placement.outer} parts' if placement.outer != 1 else ''}"


@cache
def layouts_with_rows(operator: Operator, slot: str, axis: int) -> list[Layout]:
    """The layouts in which an argument of a slot has rows along an axis."""

    def has_rows(layout: Layout) -> bool:
        shapes = [shape for place, shape in layout.shapes.items() if place[0] == slot and axis < len(shape)]
        return any(counts_rows(shape, axis, layout.structure.is_ragged) for shape in shapes)

    return [layout for layout in find_layouts(operator) if has_rows(layout)]


def make(operator: Operator, random: Random, target: tuple[str, int] | None = None) -> Trial | None:
    """A trial of an operator; None where there is no such one. `target` is a slot and an axis along which it is to have rows."""
    layouts = find_layouts(operator) if target is None else layouts_with_rows(operator, *target)
    if not layouts:
        return None
    layout = random.choice(layouts)
    count = random.choice((0, 1, 2, 3, 3, 4, 5)) if random.random() < 0.7 else 4
    dtype = torch.complex128 if random.random() < 0.15 and _takes_complex(root(operator), layout.structure.case) else torch.float64
    try:
        given = give(operator, layout.structure, count, random, random.choice((0.0, 0.02, 0.2)), dtype)
    except Exception:  # of a kernel that refuses so few rows, or such numbers
        return None
    placements = {place: _placement(layout, place, given, random, target) for place in layout.shapes}
    workers = random.choice((2, 2, 3)) if random.random() < 0.5 else max(1, count)
    cuts = [0, *sorted(random.randint(0, count) for _ in range(workers - 1)), count]
    return Trial(operator, layout, given, placements, list(range(count + 1)) if workers == count else cuts, random)


@cache
def _takes_complex(operator: Operator, case: AnyCase) -> bool:
    return takes_complex(operator, dict(root_arguments(operator, case).attributes), case)  # type: ignore[arg-type]


def _placement(layout: Layout, place: Place, given: Given, random: Random, target: tuple[str, int] | None) -> Placement:
    shape, tensor = layout.shapes[place], given.tensors[place[0]][place[1]]
    if layout.structure.is_ragged and is_splits(place[0]):
        return splits()
    axes = [axis for axis in range(len(shape)) if counts_rows(shape, axis, layout.structure.is_ragged)]
    wanted = target is not None and place[0] == target[0]
    if axes and (wanted or random.random() < 0.85):
        factor = divide(shape[axes[0]], "n") if not layout.structure.is_ragged else 1
        outers = [outer for outer in range(1, factor + 1) if factor % outer == 0]  # type: ignore[operator]
        outer = layout.structure.outer
        return sharded(axes[0], outer if outer in outers and random.random() < 0.8 else random.choice(outers))
    if tensor.is_floating_point() and random.random() < (0.3 if target is None else 0.1):
        return PARTIAL
    return REPLICATED


def in_parts(value: torch.Tensor, placement: Placement, total: int) -> torch.Tensor:
    """The value with three axes in place of that which has the rows: the parts, what is counted, and the elements of each."""
    axis, size = placement.axis, value.shape[placement.axis]
    return value.reshape(*value.shape[:axis], placement.outer, total, size // (placement.outer * total), *value.shape[axis + 1 :])


def rows_of_value(value: torch.Tensor, placement: Placement, spans: Sequence[tuple[int, int]], rows: Sequence[int]) -> torch.Tensor:
    """The value with some of its rows, which begin and end at `spans` along the axis of a placement."""
    total, axis = spans[-1][1] if spans else 0, placement.axis
    if not total or not value.shape[axis]:
        return value
    index = torch.tensor([each for row in rows for each in range(*spans[row])], dtype=torch.int64)
    taken = in_parts(value, placement, total).index_select(axis + 1, index)
    return taken.reshape(*value.shape[:axis], value.shape[axis] // total * len(index), *value.shape[axis + 1 :])


def joined(values: Sequence[torch.Tensor], placement: Placement) -> torch.Tensor:
    """The rows of several workers as one value."""
    axis, outer = placement.axis, placement.outer
    parts = [value.reshape(*value.shape[:axis], outer, value.shape[axis] // outer, *value.shape[axis + 1 :]) for value in values]
    whole = torch.cat(parts, axis + 1)
    return whole.reshape(*whole.shape[:axis], whole.shape[axis] * whole.shape[axis + 1], *whole.shape[axis + 2 :])
