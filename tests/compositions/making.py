"""Writing a random composition: whatever fits what is there already."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import numpy

import oarlock as ol
import oarlock.op.update
from oarlock.ir.block_stack import current_block
from oarlock.ir.rollback import undone_on_error
from oarlock.registry import Case, GradCheck, Operator, standard
from oarlock.registry.collective import ENDED_BY
from oarlock.registry.dtype_class import CLASSES
from oarlock.registry.signature import Slot

__all__ = ["Composition", "make"]

ATTEMPTS = 40  # how often arguments are drawn for an op before there is none
KINDS = ("line", "line", "loop", "branches")
SHAPES = (("n", 3), ("n", 2, 3), (3,), ("n",), (), (2, 3), ("n", 3, 2, 2), (3, 3), ("n", 1))


@dataclass
class Composition:
    """A program, what it is fed, what is looked at, and what gradients are wanted for."""

    program: ol.Program
    feed: dict[str, numpy.ndarray]
    made: list[str] = field(default_factory=list)
    """The outputs of the ops of the main block, in their order."""
    gradients: list[str] = field(default_factory=list)


def make(seed: int, number: int) -> Composition:
    """The composition of that number; it depends on the two numbers alone."""
    return _Writing(Random(f"{seed} {number}")).write()


@cache
def _operators() -> list[Operator]:
    """Those that a user may call: no gradients, nothing that owns blocks, and no exchange that another op must end."""
    operators = [each for each in standard if each.forward is None and not each.block_attributes and each.type not in ENDED_BY]
    return [each for each in operators if not each.type.endswith("_grad")]


@cache
def _attributes(operator: Operator) -> list[dict[str, object]]:
    """The attributes of the operator's cases."""
    cases = [case for case in operator.cases if isinstance(case, Case | GradCheck)]
    found = [{name: value for name, value in case.values.items() if name in operator.attributes} for case in cases]
    return [{}, *found]


class _Writing:
    def __init__(self, random: Random):
        self.random = random
        self.program = ol.Program(seed=random.randrange(99))
        self.caution = random.choice((1.0, 1.0, 0.8))  # how seldom operators stand there that refuse values
        self.feed: dict[str, numpy.ndarray] = {}
        self.sizes = {"n": random.choice((3, 3, 3, 2, 1, 0)), "t": random.choice((3, 3, 2, 1, 0))}  # as others too, or not

    def write(self) -> Composition:
        kind = self.random.choice(KINDS)
        with self.program:
            pool = [self._leaf(self.random.choice(SHAPES)) for _ in range(self.random.randint(2, 4))]
            pool += [self._leaf(("n",), "int64"), self._leaf(("n", 3), "bool")]
            pool += self._ragged() if self.random.random() < 0.3 else []
            self._ops(pool, self.random.randint(1, 6))
            if kind == "loop":
                self._loop(pool)
            elif kind == "branches":
                self._branches(pool)
            self._ops(pool, self.random.randint(1, 6))
            leaves = [var for var in self.program.main.inputs if var.dtype.is_floating]
            costs = [ol.op.reduce_sum(var * var) for var in pool[-4:] if var.dtype.is_floating and not any(var is leaf for leaf in leaves)]
            made = [var.name for op in self.program.main.ops for var in op.writes]
            wanted = self._gradients(costs, leaves)
        return Composition(self.program, self.feed, made, wanted)

    def _gradients(self, costs: Sequence[ol.Var], leaves: Sequence[ol.Var]) -> list[str]:
        """The gradients of the sum of some costs; none where an operator on the way has none."""
        if not costs:
            return []
        for leaf in leaves:
            leaf.stop_gradient = False
        try:
            with undone_on_error(self.program):
                found = ol.gradients(list(costs), list(leaves))
        except ol.OarlockError:
            return []
        return [var.name for var in found if var is not None]

    def _leaf(self, shape: Sequence[int | str], dtype: str = "float64") -> ol.Var:
        name = self.program.unique("x")
        var = ol.layer.data(name, list(shape), dtype, batch=None)
        numbers = [self.sizes.get(size, size) for size in shape]
        generator = numpy.random.default_rng(self.random.randrange(2**30))
        values = generator.uniform(-2.0, 2.0, numbers)
        self.feed[name] = values if dtype == "float64" else values > 0.0 if dtype == "bool" else generator.integers(0, 2, numbers)
        return var

    def _ragged(self) -> list[ol.Var]:
        """Ragged ids of one to three dimensions, where their sequences end, and bags of rows of a table by them."""
        name, shape = self.program.unique("x"), self.random.choice(([2], [2], [3], [], [2, 3]))
        ids = ol.layer.data(name, shape, "int64", ragged=1)
        generator = numpy.random.default_rng(self.random.randrange(2**30))
        lengths = generator.integers(0, 3, self.sizes["n"])
        self.feed[f"{name}.splits"] = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype("int64")
        self.feed[name] = generator.integers(0, 2, (lengths.sum(), *shape))
        mode = self.random.choice(("mean", "sum", "max"))
        found = ol.layer.embedding_bag(ids, (2, 3), dtype="float64", mode=mode)
        return [ids, self.program.main.var(f"{name}.splits"), found]

    def _ops(self, pool: list[ol.Var], count: int) -> None:
        """Append ops on what is in the `pool`, and put there what they give; at times, a constant beside them, or as a part of them."""
        for _ in range(count):
            if self.random.random() < 0.1:
                pool += self._constant_parts(pool)
            for _ in range(ATTEMPTS):
                operator = self.random.choice(_operators())
                if self._try(operator, pool):
                    break

    def _try(self, operator: Operator, pool: list[ol.Var]) -> bool:
        if operator.effects == "collective" and current_block() is not self.program.main:
            return False  # what is fed is a worker's own, and says how often blocks run
        if operator.checks_values and self.random.random() < self.caution:
            return False
        attributes = dict(self.random.choice(_attributes(operator)))
        for name, value in attributes.items():
            if isinstance(value, int) and not isinstance(value, bool) and self.random.random() < 0.3:
                attributes[name] = value + self.random.choice((-1, 1))
        if operator.effects and "dtype" in operator.attributes:
            attributes.setdefault("dtype", "float64")  # as all others: what is computed of them is compared in that
        arguments = {slot.name: self._argument(slot, pool) for slot in operator.signature.inputs}
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            with undone_on_error(self.program):
                found = operator(**given, **attributes)
        except (ol.OarlockError, TypeError):
            return False
        pool += [var for item in (found if isinstance(found, tuple) else (found,)) for var in (item if isinstance(item, list) else [item])]
        return True

    def _constant_parts(self, pool: Sequence[ol.Var]) -> list[ol.Var]:
        """A constant of the type of something in the pool, where that has numbers for sizes; and its concatenation with that."""
        static = [var for var in pool if var.shape and all(isinstance(size, int) for size in var.shape) and var.dtype.is_floating]
        if not static:
            return []
        like = self.random.choice(static)
        constant = ol.op.full(shape=like.shape, value=0.5, dtype=like.dtype)  # type: ignore[arg-type]
        return [constant, ol.op.concat([ol.op.tanh(like), constant], axis=self.random.choice((-1, 0)))]

    def _argument(self, slot: Slot, pool: Sequence[ol.Var]) -> Any:
        if slot.optional and self.random.random() < 0.5:
            return None
        fitting = [var for var in pool if _fits(slot.dtype, var)] or list(pool)
        recent = fitting[-3:] if self.random.random() < 0.6 else fitting
        if slot.variadic:
            return [self.random.choice(recent) for _ in range(self.random.randint(1, 3))]
        return self.random.choice(recent)

    def _loop(self, pool: list[ol.Var]) -> None:
        """A recurrent loop with ops in its step, a memory where one fits, and some of what the step makes as its results."""
        sequences = [self._leaf(("t", *self.random.choice(SHAPES)[:3])) for _ in range(self.random.randint(1, 2))]
        rnn = ol.rnn()
        with rnn.step():
            inside = [rnn.step_input(sequence) for sequence in sequences]
            begin = self.random.choice([var for var in pool if var.dtype.is_floating and var.shape is not None])
            memory = rnn.memory(init=begin)
            previous = rnn.previous_memory(memory)
            step = [*self.random.sample(pool, min(len(pool), 3)), *inside, previous]
            before = len(step)
            self._ops(step, self.random.randint(2, 6))
            made = step[before:]
            following = [var for var in made if (var.dtype, var.shape) == (previous.dtype, previous.shape)]
            rnn.update_memory(memory, self.random.choice(following) if following else previous * 0.5 + 0.25)
            for var in [*made[-3:], previous * 2.0]:
                with suppress(ol.ShapeError):  # it has another size in each trip
                    rnn.output(var)
        found = rnn()
        pool += list(found) if isinstance(found, tuple) else [found]

    def _branches(self, pool: list[ol.Var]) -> None:
        """Rows that take one of two branches, by a condition on one number of each."""
        condition = self._leaf(("n", 1), "bool")
        rows = [var for var in pool if var.shape is not None and var.shape[:1] == ("n",)]
        ifelse = ol.ifelse()
        widths: list[Any] = []
        for block in (ifelse.true_block, ifelse.false_block):
            with block():
                inside = [ifelse.input(var) for var in self.random.sample(rows, min(len(rows), 3))]
                self._ops(inside, self.random.randint(1, 5))
                made = [var for var in inside if var.shape is not None and var.shape[:1] == inside[0].shape[:1]]
                if not widths:
                    plain = [var for var in made if all(isinstance(size, int) for size in var.shape[1:])]  # type: ignore[index]
                    widths.append(self.random.choice(plain[-3:]))
                    ifelse.output(widths[0])
                else:
                    alike = [var for var in made if (var.dtype, var.shape[1:]) == (widths[0].dtype, widths[0].shape[1:])]  # type: ignore[index]
                    ifelse.output(alike[-1] if alike else self._constant(inside[0], widths[0]))
        found = ifelse(condition)
        pool += list(found) if isinstance(found, tuple) else [found]

    def _constant(self, rows: ol.Var, like: ol.Var) -> ol.Var:
        """Rows of the type of `like`, as many as `rows`."""
        value = ol.op.full_batch_size_like(rows, shape=like.shape[1:], value=1.0, dtype="float64")  # type: ignore[index]
        return value if like.dtype is value.dtype else ol.op.cast(value, dtype=like.dtype)


def _fits(dtype: str, var: ol.Var) -> bool:
    if dtype in CLASSES:
        return CLASSES[dtype][1](var.dtype)
    return len(dtype) == 1 or dtype in ("any", "shape") or dtype == str(var.dtype)
