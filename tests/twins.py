"""Control flow written once, over `Ours` (a program) and `Theirs` (eager PyTorch under autograd), and held to agree.

A function `write(f, v)` computes a list of values from the named variables of `v` by the operations of `f`. What it gives, its
first and its second derivatives are compared, and the first with central differences too.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import ClassVar

import numpy
import torch
from tolerances import AUTOGRAD, FINITE_DIFFERENCE_STEP, FINITE_DIFFERENCES

import oarlock as ol

__all__ = ["Ours", "Theirs", "Twins", "agree", "run"]


def agree(actual, expected, tolerance=AUTOGRAD):
    numpy.testing.assert_allclose(actual, expected, rtol=tolerance[0], atol=tolerance[1])


CHECKED = ol.Executor(check=True)
"""One for all runs, so that what is run again is prepared once."""


def run(program, feed, fetch, scope=None):
    """The values of one run, each compared with what the program declares."""
    return CHECKED.run(program, feed, fetch, scope=ol.Scope() if scope is None else scope)


def as_list(value):
    return list(value) if isinstance(value, tuple) else [value]


class Ours:
    """Operations of a program; blocks are written by functions."""

    tanh, sqrt, log, square, total = ol.op.tanh, ol.op.sqrt, ol.op.log, ol.op.square, ol.op.reduce_sum
    less, both, cast = ol.op.less, ol.op.logical_and, ol.op.cast
    loops: ClassVar[list[ol.layer.Recurrence]] = []

    @staticmethod
    def of_rows(x):
        return ol.op.reduce_sum(x, axis=1)

    @staticmethod
    def scan(sequence, memories, step):
        """(stacked outputs, final memories); `step(x, memories)` gives both. A loop inside another steps through all of a sequence too."""
        for loop in Ours.loops:
            sequence = loop.whole(sequence)
        rnn = ol.rnn()
        Ours.loops.append(rnn)
        with rnn.step():
            x = rnn.step_input(sequence)
            states = [rnn.memory(init=memory) for memory in memories]
            outputs, following = step(x, [rnn.previous_memory(state) for state in states])
            for state, value in zip(states, following, strict=True):
                rnn.update_memory(state, value)
            rnn.output(*outputs)
        Ours.loops.pop()
        return as_list(rnn()), [rnn.final_memory(state) for state in states]

    @staticmethod
    def repeat(holds, carried, trip):
        """(final values, stacked outputs); `trip(carried)` gives what follows and the outputs."""
        loop = ol.while_loop(holds(carried), max_trips=100)
        with loop.block():
            following, outputs = trip(carried)
            for var, value in zip(carried, following, strict=True):
                loop.carry(var, value)
            loop.update_condition(holds(following))
            loop.output(*outputs)
        results = as_list(loop())
        return results[: len(carried)], results[len(carried) :]

    @staticmethod
    def rows(condition, x, true, false):
        """The rows of `x` for which the condition holds by `true`, the others by `false`, in their order."""
        ie = ol.ifelse()
        with ie.true_block():
            ie.output(true(x if isinstance(x.shape[0], str) else ie.input(x)))
        with ie.false_block():
            ie.output(false(x if isinstance(x.shape[0], str) else ie.input(x)))
        return ie(condition)

    @staticmethod
    def switch(cases, default):
        """The value of the first of (condition, function) that holds; conditions after the first are functions too."""
        switch = ol.switch()
        for condition, function in cases:
            with switch.case(condition):
                switch.output(function())
        with switch.default():
            switch.output(default())
        return switch()


class Theirs:
    """The same, run at once by Python's own `for`, `while` and `if`."""

    tanh, sqrt, log, square, total = torch.tanh, torch.sqrt, torch.log, torch.square, torch.sum
    both = torch.logical_and

    @staticmethod
    def less(x, y):
        return x < y

    @staticmethod
    def cast(x, dtype):
        return x.to(dtype)

    @staticmethod
    def of_rows(x):
        return x.sum(1)

    @staticmethod
    def scan(sequence, memories, step):
        outputs = []
        for x in sequence:
            given, memories = step(x, memories)
            outputs.append(given)
        return [torch.stack(column) for column in zip(*outputs, strict=True)], memories

    @staticmethod
    def repeat(holds, carried, trip):
        stacks = []
        while holds(carried):
            assert len(stacks) < 100
            carried, outputs = trip(carried)
            stacks.append(outputs)
        return carried, [torch.stack(column) for column in zip(*stacks, strict=True)]

    @staticmethod
    def rows(condition, x, true, false):
        taken = [true(x[condition]), false(x[~condition])]
        order = torch.cat([torch.nonzero(condition).flatten(), torch.nonzero(~condition).flatten()])
        return torch.cat(taken)[torch.argsort(order)]

    @staticmethod
    def switch(cases, default):
        for condition, function in cases:
            if condition() if callable(condition) else condition:
                return function()
        return default()


class Twins:
    """A function over both; `arrays` are its variables, and `sizes` what their leading sizes are called where not by a number."""

    def __init__(self, write: Callable, arrays: Mapping[str, object], sizes: Mapping[str, str] | None = None):
        self.write = write
        self.arrays = {name: numpy.asarray(array) for name, array in arrays.items()}
        with ol.Program() as self.program:
            declared = {name: self._declare(name, array, (sizes or {}).get(name)) for name, array in self.arrays.items()}
            self.outputs = write(Ours, SimpleNamespace(**declared))
            self.wanted = [var for var in declared.values() if var.dtype.is_floating]
            self.cost = weigh(Ours, self.outputs)
            self.first = ol.gradients([self.cost], self.wanted)
            there = [gradient for gradient in self.first if gradient is not None]
            self.second = ol.gradients([weigh(Ours, there)], self.wanted)

    @staticmethod
    def _declare(name, array, leading):
        shape = array.shape if leading is None else (leading, *array.shape[1:])
        return ol.layer.data(name, shape=shape, dtype=str(array.dtype), batch=None)

    def agree(self, **arrays):
        """Values, first and second derivatives, by autograd; for these arrays in place of those given before."""
        given = self.arrays | {name: numpy.asarray(array) for name, array in arrays.items()}
        tensors = {name: torch.tensor(array, requires_grad=array.dtype.kind == "f") for name, array in given.items()}
        wanted = [tensors[var.name] for var in self.wanted]
        outputs = self.write(Theirs, SimpleNamespace(**tensors))
        cost = weigh(Theirs, outputs)
        zero = cost * 0 + sum((tensor * 0).sum() for tensor in wanted)  # so that each gradient exists, and is differentiable
        first = torch.autograd.grad(cost + zero, wanted, create_graph=True)
        there = [gradient for gradient, ours in zip(first, self.first, strict=True) if ours is not None]
        second = torch.autograd.grad(weigh(Theirs, there) + zero, wanted)
        ours = [*self.outputs, *self.first, *self.second]
        values = iter(run(self.program, given, [var for var in ours if var is not None]))
        for var, hoped in zip(ours, [*outputs, *first, *second], strict=True):
            hoped = hoped.detach().numpy()
            agree(numpy.zeros_like(hoped) if var is None else next(values), hoped)  # a gradient that is not there is zero

    def differ(self, **arrays):
        """First derivatives against central differences, along one random direction for each variable."""
        given = self.arrays | {name: numpy.asarray(array) for name, array in arrays.items()}
        random = numpy.random.default_rng(3)
        gradients = iter(run(self.program, given, [gradient for gradient in self.first if gradient is not None]))
        for var, gradient in zip(self.wanted, self.first, strict=True):
            direction = random.normal(size=given[var.name].shape)
            slope = 0.0 if gradient is None else (next(gradients) * direction).sum()
            costs = [
                run(self.program, given | {var.name: given[var.name] + sign * FINITE_DIFFERENCE_STEP * direction}, [self.cost])[0]
                for sign in (1, -1)
            ]
            agree((costs[0] - costs[1]) / (2 * FINITE_DIFFERENCE_STEP), slope, FINITE_DIFFERENCES)


def weigh(f, values):
    """One number that depends on every element in its own way."""
    total = None
    for number, value in enumerate(values):
        part = f.total(f.tanh(value * (number + 0.5))) + f.total(value) * 0.1
        total = part if total is None else total + part
    return total
