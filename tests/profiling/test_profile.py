"""`ol.profile`: what is recorded of plans and of the interpreter, and that nothing else changes."""

import json
from itertools import pairwise

import numpy
import pytest
import torch
import workloads
from classifiers import small_classifier, small_rows
from sample_programs import nested_loops

import oarlock as ol
from oarlock.runtime import recording

PAGES = {"pages": numpy.random.default_rng(0).random((2, 4, 3), "float32"), "start": numpy.zeros(3, "float32")}


@pytest.fixture(params=[False, True], ids=["plan", "interpreter"])
def executor(request) -> ol.Executor:
    return ol.Executor(interpret=request.param)


def linear_program() -> ol.Program:
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", [4])
        y = ol.layer.fc(x, 3, name="fc")
        program.targets["cost"] = ol.layer.mean(y)
    return program


def prepared(program: ol.Program, executor: ol.Executor | None = None, **options):
    scope = ol.init(program, ol.Scope())
    return (executor or ol.Executor()).prepare(program, list(program.targets), scope=scope, **options)


def events_of(profile: ol.Profile) -> list[dict]:
    return [event for event in json.loads(profile.trace())["traceEvents"] if event["ph"] == "X"]


def test_an_op_is_recorded_with_its_line_shapes_bytes_and_arithmetic(executor):
    step = prepared(linear_program(), executor)
    with ol.profile() as profile:
        step({"x": numpy.ones((5, 4), "float32")})
    event = next(event for event in events_of(profile) if event["name"] == "linear")
    said = event["args"]
    assert "test_profile.py:" in said["line"]
    assert said["source"] == 'y = ol.layer.fc(x, 3, name="fc")'
    assert (said["role"], said["block"]) == ("forward", "main")
    assert list(said["results"].values()) == ["float32[5, 3]"]
    assert said["inputs"] == {"x": "float32[5, 4]", "fc.w": "float32[4, 3]", "fc.b": "float32[3]"}
    assert (said["bytes"], said["bytes made"], said["multiply-adds"]) == (60, 60, 60)
    (total,) = [total for total in profile.totals() if total.name == "linear"]
    assert (total.calls, total.multiply_adds, total.bytes) == (1, 60, 60)
    assert total.gigaflops == pytest.approx(120e-9 / total.seconds)


def test_what_stands_inside_lies_inside_and_trips_are_counted(executor):
    program = nested_loops()
    step = prepared(program, executor)
    with ol.profile() as profile:
        step(PAGES)
    events = events_of(profile)
    blocks = [event["args"].get("block", "") for event in events]
    assert any(block.startswith("main/rnn_0 1/rnn_1 3") for block in blocks)
    assert not any("rnn_0 2" in block or "rnn_1 4" in block for block in blocks)
    assert sum(event["cat"] == "step" for event in events) == 1
    for event, following in pairwise(events):  # in the order of their beginnings: the next begins inside and ends there, or begins after
        end, its_end = event["ts"] + event["dur"], following["ts"] + following["dur"]
        assert following["ts"] >= end - 1e-3 or its_end <= end + 1e-3
    assert all(event["dur"] >= 0 for event in events)


@pytest.mark.parametrize("name", ["W11", "W12", "W13", *(pytest.param(f"W{number}", marks=pytest.mark.slow) for number in range(1, 11))])
def test_steps_that_are_recorded_compute_the_same_bits(name):
    workload = workloads.describe(name)

    def losses(recorded: bool) -> list[torch.Tensor]:
        scope = workload.scope()
        step = ol.Executor().prepare(workload.program, [workload.fetch], scope=scope, return_numpy=False)
        if not recorded:
            return [step(workload.feed)[0].clone() for _ in range(3)]
        with ol.profile(warm_up=1) as profile:
            found = [step(workload.feed)[0].clone() for _ in range(3)]
        assert profile.steps == 2
        assert {total.name for total in profile.totals("block")} >= {"forward", "backward"}
        assert sum(profile.waits().values()) == pytest.approx(profile.seconds, rel=0.2)
        return found

    assert all(map(torch.equal, losses(recorded=False), losses(recorded=True)))


def test_without_a_profile_the_plan_that_runs_has_no_clock_and_after_one_neither():
    step = prepared(linear_program())
    plan = step._plan
    feed = {"x": numpy.ones((5, 4), "float32")}
    step(feed)
    assert "_timed_function" not in vars(plan)  # it was not even written
    with ol.profile() as profile:
        step(feed)
    assert "clock_now()" in plan._timed.text
    assert "clock" not in plan.text
    before = len(profile._recorder.slices)
    step(feed)
    assert len(profile._recorder.slices) == before
    assert recording.recorder is None


def test_as_many_steps_are_recorded_as_asked_for_after_the_warm_up():
    step = prepared(linear_program())
    feed = {"x": numpy.ones((5, 4), "float32")}
    with ol.profile(steps=3, warm_up=4) as profile:
        for _ in range(9):
            step(feed)
    assert profile.steps == 3
    assert [event["name"] for event in events_of(profile) if event["cat"] == "step"] == ["step 5", "step 6", "step 7"]
    assert profile.slowdown > 0
    done = 0
    with ol.profile(steps=2, ends=True) as profile:
        for _ in range(9):
            step(feed)
            done += 1
    assert (profile.steps, done) == (2, 2)
    assert profile.slowdown is None


def test_two_profiles_at_once_and_numbers_that_are_none_are_refused():
    with ol.profile() as profile, pytest.raises(ol.ArgumentError) as raised, ol.profile():
        pass
    assert raised.value.message == "this process is already being profiled"
    assert str(profile) == "no steps were recorded"
    for options, message in (
        ({"steps": 0}, "steps must be an integer >= 1, not 0"),
        ({"warm_up": -1}, "warm_up must be an integer >= 0, not -1"),
    ):
        with pytest.raises(ol.ArgumentError) as raised, ol.profile(**options):
            pass
        assert raised.value.message == message
    with pytest.raises(ol.ArgumentError) as raised:
        profile.totals("colour")
    assert raised.value.message == "totals can be by 'operator', 'line', 'block', not by 'colour'"
    with pytest.raises(ol.ArgumentError) as raised:
        profile.table(top=0)
    assert raised.value.message == "top must be an integer >= 1, not 0"


def test_an_error_says_the_same_while_it_is_recorded():
    with ol.Program() as program:
        table = ol.layer.create_parameter([3, 2], name="table")
        rows = ol.layer.data("rows", [], dtype="int64")
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.op.gather(table, loop.step_input(rows)))
        program.targets["out"] = loop()
    step, said = prepared(program), []
    for recorded in (False, True):
        with pytest.raises(ol.KernelError) as raised:
            if recorded:
                with ol.profile():
                    step({"rows": numpy.array([0, 1, 7])})
            else:
                step({"rows": numpy.array([0, 1, 7])})
        said.append(str(raised.value))
    assert said[0] == said[1]
    assert "test_profile.py" in said[0]
    assert recording.recorder is None


def test_a_trainer_says_what_its_steps_wait_for(tmp_path):
    small, rows = small_classifier(), small_rows(40)
    slept = []

    def transform(batch):
        slept.append(torch.ones(300, 300) @ torch.ones(300, 300))
        return batch

    run = ol.training.Run(tmp_path / "run", save_every=2)
    with ol.profile(steps=6, warm_up=3) as profile:
        ol.train(small.cost, rows, batch_size=4, transform=transform, run=run, progress=False)
    found = profile.waits()
    assert profile.steps == 6
    assert all(found[name] > 0 for name in ("data", "feed", "arithmetic", "other", "python", "checkpoint", "loop"))
    assert sum(found.values()) == pytest.approx(profile.seconds, rel=1e-6)
    threads = {event["tid"] for event in events_of(profile)}
    assert threads == {0, 1}
    assert "in the background: write checkpoints" in profile.summary()
    assert sum(event["cat"] == "checkpoint" for event in events_of(profile)) == 3


def test_the_report_has_the_operators_the_lines_and_what_a_step_waits_for(tmp_path):
    small = small_classifier()
    with ol.profile(steps=4, warm_up=2) as profile:
        ol.train(small.cost, small_rows(40), batch_size=4, progress=False)
    text = profile.report(top=2)
    assert text.startswith("4 steps of ")
    for line in ("time of a step", "products, convolutions, attention", "operator  ", "line  ", "others", "GFLOP/s"):
        assert line in text
    names = [total.name for total in profile.totals("line")]
    assert any("classifiers.py:" in name for name in names)
    profile.save(tmp_path / "trace.json")
    assert (tmp_path / "trace.json").read_bytes() == profile.trace()
    with pytest.raises(ol.MissingFileError):
        profile.save(tmp_path / "nowhere" / "trace.json")
