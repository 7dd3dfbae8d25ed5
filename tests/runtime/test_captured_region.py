"""Regions captured as CUDA graphs, by a stand-in for a GPU's at the processor: they compute what the interpreter does."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy
import pytest
import torch
from failing_kernels import fail_at_tanh
from rounding import require_as_interpreted
from sample_programs import chain, program_of_chain

import oarlock as ol
from oarlock.registry import standard
from oarlock.runtime.plan import captured_region
from oarlock.runtime.plan.captured_region import CapturedRegion
from oarlock.runtime.plan.cuda_graphs import CudaGraphs
from oarlock.runtime.plan.liveness import Liveness
from oarlock.runtime.plan.numbers import Numbers
from oarlock.runtime.plan.regions import find_regions


class StandIn:
    """Graphs of the processor, which note in `seen` what is done.

    What is captured computes nothing yet. A replay reads what was read then and writes where it was written then, whatever lies there: a
    missing copy, or a stale one, is a wrong number.
    """

    def __init__(self, seen, device):
        self.seen = seen
        self.lock = threading.Lock()

    @contextmanager
    def turn(self):
        with self.lock:
            yield

    def warm_up(self, function):
        self._note("warm up")
        return function()

    def capture(self, function):
        self._note("capture")
        results = function()
        for result in results:
            result.untyped_storage().fill_(0xFF)  # NaN, where it is a float

        def replay():
            self._note("replay")
            for result, computed in zip(results, function(), strict=True):
                result.untyped_storage().copy_(computed.untyped_storage())
            return results

        return replay

    def _note(self, what):
        assert self.lock.locked()
        self.seen.append(what)


@pytest.fixture
def seen(monkeypatch):
    """The actions of the stand-in; executors made meanwhile capture by it."""
    seen = []
    monkeypatch.setattr(captured_region, "CudaGraphs", partial(StandIn, seen))
    return seen


def executor(**options):
    """One that captures at the processor, which is refused to users."""
    one = ol.Executor(poison=True, **options)
    one.backend = "cuda_graphs"
    return one


def run(executor, program, **feed):
    return executor.run(program, feed, list(program.targets), scope=ol.Scope(), return_numpy=False)[0]


def interpreted(program, **feed):
    return run(ol.Executor(interpret=True), program, **feed)


def network():
    """Layers around a batch norm and a dropout, and updates; float64."""
    with ol.Program(seed=2) as program:
        x = ol.layer.data("x", shape=[4], dtype="float64")
        hidden = chain(ol.op.dropout(ol.layer.batch_norm(ol.layer.fc(x, 5, act="tanh")), rate=0.3))
        cost = ol.layer.mean(ol.op.tanh(ol.layer.fc(hidden, 3, act="sigmoid")))
        ol.optimizer.Momentum(0.1).minimize(cost)
        program.targets["cost"] = cost
    return program


def trained(one, program, sizes):
    """The costs of steps on random rows, so many in each, and what is in the scope after them; by name."""
    draw, scope = numpy.random.default_rng(0), ol.init(program, ol.Scope())
    costs = [one.run(program, {"x": draw.normal(size=(rows, 4))}, ["cost"], scope=scope, training=True) for rows in sizes]
    return [*({program.targets["cost"].name: cost} for (cost,) in costs), {name: scope[name] for name in scope}]


def require_same(program, actual, expected):
    for values, others in zip(actual, expected, strict=True):
        require_as_interpreted(program, values, others)


# What is computed


def test_a_training_on_other_inputs_in_each_step_is_that_of_the_interpreter(seen):
    """Parameters are written over between replays."""
    program, one = network(), executor(passes=())
    require_same(program, trained(one, program, [4] * 6), trained(ol.Executor(interpret=True), program, [4] * 6))
    regions = one.plan(program, ["cost"]).text.count("region_")
    assert regions >= 2
    assert [seen.count(what) for what in ("warm up", "capture", "replay")] == [regions, regions, 5 * regions]


def test_with_passes_it_is_that_of_the_plan(seen):
    program = network()
    require_same(program, trained(executor(), program, [4] * 6), trained(ol.Executor(), program, [4] * 6))
    assert "replay" in seen


def test_each_size_is_captured_once(seen):
    program, one, sizes = network(), executor(passes=()), [4, 2, 4, 2, 2, 4, 4]
    require_same(program, trained(one, program, sizes), trained(ol.Executor(interpret=True), program, sizes))
    regions = one.plan(program, ["cost"]).text.count("region_")
    assert [seen.count(what) for what in ("warm up", "capture", "replay")] == [2 * regions, 2 * regions, 5 * regions]


def test_what_comes_after_the_last_signature_is_run_by_kernels(seen):
    program, one = program_of_chain(), executor()
    for rows in (*range(1, 11), *range(1, 11)):
        x = torch.randn(rows, 3, dtype=torch.float64)
        assert torch.equal(run(one, program, x=x), interpreted(program, x=x))
    assert [seen.count(what) for what in ("warm up", "capture", "replay")] == [8, 8, 8]


def test_how_a_value_lies_in_memory_is_part_of_what_is_captured(seen):
    program, one = program_of_chain(), executor()
    for _ in range(4):
        x = torch.randn(3, 6, dtype=torch.float64)
        for given in (x[:, :3].contiguous(), x[:, :3].T, x[:, ::2], x[:1, :3].expand(3, 3), x[:0, :3]):
            result = run(one, program, x=given)
            expected = interpreted(program, x=given)
            assert torch.equal(result, expected)
            assert result.stride() == expected.stride()
    assert seen.count("capture") == 5


def test_a_result_that_repeats_one_place_in_memory_is_copied_as_it_lies(seen):
    def compute(results, context, given):
        return [results[0].add(given[0]).expand(2, 3), torch.Size([2])]

    count = torch.zeros(1, 1)
    region = captured_region._Captured(partial(compute, [count], None), captured_region.CudaGraphs(torch.device("cpu")), 1, 1)
    kept = [region(torch.tensor([[float(number)]])) for number in range(4)]
    assert [result.tolist() for result, _ in kept] == [[[number] * 3] * 2 for number in range(4)]
    assert {result.stride() for result, _ in kept} == {(0, 0)}
    assert {shape for _, shape in kept} == {torch.Size([2])}


@pytest.mark.parametrize("first", [True, False], ids=["first one tensor", "first two"])
def test_two_inputs_that_are_one_tensor_may_be_two_the_next_time(first, seen):
    program, one = program_of_chain("a", "b"), executor()
    a, b = torch.randn(2, 2, 3, dtype=torch.float64)
    for same in (first, not first, first, not first):
        given = {"a": a, "b": a if same else b}
        assert torch.equal(run(one, program, **given), interpreted(program, **given))
    assert seen.count("capture") == 1


def test_the_batch_norm_of_a_run_that_trains_and_of_one_that_does_not(seen):
    with ol.Program() as program:
        program.targets["y"] = ol.op.tanh(chain(ol.layer.batch_norm(ol.layer.data("x", shape=[2, 3, 3], dtype="float64"))))
    one, scope = executor(passes=()), ol.init(program, ol.Scope())
    for number in range(4):
        x = numpy.random.default_rng(number).normal(size=(2, 2, 3, 3))
        for training in (True, False):
            actual, expected = (
                each.run(program, {"x": x}, ["y"], scope=scope.new_scope(), training=training)
                for each in (one, ol.Executor(interpret=True))
            )
            assert numpy.array_equal(*actual, *expected)
    assert "replay" in seen


def test_what_was_computed_is_nobody_elses(seen):
    program, one = program_of_chain(), executor()
    given = [torch.full((2, 3), float(number), dtype=torch.float64) for number in range(5)]
    kept = [run(one, program, x=x) for x in given]
    assert all(torch.equal(y, interpreted(program, x=x)) for x, y in zip(given, kept, strict=True))
    for y in kept:
        y.fill_(7)
    assert torch.equal(run(one, program, x=given[1]), interpreted(program, x=given[1]))
    assert [x[0, 0].item() for x in given] == [0, 1, 2, 3, 4]


def test_threads_share_a_graph_by_turns(seen):
    program, one = program_of_chain(), executor()
    given = [torch.randn(200, 3, dtype=torch.float64) for _ in range(60)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda x: run(one, program, x=x), given))
    assert all(torch.equal(y, interpreted(program, x=x)) for x, y in zip(given, results, strict=True))
    assert [seen.count(what) for what in ("warm up", "capture", "replay")] == [1, 1, 59]


def test_with_an_input_elsewhere_the_kernels_are_run_as_they_are(seen):
    program = program_of_chain()
    ops, kept = program.main.ops, list(program.targets.values())
    (region,) = find_regions(ops, Liveness(ops, kept, standard), standard, Numbers(ops, kept, standard), torch.device("cpu"))
    run_region, x = CapturedRegion(region, standard, torch.device("meta")), torch.randn(2, 3, dtype=torch.float64)
    for _ in range(3):
        assert torch.equal(run_region(None, x)[0], interpreted(program, x=x))
    assert seen == []


# What fails


def test_what_cannot_be_captured_is_run_by_its_kernels_from_then_on(seen, monkeypatch):
    def failing(graphs, function):
        graphs.seen.append("capture")
        function()
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(StandIn, "capture", failing)
    program, one = network(), executor(passes=())
    require_same(program, trained(one, program, [4, 2] * 3), trained(ol.Executor(interpret=True), program, [4, 2] * 3))
    regions = one.plan(program, ["cost"]).text.count("region_")
    assert [seen.count(what) for what in ("warm up", "capture", "replay")] == [2 * regions, 2 * regions, 0]


@pytest.mark.parametrize("earlier", [0, 1, 2])
def test_an_op_that_fails_in_a_region_is_reported_as_by_a_plan(earlier, seen, monkeypatch):
    fails = False
    fail_at_tanh(monkeypatch, lambda: fails)
    program, x = program_of_chain(), numpy.ones((2, 3))
    messages = []
    for one in (ol.Executor(), executor()):
        fails = False
        for _ in range(earlier):
            run(one, program, x=x)
        fails = True
        with pytest.raises(ol.KernelError) as caught:
            run(one, program, x=x)
        messages.append(str(caught.value))
        fails = False
        assert torch.equal(run(one, program, x=x), interpreted(program, x=x))
    assert "no such value" in messages[0]
    assert messages[1] == messages[0]
    assert "warm up" in seen


def test_at_the_processor_there_is_nothing_to_capture():
    with pytest.raises(ol.ArgumentError) as caught:
        ol.Executor(backend="cuda_graphs")
    assert caught.value.message == 'backend="cuda_graphs" needs a GPU, not CPUPlace()'
    assert caught.value.hint == "pass the place ol.GPUPlace(0), or omit backend"


def test_the_interpreter_captures_nothing(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ol.ArgumentError) as caught:
        ol.Executor(ol.GPUPlace(0), backend="cuda_graphs", check=True)
    assert caught.value.message == "backends need a plan, but check uses the interpreter"


# What is asked of PyTorch


class Stream:
    """One that notes for what it waits."""

    current: "Stream"
    notes: list[str]

    def __init__(self, device, name="the side"):
        self.name = name

    def wait_stream(self, other):
        self.notes.append(f"{self.name} waits for {other.name}")

    def launch(self, what):
        self.notes.append(f"{self.name} launches {what}")


@pytest.fixture
def streams(monkeypatch):
    """Streams that only note, of which one is the current one; PyTorch knows no others meanwhile."""

    @contextmanager
    def entered(stream):
        before, Stream.current = Stream.current, stream
        yield
        Stream.current = before

    @contextmanager
    def restored(stream):
        before, Stream.current = Stream.current, stream
        try:
            yield
        finally:
            Stream.current = before

    class Graph:
        def replay(self):
            Stream.current.launch("a graph")

    @contextmanager
    def capturing(graph, *, stream, capture_error_mode):
        Stream.notes.append(f"{stream.name} captures, {capture_error_mode}")
        with entered(stream):  # and not left, as PyTorch's own, where the capture cannot be ended
            yield

    monkeypatch.setattr(Stream, "notes", [], raising=False)
    monkeypatch.setattr(Stream, "current", Stream(None, "one"), raising=False)
    for name, stand_in in {
        "Stream": Stream,
        "stream": restored,
        "current_stream": lambda device: Stream.current,
        "CUDAGraph": Graph,
        "graph": capturing,
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    monkeypatch.setattr(CudaGraphs, "_last", {})
    return Stream


def launched(streams, result):
    streams.current.launch("kernels")
    return result


def fail(error):
    raise error


def test_the_first_run_is_between_what_was_launched_before_and_what_is_after(streams):
    graphs, one = CudaGraphs(torch.device("cuda", 0)), streams.current
    with graphs.turn():
        assert graphs.warm_up(partial(launched, streams, 3)) == 3
    assert streams.notes == ["the side waits for one", "the side launches kernels", "one waits for the side"]
    assert streams.current is one


def test_a_graph_is_captured_aside_and_replayed_where_one_is(streams):
    graphs, results = CudaGraphs(torch.device("cuda", 0)), [object()]
    with graphs.turn():
        replay = graphs.capture(partial(launched, streams, results))
        assert replay() is results
        assert replay() is results
    assert streams.notes == [
        "the side captures, thread_local", "the side launches kernels", "one launches a graph", "one launches a graph"
    ]  # fmt: skip


def test_a_capture_that_fails_leaves_streams_as_they_were(streams):
    graphs, one = CudaGraphs(torch.device("cuda", 0)), streams.current
    with graphs.turn(), pytest.raises(RuntimeError, match="^no$"):
        graphs.capture(partial(fail, RuntimeError("no")))
    assert streams.current is one


def test_who_comes_from_another_stream_waits_for_the_turn_before(streams):
    first, second = CudaGraphs(torch.device("cuda", 0)), CudaGraphs(torch.device("cuda", 0))
    for graphs in (first, second):
        with graphs.turn():
            pass
    assert streams.notes == []
    streams.current = streams(None, "two")
    for graphs in (first, second, first):
        with graphs.turn():
            pass
    assert streams.notes == ["two waits for one"]
    with CudaGraphs(torch.device("cuda", 1)).turn():
        pass
    assert streams.notes == ["two waits for one"]
