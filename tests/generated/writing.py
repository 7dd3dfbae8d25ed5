"""A program while it is written: which values may be read here, how large they can be, and what has been met."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy

import oarlock as ol
from generated.choices import Choices
from oarlock.ir.block import Block
from oarlock.ir.block_stack import current_block
from oarlock.ir.size import Shape, Size, add, names_in
from oarlock.layer.control.outer import STEPS, is_stepped

__all__ = ["LIMIT", "NUMBERS", "OTHER", "Writing", "is_cut_in_front"]

LIMIT = 6.0
"""No value is larger, so that nothing overflows however often loops are nested, and differences stay exact enough."""


WIDE = 32

SPLIT = "m"
"""A number of sequences that row splits alone tell: nothing that is fed has it as a size."""


OTHER = "o"
"""A size that stands beside others: fed for a symbol, or how many rows a mask chooses."""

NUMBERS = (2, 3, 4, 1, 0, 7, 3, 4, 1, 2)
"""The numbers among which the value of each symbol is chosen."""

MOST = 5  # rows of which a mask chooses some


class Writing:
    """The state of one program's making.

    Every float value in reach is a float64 tensor of known type, at most `LIMIT` large. `sizes` are those that are fed for symbols,
    `arrays` what is fed and what parameters hold. `features` are the names of what the program has, for the histogram.
    """

    def __init__(self, choices: Choices, *, maybe_equal: bool = False):
        self.choices = choices
        self.program = ol.Program(seed=choices.below(1000))
        self.width = 1 + choices.below(4)
        self.other = 1 + choices.below(4)
        self.pages = choices.below(4)
        self.maybe_equal = maybe_equal
        self.sizes = {symbol: choices.pick(NUMBERS) for symbol in ("t", "n", SPLIT, *([OTHER] if maybe_equal else []))}
        self.pairs: list[tuple[Size, Size]] = []  # sizes that ops need to be equal, or broadcast, and that names do not prove
        self.chosen_by: dict[Size, Size] = {}  # a size known only from values -> that by which a mask was made
        self.arrays: dict[str, numpy.ndarray] = {}
        self.features: set[str] = set()
        self.kinds: list[str] = []
        self.ends: set[ol.Var] = set()  # values that are targets more often than others, so that gradients reach what made them
        self.runs = True  # whether the open block may run at all
        self._cut: list[tuple[Size, set[Block]]] = []  # a size that blocks around cut into rows, and the blocks around those
        self._cutters: list[str] = []  # the kinds of constructs that these are
        self.statements = 2 + choices.below(9)
        self._bounds: dict[ol.Var, float] = {}
        self._random = numpy.random.default_rng(choices.below(1000))
        with self.program:
            self.input("t", self.width)
            self.input("n", self.width)

    # Values

    @property
    def depth(self) -> int:
        return len(self.kinds)

    def visible(self, fits: Callable[[ol.Var], bool] = lambda var: True) -> list[ol.Var]:
        """The float values that may be read here, the latest first."""
        around = set(current_block().enclosing())
        found = [var for var in reversed(self._bounds) if var.block in around and not self._is_torn(var) and fits(var)]
        return [var for var in found if not _stands_for_its_step(var)]

    def _is_torn(self, var: ol.Var) -> bool:
        """Whether a block around cuts into rows a size that `var`, from outside it, has elsewhere than in front."""
        return self._is_lost(var.shape) or any(var.block in outside and self._has_within(var.shape, size) for size, outside in self._cut)

    def _has_within(self, shape: Shape, size: Size) -> bool:
        """Whether a shape has a size, or one that counts elements of as many sequences, elsewhere than as its whole first dimension."""
        within = (name for number, item in enumerate(shape) for name in names_in(item) if number or item != name)
        return _has_within(shape, size) or any(size in self._levels(name) for name in within)

    def _is_lost(self, shape: Shape) -> bool:
        """Whether it is the shape of values that lie otherwise in a block around: the rows of a ragged step are grouped by nothing,
        so that no branch cuts them by what groups them outside, nor a loop by sequences of sequences."""
        levels = list(self._levels(shape[0])) if shape else []
        by = [[kind for (size, _), kind in zip(self._cut, self._cutters, strict=True) if size == level] for level in levels]
        if len(by) > 1 and by[1][:1] == ["rnn"] and "if_else" in by[1]:
            return True
        if any("rnn" in kinds for kinds in by[2:]):
            return True
        return any("rnn" in kinds and any(by[number + 1 :]) for number, kinds in enumerate(by))

    def _levels(self, length: Size) -> Iterator[Size]:
        """A length; where that is of ragged values, the number of their sequences; and so on."""
        level: Size | None = length
        while level is not None:
            yield level
            level = self.rows_of(level)

    def find_value(self, fits: Callable[[ol.Var], bool] = lambda var: True) -> ol.Var | None:
        """One of the values in reach that fit, later ones more likely; None where there is none."""
        found = self.visible(fits)
        if not found:
            return None
        return found[min(self.choices.below(len(found)), self.choices.below(len(found)))]

    def value(self, fits: Callable[[ol.Var], bool], otherwise: ol.Var | tuple[int, ...]) -> ol.Var:
        """As `find_value`; where there is none, another value or a parameter of a shape."""
        found = self.find_value(fits)
        if found is not None:
            return found
        return self.parameter(*otherwise) if isinstance(otherwise, tuple) else otherwise

    def bound(self, var: ol.Var) -> float:
        return self._bounds[var]

    def bound_anew(self, var: ol.Var, bound: float) -> None:
        self._bounds[var] = bound

    def keep(self, var: ol.Var, bound: float) -> ol.Var:
        """Put a float value in reach that is at most `bound` large; squashed where that is too much."""
        if bound > LIMIT:
            var, bound = ol.op.tanh(var), 1.0
        self._bounds[var] = bound
        if var.op is not None and self.choices.chance(2):
            var.stop_gradient = True
            self.features.add("stop_gradient")
        return var

    # Where values come from

    def input(self, *shape: Size) -> ol.Var:
        """A new float input of the main block."""
        return self.keep(self._feed(shape, "float64", self._random.uniform(-1.5, 1.5, size=self._numbers(shape))), 1.5)

    def label(self, classes: int, *shape: Size) -> ol.Var:
        """A new input of class ids."""
        return self._feed(shape, "int64", self._random.integers(classes, size=self._numbers(shape)))

    def ragged(self, *shape: int) -> ol.Var:
        """A new ragged input: sequences of any lengths, 0 too, one after another; at times, sequences of sequences."""
        var = self._ragged(shape, "float64")
        self.arrays[var.name] = self._random.uniform(-1.5, 1.5, size=self._numbers(var.shape))
        return self.keep(var, 1.5)

    def ragged_ids(self, classes: int, *shape: int) -> ol.Var:
        """A new ragged input of class ids."""
        var = self._ragged(shape, "int64")
        self.arrays[var.name] = self._random.integers(classes, size=self._numbers(var.shape))
        return var

    def _ragged(self, shape: tuple[int, ...], dtype: str) -> ol.Var:
        """Declare a ragged input, and make its row splits."""
        name, rows, levels = f"x{len(self.arrays)}", self.choices.pick(("n", "n", SPLIT)), self.choices.pick((1, 1, 1, 2))
        with self.program.main:
            var = ol.layer.data(name, list(shape), dtype, batch=rows, ragged=levels)
        count = self.sizes[rows]
        for splits in [item for item in self.program.main.inputs if item.name.startswith(f"{name}.splits")]:
            lengths = self._random.integers(0, 4, size=count)
            count = int(lengths.sum())
            self.sizes[str(splits.row_splits_of)] = count
            self.arrays[splits.name] = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype("int64")
        self.features |= {"ragged: two levels"} if levels == 2 else set()
        self.features |= {"ragged: splits alone tell how many"} if rows == SPLIT else set()
        return var

    def chosen(self, count: Size, shape: Shape, axis: int) -> ol.Var:
        """A value of a shape with as many rows as `count` along one axis, which only a mask tells."""
        rows = self.input(MOST, *shape[:axis], *shape[axis + 1 :])
        mask = self._feed((MOST,), "bool", numpy.arange(MOST) < self._numbers([count])[0])
        numbers = ol.op.nonzero(mask)
        self.chosen_by[numbers.shape[0]] = count
        taken = ol.op.gather(rows, numbers)
        if axis:
            taken = ol.op.transpose(taken, axes=(*range(1, axis + 1), 0, *range(axis + 1, len(shape))))
        return self.keep(taken, 1.5)

    def rows_of(self, length: Size) -> Size | None:
        """The number of sequences, where values of this length are ragged."""
        splits = self.program.main.splits_of(length) if isinstance(length, str) else None
        return None if splits is None or splits.shape is None else add(splits.shape[0], -1)

    def may_be_stepped(self, length: Size) -> bool:
        """Whether a loop over values of this length can be written here: over ragged ones not where a block around cuts them."""
        rows = self.rows_of(length)
        return rows is None or not any(size in (length, rows) for size, _ in self._cut)

    @property
    def may_be_ragged(self) -> bool:
        """Whether a ragged input can be stepped through here."""
        return all(size not in ("n", SPLIT) for size, _ in self._cut)

    def wide(self) -> ol.Var:
        """A parameter of so many elements that two random masks of it are never the same by chance; in reach of nothing else."""
        found = self.program.main.find_var("wide")
        return self._new_parameter("wide", (WIDE,)) if found is None else found

    def far(self) -> ol.Var:
        """An input that is the number of a row which nothing has."""
        found = self.program.main.find_var("far")
        if found is not None:
            return found
        self.arrays["far"] = numpy.array(99)
        with self.program.main:
            return ol.layer.data("far", [], "int64", batch=None)

    def guarded(self, length: Size, poison: float) -> tuple[ol.Var, ol.Var]:
        """Two new inputs: a guard of some rows, and another, from 0.5 to 1.5 where the guard is above 0, `poison` in the other rows."""
        with self.program.main:
            guard = self._feed((length,), "float64", self._random.uniform(-1, 1, size=self._numbers([length])))
            values = self._random.uniform(0.5, 1.5, size=self._numbers([length, self.width]))
            values[self.arrays[guard.name] <= 0] = poison
            return guard, self._feed((length, self.width), "float64", values)

    def weight(self, shape: Shape) -> str:
        """The name of a new input that weighs a target."""
        return self._feed(shape, "float64", self._random.uniform(-1.5, 1.5, size=self._numbers(shape))).name

    def is_fed(self, size: Size) -> bool:
        """Whether it is known which number a size is."""
        return isinstance(size, int) or (size in self.sizes and size != SPLIT)

    def is_counted(self, size: Size) -> bool:
        """Whether a slice may be along an axis of this size: a number, or a symbol that no block around cuts into rows."""
        return self.is_fed(size) and not any(size == cut for cut, _ in self._cut)

    def may_be_fed(self, shape: Shape) -> bool:
        """Whether an input of this shape can be read here."""
        if not all(map(self.is_fed, shape)) or self._is_lost(shape) or (shape and _is_stepped_through(shape[0])):
            return False
        return not any(self._has_within(shape, size) for size, _ in self._cut)

    def has_rows(self, shape: Shape) -> bool:
        """Whether `ol.ifelse` can take rows: the first size is a number or one name, and no other size is or has it."""
        return bool(shape) and (isinstance(shape[0], int) or (names_in(shape[0]) == {shape[0]} and not self._has_within(shape, shape[0])))

    def count(self, size: Size) -> str:
        """How many that is, for the histogram."""
        number = self.sizes.get(size, 2) if isinstance(size, str) else size
        return str(number) if number < 2 else "some"

    def _feed(self, shape: Shape, dtype: str, array: numpy.ndarray) -> ol.Var:
        name = f"x{len(self.arrays)}"
        self.arrays[name] = numpy.asarray(array)
        return ol.layer.data(name, shape, dtype, batch=None)

    def parameter(self, *shape: int) -> ol.Var:
        """A parameter: one that is there, at times, else a new one, wherever it is asked for."""
        found = [var for var in self._bounds if var.parameter and var.shape == shape and not _stands_for_its_step(var)]
        if found and self.choices.chance(40):
            return self.choices.pick(found)
        if self.depth:
            self.features.add("parameter made inside")
        return self.keep(self._new_parameter(f"w{len(self.arrays)}", shape, trainable=not self.choices.chance(5)), 1.0)

    def _new_parameter(self, name: str, shape: tuple[int, ...], *, trainable: bool = True) -> ol.Var:
        self.arrays[name] = self._random.uniform(-1, 1, size=shape)
        return self.program.main.new_var(name, ol.DType.FLOAT64, shape, persistable=True, parameter=True, trainable=trainable)

    def scalar(self) -> ol.Var:
        """A float[] that depends on one of the values in reach."""
        x = self.value(lambda var: True, (self.width,))
        return x if not x.shape else ol.op.reduce_sum(ol.op.tanh(x))

    def number(self, value: float) -> ol.Var:
        return ol.op.full(shape=(), value=value, dtype="float64")

    def of_shape(self, *shape: Size) -> ol.Var:
        """A value of this shape: one in reach, or a new input, which is in reach from everywhere; a parameter where it would not be."""
        found = None if self.choices.chance(30) else self.find_value(lambda var: var.shape == shape)
        if found is not None:
            return found
        if not self.may_be_fed(shape):
            return self.parameter(self.width, *(size for size in shape if isinstance(size, int)))
        with self.program.main:
            return self.input(*shape)

    def _numbers(self, shape: Sequence[Size]) -> list[int]:
        return [size if isinstance(size, int) else self.sizes[size] for size in shape]

    # Blocks

    @contextmanager
    def inside(self, kind: str, cut: Size | None = None, *, runs: bool = True) -> Iterator[None]:
        """Write what follows inside a block of a construct of this kind, which cuts a size into rows, and may run or never does."""
        if self.kinds:
            self.features.add(f"{kind} in {self.kinds[-1]}")
        self.kinds.append(kind)
        self.features |= {kind, f"depth {len(self.kinds)}"}
        if isinstance(cut, str):
            self._cut.append((cut, set(current_block().enclosing())))
            self._cutters.append(kind)
        with self.where(runs):
            yield
        if isinstance(cut, str):
            self._cut.pop()
            self._cutters.pop()
        self.kinds.pop()

    @contextmanager
    def where(self, runs: bool) -> Iterator[None]:
        """Write what follows where it may run, or never does."""
        before, self.runs = self.runs, self.runs and runs
        yield
        self.runs = before


def _is_stepped_through(size: Size) -> bool:
    """Whether a loop around steps through what has this size in front."""
    loops = [block.stand_in.__self__ for block in current_block().enclosing() if block.stand_in is not None]
    return any(size == (next(iter(loop._sequences)).shape[0] if loop._sequences else STEPS) for loop in loops)


def _stands_for_its_step(var: ol.Var) -> bool:
    """Whether a loop around, in which `var` is from outside, steps through it: then it has another type here."""
    around = list(current_block().enclosing())
    loops = [block.stand_in.__self__ for block in around[: around.index(var.block)] if block.stand_in is not None]
    return any(is_stepped(var, loop._sequences, loop._around) for loop in loops)


def is_cut_in_front(shape: Shape, size: Size) -> bool:
    """Whether a shape has a size in front, and nowhere else."""
    return bool(shape) and shape[0] == size and not _has_within(shape, size)


def _has_within(shape: Shape, size: Size) -> bool:
    """Whether a shape has a size elsewhere than as the whole of its first dimension."""
    return any(item != size or number for number, item in enumerate(shape) if names_in(item) & names_in(size))
