"""Random compositions of all operators; CONTRIBUTING.md gives the command for thousands."""

from random import Random

import numpy
import pytest
from compositions import checking
from compositions.__main__ import run
from compositions.checking import DisagreementError, check
from compositions.making import Composition, make

import oarlock as ol
from oarlock.passes.pipeline import PASSES

PARTS, EACH = 4, 20


@pytest.mark.mission("B50")
@pytest.mark.parametrize("part", [0, 1, *(pytest.param(part, marks=pytest.mark.slow) for part in range(2, PARTS))])
def test_passes_and_plans_give_what_the_interpreter_gives(part):
    outcomes, operators, failures = run(0, range(part * EACH, (part + 1) * EACH))
    assert not failures, "\n".join(failures)
    assert outcomes["agree"] >= EACH // 5
    assert len(operators) > 40


def test_a_composition_follows_from_its_seed_and_number():
    first, again, other = make(3, 5), make(3, 5), make(4, 5)
    assert first.program.to_bytes(source=False) == again.program.to_bytes(source=False)
    assert first.program.to_bytes(source=False) != other.program.to_bytes(source=False)
    assert {name: value.tobytes() for name, value in first.feed.items()} == {name: value.tobytes() for name, value in again.feed.items()}


def test_a_pass_that_goes_wrong_is_noticed(monkeypatch):
    def compute_in_reverse(program: ol.Program, catalogue: object) -> int:
        for op in program.main.ops:
            if op.type in ("subtract", "divide", "greater", "less") and op.inputs["x"][0].shape == op.inputs["y"][0].shape:
                op.inputs = {"x": op.inputs["y"], "y": op.inputs["x"]}
        return 0

    monkeypatch.setitem(PASSES, "canonicalize", compute_in_reverse)
    _, _, failures = run(0, range(20, 40))
    assert failures
    assert all("values: " in failure for failure in failures)


def product_in_a_loop(steps: int, width: int) -> Composition:
    """A product that each step computes anew, and a pass once before them; it fits where `width` is 3."""
    with ol.Program() as program:
        rows = ol.layer.data("rows", shape=[2], batch="t")
        left, right = ol.layer.data("left", shape=[2, "k"], batch=None), ol.layer.data("right", shape=[3, 2], batch=None)
        loop = ol.rnn()
        with loop.step():
            loop.output(loop.step_input(rows) + ol.op.reduce_sum(ol.op.matmul(left, right)))
        total = ol.op.reduce_sum(loop())
    feed = {"rows": (steps, 2), "left": (2, width), "right": (3, 2)}
    return Composition(program, {name: numpy.ones(shape, "float32") for name, shape in feed.items()}, [total.name])


def test_what_no_step_reaches_may_be_refused_all_the_same():
    assert check(product_in_a_loop(0, 2), Random(0)) == "refused"
    assert check(product_in_a_loop(0, 3), Random(0)) == "agree"
    assert check(product_in_a_loop(2, 2), Random(0)) == "refused"


def test_what_is_refused_of_ops_that_are_run_is_noticed_with_empty_arrays_too(monkeypatch):
    run_faithfully = checking._run

    def fail(composition: Composition, executor: ol.Executor, fetch: list[str]) -> dict[str, numpy.ndarray]:
        if executor.planned:
            raise ol.KernelError("matmul: it fails in a plan alone", op="matmul")
        return run_faithfully(composition, executor, fetch)

    monkeypatch.setattr(checking, "_run", fail)
    with ol.Program() as program:
        left, right = ol.layer.data("left", shape=["k"], batch="n"), ol.layer.data("right", shape=["m"], batch="k")
        product = ol.op.matmul(left, right)
    feed = {"left": numpy.ones((0, 2), "float32"), "right": numpy.ones((2, 3), "float32")}
    with pytest.raises(DisagreementError, match="KernelError"):
        check(Composition(program, feed, [product.name]), Random(0))
