"""A run of a stranger's program is counted; beyond its limits it stops, and nothing has changed."""

import inspect
import resource

import numpy
import pytest
from block_operators import counted_while, ragged_loop
from sample_programs import running_sum

import oarlock as ol
from oarlock.registry import Operator, standard
from oarlock.registry.value_sizes import find_size_prediction

FEED = {"xs": numpy.ones((4, 2), "float32"), "start": numpy.ones(2, "float32")}
# running_sum: a loop of 4 trips with 2 ops each, then 2 ops; fed 40 bytes, computed 4 * (8 + 8) + 32 + 8 + 4 + 8


def run(limits: ol.RunLimits | None) -> list[float]:
    program, scope = running_sum(), ol.Scope()
    scope.set("w", [0.5, 2.0])
    try:
        (cost,) = ol.Executor(limits=limits).run(program, FEED, ["cost"], scope=scope)
    except ol.LimitError:
        assert scope["w"].tolist() == [0.5, 2.0]
        assert scope.children == []
        raise
    assert scope["w"].tolist() == [0.5 - cost, 2.0 - cost]
    return [float(cost)]


def test_limits_change_nothing_for_a_run_within_them():
    assert run(ol.RunLimits()) == run(None) == run(ol.RunLimits(trips=4, ops=11, live_bytes=156))


@pytest.mark.parametrize(
    ("limits", "message", "hint"),
    [
        (ol.RunLimits(trips=3), "main, op 0 (recurrent): more than 3 iterations of one loop", "trips"),
        (ol.RunLimits(ops=10), "main, op 2 (subtract): more than 10 ops in one run", "ops"),
        (ol.RunLimits(ops=3), "main/rnn_0.body, op 0 (multiply): more than 3 ops in one run", "ops"),
        (ol.RunLimits(seconds=-1.0), "main, op 0 (recurrent): more than -1 seconds in one run", "seconds"),
        (ol.RunLimits(live_bytes=39), "the feed: 40 live bytes, but the limit is 39", "live_bytes"),
        (ol.RunLimits(live_bytes=79), "main, op 0 (recurrent): 80 live bytes, but the limit is 79", "live_bytes"),
        (ol.RunLimits(live_bytes=90), "main/rnn_0.body, op 0 (multiply): 96 live bytes, but the limit is 90", "live_bytes"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_run_beyond_a_limit_is_refused_and_says_where(limits, message, hint):
    with pytest.raises(ol.LimitError) as caught:
        run(limits)
    assert caught.value.message == message
    assert caught.value.hint == f"limits=RunLimits({hint}=...)"


def test_what_an_op_would_make_is_refused_before_it_is_made():
    """A mebibyte squared; the machine has no such memory."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1], batch="n")
        program.targets["y"] = ol.op.add(x, ol.layer.data("y", shape=[], batch="m"))
    feed = {"x": numpy.ones((2**20, 1), "float32"), "y": numpy.ones(2**20, "float32")}
    with pytest.raises(ol.LimitError) as caught:
        ol.Executor(limits=ol.RunLimits()).run(program, feed, ["y"], scope=ol.Scope())
    assert caught.value.message == "main, op 0 (add): 4,398,054,899,712 live bytes, but the limit is 4,294,967,296"


def test_each_run_has_a_budget_of_its_own():
    executor = ol.Executor(limits=ol.RunLimits(ops=11))
    program, scope = running_sum(), ol.Scope()
    scope.set("w", [0.5, 2.0])
    for _ in range(3):
        executor.run(program, FEED, ["cost"], scope=scope)


# Sizes that only values tell

BIG = 2**17  # rows of as many elements: what is made of them would take 128 GiB


def refused_before(program: ol.Program, feed: dict[str, numpy.ndarray]) -> str:
    """The message with which a run ends that would make far more than it may, and the machine has."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ol.LimitError) as caught:
        ol.Executor(limits=ol.RunLimits(live_bytes=2**26)).run(program, feed, list(program.targets), scope=ol.Scope())
    assert caught.value.hint == "limits=RunLimits(live_bytes=...)"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 2**17, "kibibytes"
    return caught.value.message


def test_padding_to_one_long_sequence_is_refused_before_it_is_made():
    with ol.Program() as program:
        x, splits = ol.layer.data("x", [], batch="t"), ol.layer.data("splits", ["n+1"], dtype="int64", batch=None)
        program.targets["y"] = ol.op.sequence_pad(x, splits)
    cut = numpy.full(BIG + 1, BIG)
    cut[0] = 0
    message = refused_before(program, {"x": numpy.ones(BIG, "float32"), "splits": cut})
    assert message == f"main, op 0 (sequence_pad): {4 * BIG * BIG + 12 * BIG + 8:,} live bytes, but the limit is 67,108,864"


def test_elements_of_a_sequence_that_is_said_to_be_long_are_refused_before_they_are_numbered():
    with ol.Program() as program:
        splits, rows = (ol.layer.data(name, [size], dtype="int64", batch=None) for name, size in (("splits", 2), ("rows", "k")))
        like = ol.layer.data("like", [1], batch=None)
        program.targets["y"] = ol.op.sequence_elements(splits, rows, like)[0]
    feed = {"splits": numpy.array([0, 10**10]), "rows": numpy.zeros(3, "int64"), "like": numpy.zeros(1, "float32")}
    message = refused_before(program, feed)
    assert message == f"main, op 0 (sequence_elements): {24 * 10**10 + 32 + 44:,} live bytes, but the limit is 67,108,864"


@pytest.mark.parametrize("splits", [[0, 10**10], [0, 2**62, 2**62], [0, 2**63 - 1, -(2**63), -1, 2]], ids=str)
def test_a_ragged_loop_takes_no_memory_by_splits_that_are_far_from_its_sequences(splits):
    with ol.Program() as program:
        x, cut = ol.layer.data("x", [1], batch="t"), ol.layer.data("splits", ["n+1"], dtype="int64", batch=None)
        program.targets["y"] = ragged_loop("loop", x, cut, lambda step: ol.op.tanh(step))
    with pytest.raises(ol.KernelError) as caught:
        ol.Executor(limits=ol.RunLimits()).run(
            program, {"x": numpy.ones((2, 1), "float32"), "splits": numpy.array(splits)}, ["y"], scope=ol.Scope()
        )
    assert caught.value.message.startswith(
        "recurrent: row splits of 2 elements must begin with 0, never decrease and end at 2, unlike [0, "
    )


def test_what_each_step_of_a_ragged_loop_returns_anew_is_refused_before_it_is_stacked():
    """A value of outside, which costs a trip nothing and the stack 4 MiB a step."""
    with ol.Program() as program:
        x, cut = ol.layer.data("x", [], batch="t"), ol.layer.data("splits", ["n+1"], dtype="int64", batch=None)
        wide = ol.layer.data("wide", [2**20], batch=None)
        program.targets["y"] = ragged_loop("loop", x, cut, lambda step: wide)
    feed = {"x": numpy.ones(100, "float32"), "splits": numpy.array([0, 40, 100]), "wide": numpy.ones(2**20, "float32")}
    assert refused_before(program, feed) == (
        f"main, op 0 (recurrent): {60 * 2**22 + 2**22 + 400 + 24:,} live bytes, but the limit is 67,108,864"
    )


def test_what_each_trip_of_a_while_returns_anew_is_refused_before_it_is_stacked():
    with ol.Program() as program:
        trips = ol.layer.data("trips", [], dtype="int64", batch=None)
        wide = ol.layer.data("wide", [2**20], batch=None)
        program.targets["y"] = counted_while("loop", trips, wide, lambda value: wide)[1]
    message = refused_before(program, {"trips": numpy.int64(1000), "wide": numpy.ones(2**20, "float32")})
    assert message == "main, op 2 (while): 67,109,136 live bytes, but the limit is 67,108,864"  # in trip 15, and `wide` itself


@pytest.mark.parametrize("holds", [True, False])
def test_the_numbers_of_rows_are_counted_before_they_are_made(holds):
    with ol.Program() as program:
        program.targets["y"] = ol.op.nonzero(ol.layer.data("c", [], dtype="bool"), value=holds)
    feed = {"c": numpy.array([True, True, False])}
    count = 2 if holds else 1
    with pytest.raises(ol.LimitError) as caught:
        ol.Executor(limits=ol.RunLimits(live_bytes=2)).run(program, feed, ["y"], scope=ol.Scope())
    assert caught.value.message == "the feed: 3 live bytes, but the limit is 2"
    with pytest.raises(ol.LimitError) as caught:
        ol.Executor(limits=ol.RunLimits(live_bytes=3)).run(program, feed, ["y"], scope=ol.Scope())
    assert caught.value.message == f"main, op 0 (nonzero): {3 + 8 * count} live bytes, but the limit is 3"
    (y,) = ol.Executor(limits=ol.RunLimits(live_bytes=3 + 8 * count)).run(program, feed, ["y"], scope=ol.Scope())
    assert len(y) == count


def test_a_loop_that_reads_an_uneven_stack_is_counted_too():
    """The gradient of rows that take a branch, as many in each step as their values say."""
    with ol.Program() as program:
        x = ol.layer.data("x", [3, 1], batch="t", dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(ol.op.tanh(ie.input(step)))
            with ie.false_block():
                ie.output(ol.op.sigmoid(ie.input(step)))
            rnn.output(ie(step > 0.0))
        (dx,) = ol.gradients([ol.op.reduce_sum(rnn())], [x])
        program.targets["dx"] = dx
    feed = {"x": numpy.random.default_rng(0).normal(size=(4, 3, 1))}
    limited = ol.Executor(limits=ol.RunLimits()).run(program, feed, ["dx"], scope=ol.Scope())
    assert limited[0].tobytes() == ol.Executor(interpret=True).run(program, feed, ["dx"], scope=ol.Scope())[0].tobytes()


def test_every_size_that_only_values_tell_is_told_before():
    """But for the trips of a `while`, which are counted one by one."""
    silent = {operator.type for operator in standard if _leaves_a_size_open(operator) and find_size_prediction(operator) is None}
    assert silent == {"while"}


def _leaves_a_size_open(operator: Operator) -> bool:
    """Whether what states the shapes of its outputs speaks of a size by "?"."""
    stated = str(operator.signature).partition("->")[2] + inspect.getsource(operator.infer_function or _leaves_a_size_open)
    return "?" in stated.partition("of a size by")[0] or operator.type == "recurrent"
