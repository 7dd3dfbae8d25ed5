"""One trial: a use of an operator, the axis whose size is changed, and how the program hides the change."""

from dataclasses import dataclass, field
from functools import cache

import torch
from numpy.random import default_rng

import oarlock as ol
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.size import Size
from oarlock.ir.var import Var
from oarlock.tensor.dtype import from_torch
from wrong_sizes.uses import OPERATORS, Position, SlotAxis, positions

__all__ = ["Trial", "Written", "draw", "write"]

CHANGES = ("shorter", "longer", "one", "far longer", "none")
SOURCES = ("fed", "values", "parameter")
OTHERS = ("numbers", "symbols", "values")
Tensors = dict[str, list[torch.Tensor]]


@dataclass(frozen=True)
class Trial:
    """The change. `source` is where the size is known from, `others` where those of the other arguments are.

    With `whole`, symbols stand for sizes of 1 too.
    """

    number: int
    axis: SlotAxis
    position: Position
    change: str
    source: str
    others: str
    training: bool
    whole: bool

    def __str__(self) -> str:
        use, slot, item, dimension = self.position
        return f"{use.name}: {slot}.{item}, dimension {dimension} ({self.axis.axis}) {self.change}, {self.source} beside {self.others}" + (
            ", training" if self.training else ""
        )


@dataclass
class Written:
    """The program and its values. `before` is a feed that fits, where there is one."""

    program: ol.Program = field(default_factory=lambda: ol.Program(seed=7))
    feed: dict[str, torch.Tensor] = field(default_factory=dict)
    before: dict[str, torch.Tensor] = field(default_factory=dict)
    state: dict[str, torch.Tensor] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """The symbols known only from values."""
    results: list[Var] = field(default_factory=list)
    gradients: list[Var] = field(default_factory=list)


def draw(seed: int, number: int, only: str | None = None) -> Trial:
    """Trial `number`. Axes come in turn, so that as many trials as there are axes reach all of them."""
    generator = default_rng((seed, number))
    twin = only is None and number % 5 == 4  # one of five is of a function of PyTorch, or of several operators
    at = number if only is not None else number // 5 if twin else number - number // 5
    found = _in_random_order(seed, only, twin)
    axis = found[at % len(found)]
    several = positions()[axis]
    position = several[generator.integers(len(several))]
    change = generator.choice(CHANGES, p=(0.3, 0.3, 0.15, 0.15, 0.1))
    source = generator.choice(SOURCES, p=(0.35, 0.3, 0.35))
    others = generator.choice(OTHERS, p={"fed": (0.7, 0.15, 0.15), "values": (0.6, 0.3, 0.1), "parameter": (0.1, 0.65, 0.25)}[source])
    return Trial(
        number, axis, position, str(change), str(source), str(others), bool(generator.random() < 0.5), bool(generator.random() < 0.4)
    )


@cache
def _in_random_order(seed: int, only: str | None, twins: bool) -> list[SlotAxis]:
    found = [each for each in positions() if (each.operator == only if only is not None else (each.operator in OPERATORS) != twins)]
    return [found[number] for number in default_rng(seed).permutation(len(found))]


def changed_size(size: int, change: str) -> int:
    """The size that stands where `size` is expected."""
    if change == "none":
        return size
    if change == "far longer":
        return size + 50
    if change == "shorter" and size > 0:
        return size - 1
    if change == "one" and size > 1:
        return 1
    return size + 1


def resized(tensor: torch.Tensor, dimension: int, size: int) -> torch.Tensor:
    """The first `size` slices along a dimension; the last one again where there are fewer, zeros where there is none."""
    if not tensor.shape[dimension]:
        return tensor.new_zeros([size if number == dimension else old for number, old in enumerate(tensor.shape)])
    return tensor.index_select(dimension, torch.arange(size).clamp(max=tensor.shape[dimension] - 1))


def write(trial: Trial, *, known: bool = False, fits: bool = False) -> Written:
    """Write the program of a trial; `known`, with every size as a number; if it `fits`, without the change. Raises OarlockError."""
    use = trial.position.use
    arguments = use.arguments()
    writing = _Writing(trial, arguments.tensors, known, fits)
    with writing.written.program as program:
        inputs = {slot: [writing.given(slot, number) for number in range(len(items))] for slot, items in arguments.tensors.items()}
        before = len(program.main.ops)
        returned = use.write(inputs, dict(arguments.attributes))
        made = [var for op in program.main.ops[before:] for var in op.writes if not op.is_commit]
        results = [var for var in _flat(returned) if var in {*made}] or made
        writing.written.results = [_finished(var) for var in results]
        if trial.training:
            _differentiate(writing.written, inputs)
    program.changed()
    return writing.written


def _flat(value: object) -> list[Var]:
    if isinstance(value, Var):
        return [value]
    return [var for item in value for var in _flat(item)] if isinstance(value, list | tuple) else []


def _finished(var: Var) -> Var:
    """The variable once workers have written it."""
    return ol.op.all_reduce_done(var, [var])[0] if var.op is not None and var.op.type == "all_reduce_start" else var


def _differentiate(written: Written, inputs: dict[str, list[Var]]) -> None:
    """Append the gradients of the sum of squares with respect to what is fed, and an update of the parameters, if there are gradients."""
    program = written.program
    if any(op.is_commit for op in program.main.ops):
        return
    leaves = [var for var in (*program.main.inputs, *program.persistables()) if var.dtype.is_floating]
    for var in leaves:
        var.stop_gradient = False
    try:
        with undone_on_error(program):
            costs = [ol.op.reduce_sum(var * var) for var in written.results if var.dtype.is_floating and var.shape is not None]
            parameters = [var for var in leaves if var.persistable]
            if costs:
                written.gradients = [var for var in ol.gradients(costs, leaves) if var is not None]
            if costs and parameters:
                total = costs[0]
                for cost in costs[1:]:
                    total = total + cost
                ol.optimizer.SGD(0.1).minimize(total, parameters)
    except ol.OarlockError:
        written.gradients = []


class _Writing:
    """The arguments of the use as variables."""

    def __init__(self, trial: Trial, tensors: Tensors, known: bool, fits: bool):
        self.trial = trial
        self.tensors = tensors
        self.known = known
        self.written = Written()
        _, slot, item, dimension = trial.position
        self.size = tensors[slot][item].shape[dimension]
        self.changed = self.size if fits else changed_size(self.size, trial.change)
        self.rows: Var | None = None  # the rows that are taken, where sizes are known from values

    def given(self, slot: str, item: int) -> Var:
        tensor, name, trial = self.tensors[slot][item], f"{slot}.{item}", self.trial
        _, its_slot, its_item, dimension = trial.position
        if (slot, item) != (its_slot, its_item):
            return self._other(name, tensor)
        value = resized(tensor, dimension, self.changed)
        shape = self._shape(tensor, trial.others == "symbols")
        if trial.source == "values" and not self.known:
            return self._taken(name, tensor, dimension, self.changed, shape)
        shape[dimension] = "odd" if trial.source == "fed" and not self.known else self.changed
        if trial.source == "parameter":
            return self._parameter(name, value, shape)
        return self._fed(name, value, tensor, shape)

    def _other(self, name: str, tensor: torch.Tensor) -> Var:
        dimension = next((number for number, size in enumerate(tensor.shape) if size == self.size), None)
        if self.trial.others == "values" and dimension is not None and not self.known:
            if self.trial.source == "values":  # a size of its own, as the size that is changed has
                return self._fed(name, tensor, tensor, [f"{name.replace('.', '_')}_{axis}" for axis in range(tensor.ndim)])
            return self._taken(name, tensor, dimension, self.size, self._shape(tensor, False))
        return self._fed(name, tensor, tensor, self._shape(tensor, self.trial.others == "symbols"))

    def _shape(self, tensor: torch.Tensor, symbols: bool) -> list[Size]:
        """The sizes as they are declared: equal ones by one symbol."""
        least = 1 if self.trial.whole else 2
        return [f"d{size}" if symbols and not self.known and size >= least else size for size in tensor.shape]

    def _fed(self, name: str, value: torch.Tensor, before: torch.Tensor, shape: list[Size]) -> Var:
        self.written.feed[name], self.written.before[name] = value, before
        return ol.layer.data(name, shape, str(from_torch(value.dtype)), batch=None)

    def _parameter(self, name: str, value: torch.Tensor, shape: list[Size]) -> Var:
        self.written.state[name] = value
        main = self.written.program.main
        if any(isinstance(size, str) for size in shape):  # of a parameter, all sizes are numbers
            shape = list(value.shape)
        dtype = from_torch(value.dtype)
        assert dtype is not None
        return main.new_var(name, dtype, tuple(shape), persistable=True, stop_gradient=not value.is_floating_point())

    def _taken(self, name: str, tensor: torch.Tensor, dimension: int, count: int, shape: list[Size]) -> Var:
        """The tensor with `count` slices along a dimension: the rows of a longer one that a condition chooses."""
        most = max(self.size, self.changed) + 1
        if self.rows is None:
            chosen = self._fed("chosen", torch.arange(most) < count, torch.arange(most) < self.size, [most])
            self.rows = ol.op.nonzero(chosen)
            self.written.sizes[str((self.rows.shape or ("",))[0])] = count
        turned = [dimension, *(number for number in range(tensor.ndim) if number != dimension)]
        longer = resized(tensor, dimension, most).permute(turned).contiguous()
        bank = self._fed(f"{name}.all", longer, longer, [most, *(shape[number] for number in turned[1:])])
        taken = ol.op.gather(bank, self.rows)
        return taken if dimension == 0 else ol.op.transpose(taken, axes=tuple(turned.index(number) for number in range(tensor.ndim)))
