"""Steps of loops, every one of a grid: what a step reads that varies, beside what it computes of values from outside alone.

    PYTHONPATH=src:tests python -m generated.steps                    # all of them, on five sets of lengths each
    PYTHONPATH=src:tests python -m generated.steps --every 23         # each 23rd, as in CI

A pass that moves ops over the edge of a loop must know which values are the same in every trip and which are another one in each.
So there is a program for each `Variant`: each loop, with each value that varies, each that does not, each way to join the two, each
place for that. Its values and the gradients of every input, on rows of equal lengths, of uneven ones and of none, are the same by
PyTorch's autograd, by the interpreter, and by plans: without passes, after each pass alone, after all. What passes make is legal.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy
from tolerances import GENERATED_GRADIENTS, GENERATED_VALUES, PASSES_DIFFER

import oarlock as ol
from generated.evaluator import evaluate
from generated.rewriting import Rewritings
from generated.running import require_close, require_same, run
from oarlock.ir.verification import verify_program
from oarlock.passes.pipeline import PASSES
from oarlock.registry.catalogue import standard
from oarlock.registry.type_check import typecheck

__all__ = ["LENGTHS", "Variant", "check", "variants", "write"]

LENGTHS = {"equal": (2, 2, 2), "uneven": (3, 1, 2), "with empty rows": (0, 3, 0), "all empty": (0, 0, 0), "no rows": ()}
"""How many steps each row has. Loops over time have as many as the longest."""

LOOPS = ("ragged", "ragged, reversed", "dense", "while")

VARYING = ("step", "row", "column", "memory", "resting memory")
"""The values that vary with the iteration: a step of the sequence; a row from outside, of two numbers or of one, which ragged loops cut
to the rows that have a step; a memory; a memory that no iteration changes."""

FIXED: dict[str, Callable[[Mapping[str, ol.Var]], ol.Var]] = {
    "a number": lambda given: given["s"],
    "a product": lambda given: ol.op.multiply(given["s"], given["s"]),
    "a vector": lambda given: ol.op.tanh(given["v"]),
    "a matrix": lambda given: ol.op.tanh(given["m"]),
    "a sum": lambda given: ol.op.reduce_sum(ol.op.square(given["v"])),
    "a row": lambda given: ol.op.tanh(given["x"]),
}
"""The values that an iteration computes from outer values alone: of no dimension, of one, of two. The last has rows, and is cut to some."""

WAYS: dict[str, Callable[[ol.Var, ol.Var], ol.Var]] = {
    "multiply": ol.op.multiply,
    "subtract": lambda x, y: ol.op.subtract(y, x),
    "divide": lambda x, y: ol.op.divide(x, ol.op.add(ol.op.square(y), ol.op.full(shape=(), value=2.0, dtype="float64"))),
}


def _joined(x: ol.Var, y: ol.Var) -> ol.Var:
    return ol.op.concat([ol.op.tanh(x), ol.op.tanh(y)], axis=1)


def _split(x: ol.Var, y: ol.Var) -> ol.Var:
    one, other = ol.op.split(ol.op.concat([y, ol.op.tanh(y)], axis=1), sections=2, axis=1)
    return ol.op.multiply(one, other)


def _in_a_branch(x: ol.Var, y: ol.Var) -> ol.Var:
    rows = ol.ifelse()
    with rows.true_block():
        rows.output(_joined(x, y))
    with rows.false_block():
        rows.output(ol.op.concat([y, x] if x.shape == y.shape else [x, y], axis=1))
    return rows(ol.op.greater(ol.op.reduce_sum(y, axis=1), ol.op.full(shape=(), value=0.1, dtype="float64")))


def _in_a_case(x: ol.Var, y: ol.Var) -> ol.Var:
    large = ol.op.greater(ol.op.reduce_sum(y), ol.op.full(shape=(), value=0.1, dtype="float64"))
    return ol.cond(large, lambda: ol.op.multiply(y, y), lambda: ol.op.multiply(ol.op.tanh(y), x))


PLACES: dict[str, Callable[[ol.Var, ol.Var], ol.Var]] = {
    "as it is": lambda x, y: y,
    "joined": _joined,
    "split": _split,
    "in a branch": _in_a_branch,
    "in a case": _in_a_case,
}
"""The ways to go on from `y`, which was made of `x` and has its rows."""


@dataclass(frozen=True)
class Variant:
    """A point of the grid: one name of each of the tables above."""

    loop: str
    varying: str
    fixed: str
    way: str
    place: str

    def __str__(self):
        return f"{self.loop}: {self.way} {self.varying} and {self.fixed}, {self.place}"


def variants(every: int = 1) -> Iterator[Variant]:
    """Each `every`-th of the grid."""
    for number, names in enumerate(product(LOOPS, VARYING, FIXED, WAYS, PLACES)):
        if number % every == 0:
            yield Variant(*names)


# Programs


def write(variant: Variant) -> tuple[ol.Program, str]:
    """The program of a variant, and the name of the cost that it computes."""
    with ol.Program() as program:
        given = {
            "x": ol.layer.data("x", ["n", 2], "float64", batch=None),
            "u": ol.layer.data("u", ["n", 1], "float64", batch=None),
            "h": ol.layer.data("h", ["n", 2], "float64", batch=None),
            "s": ol.layer.data("s", [], "float64", batch=None),
            "v": ol.layer.data("v", [2], "float64", batch=None),
            "m": ol.layer.data("m", [1, 2], "float64", batch=None),
        }
        results = _WRITERS[variant.loop](variant, given)
        cost = ol.op.sum([ol.op.reduce_sum(ol.op.square(var)) for var in results])
    return program, cost.name


def differentiate(forward: ol.Program, cost: str) -> tuple[ol.Program, dict[str, str]]:
    """A copy of the program with the gradients of every input; and their names, by those of the inputs."""
    program = forward.clone()
    wanted = [var for var in program.main.inputs if var.dtype.is_floating and var.name != "trips"]
    found = ol.gradients([program.main.var(cost)], wanted)
    return program, {var.name: gradient.name for var, gradient in zip(wanted, found, strict=True) if gradient is not None}


def _trip(variant: Variant, x: ol.Var, given: Mapping[str, ol.Var]) -> ol.Var:
    return PLACES[variant.place](x, WAYS[variant.way](x, FIXED[variant.fixed](given)))


def _recurrence(variant: Variant, given: Mapping[str, ol.Var]) -> list[ol.Var]:
    if variant.loop == "dense":
        q = ol.layer.data("q", ["t", "n", 2], "float64", batch=None)
    else:
        q = ol.layer.data("q", [2], "float64", batch="n", ragged=1)
    rnn = ol.rnn(reverse="reversed" in variant.loop)
    memory = None
    with rnn.step():
        step = rnn.step_input(q)
        if "memory" in variant.varying:
            memory = rnn.memory(init=given["h"])
            x = rnn.previous_memory(memory)
        else:
            x = {"step": step, "row": given["x"], "column": given["u"]}[variant.varying]
        y = _trip(variant, x, given)
        if memory is not None:
            rnn.update_memory(memory, _following(x, y) if variant.varying == "memory" else x)
        rnn.output(y)
    results = [rnn()]
    return results if memory is None else [*results, rnn.final_memory(memory)]


def _while(variant: Variant, given: Mapping[str, ol.Var]) -> list[ol.Var]:
    trips = ol.layer.data("trips", [], "float64", batch=None)
    zero, one = (ol.op.full(shape=(), value=value, dtype="float64") for value in (0.0, 1.0))
    loop = ol.while_loop(ol.op.greater(trips, zero))
    with loop.block():
        x = given["u"] if variant.varying == "column" else given["x"] if variant.varying in ("step", "row") else given["h"]
        x = ol.op.multiply(x, trips) if variant.varying == "step" else x
        y = _trip(variant, x, given)
        if "memory" in variant.varying:
            loop.carry(given["h"], _following(x, y) if variant.varying == "memory" else ol.op.assign(x))
        left = ol.op.subtract(trips, one)
        loop.carry(trips, left)
        loop.update_condition(ol.op.greater(left, zero))
        loop.output(y)
    results = loop()
    return [results[-1], *results[:-2]] if "memory" in variant.varying else [results[-1]]


def _following(before: ol.Var, y: ol.Var) -> ol.Var:
    """The next value of a memory."""
    return ol.op.tanh(ol.op.add(before, ol.op.reduce_sum(y, axis=1, keepdim=True)))


_WRITERS = {**dict.fromkeys(LOOPS, _recurrence), "while": _while}


def arrays_of(program: ol.Program, lengths: Sequence[int]) -> dict[str, numpy.ndarray]:
    """Values of the inputs, where the rows have so many steps each."""
    random = numpy.random.default_rng(sum(lengths) + 10 * len(lengths))
    sizes = {"n": len(lengths), "t": max(lengths, default=0), "q.t": sum(lengths)}
    special = {"q.splits": numpy.concatenate([[0], numpy.cumsum(lengths)]).astype("int64"), "trips": numpy.array(float(sizes["t"]))}
    return {
        var.name: special[var.name]
        if var.name in special
        else random.uniform(-1.5, 1.5, size=[sizes.get(size, size) for size in var.shape])  # type: ignore[call-overload]
        for var in program.main.inputs
    }


# Checks


def check(variant: Variant, lengths: Iterable[str] = tuple(LENGTHS), passes: Iterable[str] = tuple(PASSES)) -> None:
    """Run the program of a variant in every way, after each of some `passes` alone, on rows of these `lengths`.

    Raises DisagreementError, or whatever the framework raises.
    """
    forward, cost = write(variant)
    program, gradients = differentiate(forward, cost)
    names = [cost, *gradients.values()]
    rewritings = Rewritings(program, names)
    states = {rewritings.after((name,))[0]: name for name in passes}
    states[rewritings.after(tuple(PASSES))[0]] = "all passes"
    states.pop(rewritings.start, None)
    for state in states:
        verify_program(state.program)
        typecheck(state.program, standard)
    interpreter, plan = ol.Executor(interpret=True), ol.Executor(passes=())
    for kind in lengths:
        arrays = arrays_of(program, LENGTHS[kind])
        expected = run(program, arrays, names, interpreter)
        reference = evaluate(forward.to_bytes(source=False), arrays, {cost: numpy.ones(())}, list(gradients))
        require_close("values", "the cost", expected[cost], reference.values[cost].numpy(force=True), GENERATED_VALUES)
        for of, name in gradients.items():
            other = reference.gradients[of]
            other = numpy.zeros(arrays[of].shape) if other is None else other.numpy(force=True)
            require_close("gradients", f'of "{of}", {kind},', expected[name], other, GENERATED_GRADIENTS)
        for name, value in run(program, arrays, names, plan).items():
            require_same(f'"{name}" by a plan, {kind}', value, expected[name])
        for state, what in states.items():
            values = run(state.program, arrays, list(state.program.targets), plan)
            for name, value in zip(names, values.values(), strict=True):
                require_close("passes", f'"{name}" after {what}, {kind},', value, expected[name], PASSES_DIFFER)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m generated.steps", description="Check what passes make of steps of loops.")
    parser.add_argument("--every", type=int, default=1, help="each so manyeth of the grid")
    begun, count, failures = time.monotonic(), 0, 0
    for variant in variants(parser.parse_args().every):
        count += 1
        try:
            check(variant)
        except Exception as error:
            failures += 1
            print(f"FAILED {variant}: {type(error).__name__}: {str(error).partition(chr(10))[0]}", flush=True)
    print(f"{count:,} programs on {len(LENGTHS)} sets of lengths, in {time.monotonic() - begun:.0f} s: {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
