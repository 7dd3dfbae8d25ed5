"""A run of a stranger's program is counted; beyond its limits it stops, and nothing has changed."""

import numpy
import pytest
from sample_programs import running_sum

import oarlock as ol

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
        (ol.RunLimits(trips=3), "main, op 0 (recurrent): more than 3 trips of one loop", "trips"),
        (ol.RunLimits(ops=10), "main, op 2 (subtract): more than 10 ops in one run", "ops"),
        (ol.RunLimits(ops=3), "main/rnn_0.body, op 0 (multiply): more than 3 ops in one run", "ops"),
        (ol.RunLimits(seconds=-1.0), "main, op 0 (recurrent): more than -1 seconds in one run", "seconds"),
        (ol.RunLimits(live_bytes=39), "what is fed: 40 live bytes, where 39 are allowed", "live_bytes"),
        (ol.RunLimits(live_bytes=79), "main, op 0 (recurrent): 80 live bytes, where 79 are allowed", "live_bytes"),
        (ol.RunLimits(live_bytes=90), "main/rnn_0.body, op 0 (multiply): 96 live bytes, where 90 are allowed", "live_bytes"),
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
    assert caught.value.message == "main, op 0 (add): 4,398,054,899,712 live bytes, where 4,294,967,296 are allowed"


def test_each_run_has_a_budget_of_its_own():
    executor = ol.Executor(limits=ol.RunLimits(ops=11))
    program, scope = running_sum(), ol.Scope()
    scope.set("w", [0.5, 2.0])
    for _ in range(3):
        executor.run(program, FEED, ["cost"], scope=scope)
