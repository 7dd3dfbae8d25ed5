"""Workers that run a program together compute what one worker does of all rows."""

from random import Random

import pytest
from generated.making import make
from generated.workers import check_workers
from thread_workers import run_together
from worker_models import batches_of, branches, digits, gpt, looping, of_classes, of_sentences, of_text, ragged
from worker_steps import require_equal

import oarlock as ol
from oarlock.passes import data_parallel

SIZES = ([3, 3], [4, 1], [0, 5], [2, 0])


@pytest.mark.parametrize("sizes", [SIZES, [[2, 3, 1], [0, 0, 4], [1, 1, 1]]], ids=["two", "three"])
def test_batch_norm_and_dropout(sizes):
    require_equal(digits, batches_of(of_classes, sizes))


def test_rows_that_take_two_ways_some_of_them_on_one_worker_alone():
    require_equal(branches, batches_of(of_classes, SIZES))


def test_a_recurrent_network_over_sentences_of_any_lengths():
    require_equal(ragged, batches_of(of_sentences, SIZES))


def test_a_loop_as_long_as_a_mean_of_all_rows_says():
    require_equal(looping, batches_of(of_classes, [[3, 3], [4, 1], [2, 3]]))


def test_a_character_gpt():
    require_equal(gpt, batches_of(of_text, SIZES))


def test_only_gradients_and_means_of_rows_are_exchanged():
    for build in (gpt, branches, ragged):
        program = build()
        data_parallel(program)
        gathered = [op for block in program.blocks for op in block.ops if op.type == "all_gather" and op.inputs["x"][0].shape != (1,)]
        assert not gathered, (build.__name__, [str(op) for op in gathered])


@pytest.mark.parametrize("number", range(12))
def test_programs_that_nobody_wrote(number):
    check_workers(make(20, number), Random(number))


def refusal(program: ol.Program) -> str:
    with pytest.raises(ol.ProgramError) as raised:
        data_parallel(program)
    return raised.value.message


def test_a_program_is_parted_once():
    program = digits()
    data_parallel(program)
    assert refusal(program) == "the workers of this program exchange tensors already"


def test_a_program_without_rows_is_refused():
    with ol.Program() as program:
        ol.layer.create_parameter([2], name="w")
    assert refusal(program) == "no input of this program leads with rows, so workers have none of their own"


def test_all_workers_exchange_the_same_whatever_each_fetches():
    batches = batches_of(of_classes, [[3, 3], [2, 4]])

    def work(workers) -> list[tuple]:
        program, scope = digits(), ol.Scope()
        data_parallel(program)
        ol.init(program, scope)
        fetch = [["loss", "accuracy"], []][workers.index]
        for feeds in batches:
            ol.Executor(workers=workers).run(program, feeds[workers.index], fetch, scope=scope)
            ol.Executor(workers=workers).eval(program, fetch[:1], feeds[workers.index], scope=scope)
        return [what for what, _ in workers.log]

    first, second = run_together(2, work)
    assert first == second
    assert len(first) > 4
