"""Fifty steps of two and of four workers beside those of one that has all rows: what they compute, and the programs that they run."""

import numpy
import pytest
from worker_models import MODELS, batches_of
from worker_steps import require_same, steps_alone, steps_together, with_whole_state

import oarlock as ol
from oarlock.passes import data_parallel, shard_optimizer

STEPS = 50


def rows_of(count: int) -> list[list[int]]:
    """Unequal parts, and of each worker none now and then; of all at least two rows.

    Of one row, a batch norm leaves 0 but for rounding, and a ReLU behind it has its kink there.
    """
    random = numpy.random.default_rng(count)
    sizes = random.integers(0, 5, size=(STEPS, count))
    sizes[sizes.sum(axis=1) < 2, 0] = 2
    return sizes.tolist()


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("in_shares", "accumulate"),
    [(False, 1), (True, 3), pytest.param(True, 1, marks=pytest.mark.slow), pytest.param(False, 3, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("name", MODELS)
def test_workers_compute_what_one_does(name, in_shares, accumulate, count):
    build, make = MODELS[name]
    batches, kept = batches_of(make, rows_of(count)), dict[str, tuple]()

    def rewrite(program: ol.Program) -> None:
        data_parallel(program)
        if in_shares:
            kept.update(shard_optimizer(program, workers=count))

    together = steps_together(lambda: build(accumulate), batches, rewrite=rewrite)
    assert bool(kept) == in_shares
    require_same(steps_alone(lambda: build(accumulate), batches), with_whole_state(together, kept))


REWRITES = {
    "data_parallel": lambda program: data_parallel(program),
    "shard_optimizer": lambda program: (data_parallel(program), shard_optimizer(program, workers=2)),
}


@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize("name", MODELS)
def test_programs_are_printed_before_and_after(name, rewrite, golden):
    program = MODELS[name][0](2)
    golden(f"workers_{name}_before.txt", program.to_text(source=False))
    REWRITES[rewrite](program)
    text = program.to_text(source=False)
    golden(f"workers_{name}_{rewrite}.txt", text)
    assert ol.parse_program(text).to_text() == text
    assert ol.Program.from_bytes(program.to_bytes()).to_text(source=False) == text
