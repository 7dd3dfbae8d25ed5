"""Workers that run a program together compute what one worker does of all rows."""

from collections.abc import Callable, Sequence
from random import Random

import numpy
import pytest
from generated.making import make
from generated.workers import check_workers
from thread_workers import run_together

import oarlock as ol
from oarlock.passes import data_parallel

STEPS = 6


def joined(feeds: Sequence[dict]) -> dict:
    """The feeds of all workers as one."""
    whole = {}
    for name in feeds[0]:
        items = [feed[name] for feed in feeds]
        whole[name] = [row for item in items for row in item] if isinstance(items[0], list) else numpy.concatenate(items)
    return whole


def steps_alone(build: Callable[[], ol.Program], batches: Sequence[Sequence[dict]], *, interpret: bool) -> tuple[list, dict]:
    program, scope = build(), ol.Scope()
    ol.init(program, scope)
    executor = ol.Executor(interpret=interpret)
    targets = list(program.targets)
    values = [executor.run(program, joined(feeds), targets, scope=scope) for feeds in batches]
    return values, {var.name: scope[var.name].numpy() for var in program.persistables()}


def steps_together(
    build: Callable[[], ol.Program], batches: Sequence[Sequence[dict]], *, interpret: bool, rewrite: Callable = data_parallel
) -> list[tuple[list, dict]]:
    def work(workers) -> tuple[list, dict]:
        program, scope = build(), ol.Scope()
        rewrite(program)
        ol.init(program, scope)
        executor = ol.Executor(interpret=interpret, workers=workers)
        values = [executor.run(program, feeds[workers.index], list(program.targets), scope=scope) for feeds in batches]
        return values, {var.name: scope[var.name].numpy() for var in program.persistables()}

    return run_together(len(batches[0]), work)


def require_equal(build: Callable[[], ol.Program], batches: Sequence[Sequence[dict]], *, within: float = 1e-12) -> None:
    for interpret in (True, False):
        values, state = steps_alone(build, batches, interpret=interpret)
        for others, own in steps_together(build, batches, interpret=interpret):
            for expected, found in zip(values, others, strict=True):
                for one, other in zip(expected, found, strict=True):
                    numpy.testing.assert_allclose(other, one, rtol=within, atol=within)
            for name, value in state.items():
                numpy.testing.assert_allclose(own[name], value, rtol=within, atol=within, err_msg=name)


def batches_of(make: Callable[[numpy.random.Generator, int], dict], sizes: Sequence[Sequence[int]]) -> list[list[dict]]:
    random = numpy.random.default_rng(0)
    return [[make(random, size) for size in each] for each in sizes]


SIZES = ([3, 3], [4, 1], [0, 5], [2, 0])


def of_classes(random: numpy.random.Generator, rows: int) -> dict:
    return {"x": random.normal(size=(rows, 8)), "y": random.integers(0, 3, size=rows)}


def digits() -> ol.Program:
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        hidden = ol.op.dropout(ol.op.relu(ol.layer.batch_norm(ol.layer.fc(x, 6, bias=False))), 0.5)
        logits = ol.layer.fc(hidden, 3)
        cost = ol.layer.mean(ol.op.softmax_with_cross_entropy(logits, y))
        ol.optimizer.Adam(1e-2).minimize(cost)
        program.targets = {"loss": cost, "accuracy": ol.metric.accuracy(logits, y)}
    return program


@pytest.mark.parametrize("sizes", [SIZES, [[2, 3, 1], [0, 0, 4], [1, 1, 1]]], ids=["two", "three"])
def test_batch_norm_and_dropout(sizes):
    require_equal(digits, batches_of(of_classes, sizes))


def branches() -> ol.Program:
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        networks = ol.ifelse()
        with networks.true_block():
            networks.output(ol.layer.fc(x, 3))
        with networks.false_block():
            networks.output(ol.layer.fc(ol.op.dropout(ol.layer.fc(x, 5, act="tanh"), 0.3), 3))
        cost = ol.layer.cross_entropy(networks(y < 1), y)
        ol.optimizer.Momentum(0.1, 0.9).minimize(cost)
        program.targets = {"loss": cost}
    return program


def test_rows_that_take_two_ways_some_of_them_on_one_worker_alone():
    require_equal(branches, batches_of(of_classes, SIZES))


def of_sentences(random: numpy.random.Generator, rows: int) -> dict:
    words = [random.integers(0, 11, size=random.integers(0, 6)) for _ in range(rows)]
    return {"words": words, "y": random.integers(0, 3, size=rows)}


def ragged() -> ol.Program:
    with ol.Program(seed=0) as program:
        words, y = ol.layer.data("words", [], dtype="int64", ragged=1), ol.layer.data("y", [], dtype="int64")
        vectors = ol.layer.embedding(words, (11, 4), dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            word = rnn.step_input(vectors)
            state = rnn.memory(shape=[5])
            after = ol.layer.fc(ol.layer.concat([word, rnn.previous_memory(state)], axis=1), 5, act="tanh")
            rnn.update_memory(state, after)
            rnn.output(after)
        logits = ol.layer.fc(ol.layer.sequence_pool(rnn(), "last"), 3)
        cost = ol.layer.cross_entropy(logits, y)
        ol.optimizer.SGD(0.1).minimize(cost)
        program.targets = {"loss": cost}
    return program


def test_a_recurrent_network_over_sentences_of_any_lengths():
    require_equal(ragged, batches_of(of_sentences, SIZES))


def looping() -> ol.Program:
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        state = ol.layer.fc(x, 4)
        loop = ol.while_loop(ol.layer.mean(ol.op.square(state)) > 0.5, max_trips=9)
        with loop.block():
            after = ol.layer.fc(state, 4, act="tanh")
            loop.carry(state, after)
            loop.update_condition(ol.layer.mean(ol.op.square(after)) > 0.5)
        cost = ol.layer.cross_entropy(ol.layer.fc(loop(), 3), y)
        ol.optimizer.SGD(0.1).minimize(cost)
        program.targets = {"loss": cost}
    return program


def test_a_loop_as_long_as_a_mean_of_all_rows_says():
    require_equal(looping, batches_of(of_classes, [[3, 3], [4, 1], [2, 3]]))


def of_text(random: numpy.random.Generator, rows: int) -> dict:
    return {name: random.integers(0, 9, size=(rows, 5)) for name in ("ids", "next")}


def gpt() -> ol.Program:
    with ol.Program(seed=0) as program:
        ids, following = (ol.layer.data(name, [5], dtype="int64") for name in ("ids", "next"))
        x = ol.layer.embedding(ids, (9, 8), dtype="float64")
        x = ol.layer.learned_positions(x, 5)
        x = ol.layer.transformer_encoder(x, layers=2, heads=2, dropout=0.1, act="gelu", norm_first=True, final_norm=True, causal=True)
        cost = ol.layer.cross_entropy(ol.layer.fc(x, 9), following)
        rate = ol.optimizer.schedule.CosineDecay(1e-2, 20)
        ol.optimizer.Momentum(rate, 0.9, weight_decay=0.1, clip=ol.optimizer.ClipByGlobalNorm(1.0)).minimize(cost)
        program.targets = {"loss": cost}
    return program


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
