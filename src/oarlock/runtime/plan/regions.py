"""Regions: runs of ops of one block that do nothing but launch kernels, which something else than the lines of a plan may run at once."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from typing import NamedTuple

import torch

from oarlock.backend.torch.private import fake_tensors
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.size import evaluate, names_in
from oarlock.ir.var import Var, is_among
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.value_checks import checks_values
from oarlock.runtime.plan.liveness import Liveness
from oarlock.runtime.plan.numbers import Numbers
from oarlock.tensor.dtype import to_torch

__all__ = ["Region", "Training", "find_regions", "is_known"]

_SOME_SIZE = 64  # of what has no number: large enough for a window to fit


class Region(NamedTuple):
    """The ops with the numbers from `start` to `stop`, of which `ops` launch kernels; what others there compute is made ahead of them.

    It takes the values of `reads` and the shapes of `shapes`, gives the values of `writes`, and the shapes of `shapes_left`, whose values
    nobody asks for.
    """

    start: int
    stop: int
    ops: Sequence[Op]
    reads: Sequence[Var]
    shapes: Sequence[Var]
    writes: Sequence[Var]
    shapes_left: Sequence[Var]


def find_regions(
    ops: Sequence[Op],
    liveness: Liveness,
    catalogue: Catalogue,
    numbers: Numbers,
    device: torch.device,
    *,
    made_once: AbstractSet[Var] = frozenset(),
    is_even: Callable[[Var], bool] = lambda var: True,
    wanted: Iterable[Var] = (),
    apart: Callable[[Op], bool] = lambda op: False,
    stop: int | None = None,
    at_least: int = 1,
) -> list[Region]:
    """The regions among the first `stop` of `ops`, each as long as can be and of `at_least` so many ops.

    Before: `a = matmul(x, w)`, `b = tanh(a)`, `c = dropout(b)`, `d = matmul(c, v)`. After: a region of two ops that takes `x` and `w` and
    gives `b`; a line; a region of one.

    Legality. An op belongs to one if it is of ours, has no blocks and no effects; cannot refuse values; asks the host for nothing: no
    attribute is a variable, no value a number of the plan, and its kernel runs where tensors have types and no values, where all it may
    know is whether this is training and, of inputs that the host has, single bools (`is_known`); these come from before the region. What
    it reads and writes is a tensor, which no uneven stack is. What is `made_once`, or a number that nobody computes, stands ahead of a
    region and splits none. A value leaves a region if an op after it reads it, if it stays, or is `wanted`; in a region no value needs
    memory of its own. Ops that are to stand `apart` are lines too.

    Cost. Each type of op, with its attributes and types, is tried once, without values: milliseconds.
    """
    probe = _Probe(catalogue, device)
    wanted = set(wanted)

    def is_passed_over(op: Op) -> bool:
        return any(var in made_once or numbers.vanishes(var) for var in op.writes)

    def launches_only(op: Op) -> bool:
        operator = catalogue.get(op.type)
        return (
            operator.is_trusted
            and not apart(op)
            and not (operator.effects or op.blocks or checks_values(operator, op))
            and not any(isinstance(value, Var) for value in op.attributes.values())
            and not any(numbers.has(var) or numbers.vanishes(var) for var in (*op.reads, *op.writes))
            and all(map(is_even, (*op.reads, *op.writes)))
            and probe.runs(op)
        )

    regions: list[Region] = []
    run: list[int] = []
    made_here: set[Op | None] = set()

    def end() -> None:
        if len(run) >= max(1, at_least):
            regions.append(_region(ops, run, liveness, catalogue, wanted))
        run.clear()
        made_here.clear()

    for number, op in enumerate(ops[:stop]):
        if is_passed_over(op):
            continue
        if not launches_only(op):
            end()
            continue
        if any(is_known(var, device) and var.op in made_here for var in op.reads):
            end()
        run.append(number)
        made_here.add(op)
    end()
    return regions


def _region(ops: Sequence[Op], numbers: Sequence[int], liveness: Liveness, catalogue: Catalogue, wanted: AbstractSet[Var]) -> Region:
    """The region of the ops with these numbers."""
    last, mine = numbers[-1], [ops[number] for number in numbers]
    made = dict.fromkeys(var for op in mine for var in op.writes)
    reads: dict[Var, None] = {}
    shapes: dict[Var, None] = {}
    for op in mine:
        for slot in catalogue.get(op.type).signature.inputs:
            (shapes if slot.shape_only else reads).update((var, None) for var in op.inputs.get(slot.name, ()) if var not in made)
    writes = [var for var in made if liveness.end(var) > last or var in wanted]
    left = [var for var in made if not is_among(var, writes) and liveness.needs_shape_after(var, last)]
    return Region(numbers[0], last + 1, mine, list(reads), [var for var in shapes if var not in reads], writes, left)


def is_known(var: Var, device: torch.device) -> bool:
    """Whether whoever runs a region may ask what the value of `var`, which it reads, is: a bool that lies where the host does."""
    return device.type == "cpu" and var.dtype is DType.BOOL and var.shape == ()


class Training(NamedTuple):
    """The facts that a kernel in a region may know of its run."""

    training: bool


class _Probe:
    """Whether kernels run without the values of their inputs, as whoever records what they launch must be able to run them."""

    def __init__(self, catalogue: Catalogue, device: torch.device):
        self._catalogue = catalogue
        self._device = device
        self._mode: AbstractContextManager[object] | None = None
        self._found: dict[object, bool] = {}

    def runs(self, op: Op) -> bool:
        key = (
            op.type,
            tuple((name, repr(value)) for name, value in op.attributes.items()),
            tuple((slot, tuple((var.dtype, var.shape) for var in vars)) for slot, vars in op.inputs.items()),
        )
        if key not in self._found:
            self._found[key] = all(self._runs(op, Training(training), known) for training in (False, True) for known in (False, True))
        return self._found[key]

    def _runs(self, op: Op, context: Training, known: bool) -> bool:
        """Whether the kernel of `op` runs, where all its bools that are known are `known`."""
        try:
            if self._mode is None:
                self._mode = fake_tensors(constants=True)
            with torch.no_grad(), self._mode, self._device:  # what kernels make of nothing is there too
                operator = self._catalogue.get(op.type)
                operator.run(op, lambda var: self._value(var, known), lambda var: self._value(var, known).shape, context)
        except Exception:  # what it is does not matter: it runs as a line of the plan, which reports what it must
            return False
        return True

    def _value(self, var: Var, known: bool) -> torch.Tensor:
        if is_known(var, self._device):
            return torch.tensor(known)
        sizes = [_number(size) for size in var.shape or ()]
        return torch.empty(sizes, dtype=to_torch(var.dtype), device=self._device)


def _number(size: int | str) -> int:
    number = evaluate(size, dict.fromkeys(names_in(size), _SOME_SIZE))
    assert number is not None
    return number
