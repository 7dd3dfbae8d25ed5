"""One trial: a use of an operator, spoilt, as a program and what it is given."""

from dataclasses import dataclass, field

import torch
from numpy.random import Generator, default_rng
from op.arguments import symbol

import oarlock as ol
from hostile_values.spoiling import EVIL_FLOATS, evil_number, lie, spoil
from hostile_values.uses import USES, Use
from oarlock.tensor.dtype import from_torch

__all__ = ["EXECUTORS", "Trial", "make"]

LIMITS = ol.RunLimits(trips=200, ops=5_000, live_bytes=2**28, seconds=10.0)
EXECUTORS = {
    "interpreter": ol.Executor(interpret=True),
    "plan": ol.Executor(),
    "plain": ol.Executor(passes=()),
    "limits": ol.Executor(limits=LIMITS),
}


@dataclass
class Trial:
    """The program, or why none could be written; and what it is run on."""

    name: str
    program: ol.Program = field(default_factory=ol.Program)
    feed: dict[str, torch.Tensor] = field(default_factory=dict)
    state: dict[str, torch.Tensor] = field(default_factory=dict)
    lies: bool = False
    training: bool = True
    refused: str = ""

    def run(self, executor: str) -> str:
        """The name of the error that it ran into, or "ran". Raises what is no error of ours."""
        scope = ol.Scope()
        for name, value in self.state.items():
            scope.set(name, value)
        try:
            ol.init(self.program, scope, only=[var for var in self.program.persistables() if var.name not in self.state])
            fetch = [var for op in self.program.main.ops if not op.is_commit for var in op.writes]
            EXECUTORS[executor].run(self.program, self.feed, fetch, scope=scope, training=self.training, return_numpy=False)
        except ol.OarlockError as error:
            return type(error).__name__
        assert not self.lies, "state of another type was taken"
        return "ran"


def make(seed: int, number: int) -> Trial:
    """Trial number `number`: each use comes by turns, so that as many trials as there are uses reach every operator."""
    generator = default_rng((seed, number))
    use = USES[number % len(USES)]
    trial = Trial(use.name, training=bool(generator.random() < 0.7))
    try:
        _write(trial, use, generator)
    except ol.OarlockError as error:
        trial.refused = type(error).__name__
    return trial


def _write(trial: Trial, use: Use, generator: Generator) -> None:
    arguments = use.arguments()
    tensors = arguments.tensors
    if use.operator is not None and generator.random() < 0.15:  # numbers of a kind that no case has
        tensors = {slot: [item.to(torch.int64) if item.is_floating_point() else item for item in items] for slot, items in tensors.items()}
    sizes = sorted({size for items in tensors.values() for item in items for size in item.shape})
    attributes = dict(arguments.attributes)
    if use.operator is not None and attributes and generator.random() < 0.15:
        _spoil_attribute(attributes, generator, sizes)
    whole = [slot for slot, items in tensors.items() if not items or not items[0].is_floating_point()]
    spoilt = {slot for slot in tensors if generator.random() < (0.8 if slot in whole else 0.3)}
    if generator.random() < 0.1:  # all is well but the state
        spoilt = set()
    symbols = bool(generator.random() < 0.5)
    with trial.program:
        inputs: dict[str, list[ol.Var]] = {}
        for slot, items in tensors.items():
            inputs[slot] = []
            for number, item in enumerate(items):
                value = spoil(item, slot, generator, sizes) if slot in spoilt else item
                inputs[slot].append(_given(trial, f"{slot}.{number}", value, generator, symbols))
        use.write(inputs, attributes)
    trial.program.changed()
    if any(op.is_commit for op in trial.program.main.ops) and generator.random() < 0.7:
        _lie_in_state(trial, generator)


def _given(trial: Trial, name: str, value: torch.Tensor, generator: Generator, symbols: bool) -> ol.Var:
    """A variable that is fed the value, finds it in the scope, or is computed as a constant."""
    dtype, way = from_torch(value.dtype), generator.random()
    if way < 0.2:
        var = trial.program.main.new_var(name, dtype, tuple(value.shape), persistable=True, stop_gradient=True)
        trial.state[name] = value
        if generator.random() < 0.3:
            trial.state[name], trial.lies = lie(value, generator), True
        return var
    if way < 0.3 and value.numel() and not value.is_complex() and bool((value == value.reshape(-1)[0]).all()):
        return ol.op.full(shape=tuple(value.shape), value=float(value.reshape(-1)[0]), dtype=dtype)
    trial.feed[name] = value
    return ol.layer.data(name, [symbol(size) if symbols else size for size in value.shape], str(dtype), batch=None)


def _spoil_attribute(attributes: dict[str, object], generator: Generator, sizes: list[int]) -> None:
    name = sorted(attributes)[generator.integers(len(attributes))]
    value = attributes[name]
    if isinstance(value, bool):
        attributes[name] = not value
    elif isinstance(value, int):
        attributes[name] = evil_number(generator, sizes)
    elif isinstance(value, float):
        attributes[name] = EVIL_FLOATS[generator.integers(len(EVIL_FLOATS))]
    elif isinstance(value, tuple):
        attributes[name] = tuple(evil_number(generator, sizes) if generator.random() < 0.5 else item for item in value)


def _lie_in_state(trial: Trial, generator: Generator) -> None:
    """Replace a value of the optimizer's state in the scope with another than it left there."""
    vars = trial.program.persistables()
    var = vars[generator.integers(len(vars))]
    good = torch.zeros([size for size in var.shape or () if isinstance(size, int)], dtype=getattr(torch, str(var.dtype)))
    trial.state[var.name], trial.lies = lie(good, generator), True
