"""Programs at a GPU.

Where there is none, PyTorch's fake tensors stand for its memory (`fake_gpu.py`): they have a device and a shape, and no elements. Kernels
that mix places are refused by them as they would be there, and what waits for the GPU, because the host asks for an element, is noted. What
is computed, and how fast, only a GPU can tell: those tests are skipped without one.
"""

import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy
import pytest
import torch
import workloads
from fake_gpu import stand_in, waits_noted
from op.arguments import DERIVED, FORWARD, arguments_of, cases_of, positional
from torch._subclasses.fake_tensor import DynamicOutputShapeException

import oarlock as ol
from oarlock.backend.torch.variants import variants_of
from oarlock.registry import Case, GradCheck, Operator, standard
from oarlock.runtime.plan import captured_region
from oarlock.training.run_folder import load_run

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@pytest.fixture
def fake_place(monkeypatch):
    return stand_in(monkeypatch)


def run_fake(executor, program, feed, fetch, scope, *, training=False):
    """The results of a run, of fake tensors, and the waits of a second run. It is planned before: passes look at numbers."""
    step = executor.prepare(program, fetch, scope=scope, training=training, return_numpy=False)
    with waits_noted() as waits:
        held = {name: torch.tensor(value).to(executor.place.device) for name, value in feed.items()}
        step(held)  # which brings the parameters there
        waits.clear()
        values = step(held)
    return values, waits


def a_loop(optimizer=None):
    """A program, its cost, the gradients of its loop, which train it by `optimizer`, and what is fed."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=["n", 4], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            state = rnn.memory(shape=[8])
            before = ol.layer.fc(rnn.previous_memory(state), 8, bias=False, name="again")
            after = ol.op.tanh(ol.layer.fc(step, 8, name="fc") + before)
            rnn.update_memory(state, after)
            rnn.output(after)
        cost = ol.op.reduce_sum(ol.op.square(rnn()))
        pairs = ol.append_backward(cost) if optimizer is None else []
        if optimizer is not None:
            optimizer.minimize(cost)
    return program, cost, [gradient for _, gradient in pairs], {"x": numpy.linspace(-1, 1, 60, dtype="float32").reshape(5, 3, 4)}


@pytest.mark.parametrize("settings", [{}, {"passes": ()}, {"interpret": True}], ids=["plan", "without passes", "interpreter"])
def test_a_loop_and_its_gradient_stay_at_their_place_and_ask_for_no_element(fake_place, settings):
    program, cost, gradients, feed = a_loop()
    scope = ol.init(program, ol.Scope())
    values, waits = run_fake(ol.Executor(fake_place, **settings), program, feed, [cost, *gradients], scope)
    assert not waits
    assert {value.device for value in values} == {fake_place.device}
    assert [tuple(value.shape) for value in values] == [(), *(tuple(gradient.shape) for gradient in gradients)]


def test_parameters_move_to_the_place_of_the_run_and_what_is_made_of_nothing_is_made_there(fake_place):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        y = ol.layer.fc(x, 2, name="fc") + ol.op.full(shape=(2,), value=1.0)
    scope = ol.init(program, ol.Scope())
    assert scope["fc.w"].device.type == "cpu"
    for interpret in (False, True):
        (value,), _ = run_fake(ol.Executor(fake_place, interpret=interpret), program, {"x": [[1.0, 2.0, 3.0]]}, [y], scope)
        assert value.device == fake_place.device
        assert scope["fc.w"].device == scope["fc.b"].device == fake_place.device


def test_a_fake_place_refuses_what_a_gpu_would_and_notes_what_waits(fake_place):
    """So that the tests here can fail."""
    with waits_noted() as waits:
        there, here = torch.ones(3, 4, device=fake_place.device), torch.ones(3, 4)
        with pytest.raises(RuntimeError, match="same device|different devices"):
            there + here
        with pytest.raises(RuntimeError, match="same device|different devices"):
            torch._fused_sgd_([there], [there], [], lr=here.sum(), momentum=0.0, weight_decay=0.0, dampening=0.0, nesterov=False,
                              maximize=False, is_first_step=True)  # fmt: skip
        with pytest.raises(DynamicOutputShapeException):
            there.nonzero()
        assert not waits
        there.sum().item()
        bool(there.any())
        there.cpu()
        here.to(fake_place.device)
        there[0].copy_(here[0])
    assert [wait.why for wait in waits] == ["asked", "asked", "copied", "copied", "copied"]
    assert {(wait.line, wait.depth) for wait in waits} == {("", 0)}


REFUSING = {
    "floor_divide", "fmod", "remainder", "one_hot", "scatter_add", "gather", "embedding_linear", "softmax_with_cross_entropy",
    "index", "index_dx", "index_put", "take_along_axis", "scatter_along_axis",
    "cross_entropy_loss", "negative_log_likelihood", "negative_log_likelihood_dlog_p", "embedding_linear_dx", "embedding_linear_dw",
    "put_rows", "sparse_sgd", "cholesky", "eigh", "svd", "pinv", "inverse", "solve_columns", "solve_triangular_columns",
    "crf_log_partition", "crf_share_changes", "viterbi_decode", "ctc_loss", "ctc_occupancy_change",
}  # fmt: skip
"""They look whether a number is a row, a class or a divisor, or cuts sequences: a GPU that met another would end the process. Of a matrix
they look whether it has what is asked for."""

BY_DATA = {"nonzero", "merge", "merge_dyes", "merge_dno", "merge_dyes_ddy", "merge_dno_ddy", "argwhere", "bincount", "unique",
           "coalesce", "chunk_counts", "contingency_table", "edit_distance"}  # fmt: skip
"""How many rows they give, or make on the way, the data tell."""


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in [*FORWARD, *DERIVED]])
def test_kernels_stay_at_their_place_and_wait_only_for_what_data_decide(fake_place, operator: Operator):
    """With `made_at`, what a kernel makes of nothing is there too. Sequences are cut where data say, by whatever their operators do."""
    if operator.type.startswith("sequence_"):
        pytest.skip("where sequences end, data tell")
    asked = operator.type in REFUSING or operator.type in BY_DATA
    waited = False
    for _, case in () if operator.wants_context else cases_of(operator, Case, GradCheck):
        arguments = arguments_of(operator, case, torch.float32)
        sizes = {tuple(item.shape) for items in arguments.tensors.values() for item in items}
        of_complex = any(item.is_complex() for items in arguments.tensors.values() for item in items)  # whose parts may come out
        kernels = [
            operator.kernel,
            *(variants_of(operator).in_place.values() if len(sizes) == 1 and not of_complex else ()),
        ]  # of equal sizes
        for kernel in kernels:
            with waits_noted() as waits, fake_place.device:
                there = arguments.replaced(_brought)
                if operator.type in BY_DATA and not _is_told_by_sizes(operator, there):
                    with pytest.raises(DynamicOutputShapeException):
                        kernel(*positional(operator, there), **operator.convert_attributes(there.attributes))
                    continue
                try:
                    result = kernel(*positional(operator, there), **operator.convert_attributes(there.attributes))
                except ValueError:  # as an answer is made up
                    assert operator.type in REFUSING
                    result = ()
            waited = waited or bool(waits)
            assert asked or not waits, waits
            assert {item.device for item in _tensors(result)} <= {fake_place.device}
    assert waited == (operator.type in REFUSING)


def _brought(slot, item):
    """The input of a step at a fake GPU. Whether statistics are those of the batch stays with the host."""
    return torch.tensor(True, device="cpu") if slot == "uses_batch_statistics" else torch.empty(item.shape, dtype=item.dtype)


def _is_told_by_sizes(operator, there):
    """Of no rows there are no equal ones."""
    return operator.type == "coalesce" and not there.tensors["rows"][0].numel()


def _tensors(result):
    return [result] if isinstance(result, torch.Tensor) else [item for part in result or () for item in _tensors(part)]


WAITS: dict[str, list[str]] = {
    "W1": ["cross_entropy_loss"],
    "W2": ["cross_entropy_loss"],
    "W3": ["cross_entropy_loss"],
    "W4": ["cross_entropy_loss"],
    "W5": [],
    "W6": [],
    "W7": [],
    "W8": [],
    "W9": ["embedding_linear", "gather", "cross_entropy_loss", "embedding_linear_backward"],
    "W10": ["gather", "cross_entropy_loss", "scatter_add"],
    "I1": [],
    "I2": [],
    "I3": [],
}
"""The waits of a step: where labels are looked at, and the numbers of rows. W11, W12 and W13 go where data say."""
SLOW = "W6", "W7", "W8"


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in WAITS])
def test_a_step_waits_only_where_values_may_be_refused_and_in_no_loop(fake_place, name):
    workload = workloads.describe(name)
    _, waits = run_fake(
        ol.Executor(fake_place), workload.program, workload.feed, [workload.fetch], workload.scope(), training=workload.training
    )
    assert [re.search(r"= ([a-z_]+?)(_in_place|_out)?_[0-9]+\(", wait.line)[1] for wait in waits] == WAITS[name]
    assert all(wait.depth == 0 for wait in waits)


@pytest.mark.parametrize("settings", [{}, {"passes": ()}], ids=["plan", "without passes"])
@pytest.mark.parametrize(
    "optimizer", [ol.optimizer.SGD(0.1), ol.optimizer.Momentum(0.1, 0.9), ol.optimizer.Adam(0.1)], ids=["sgd", "momentum", "adam"]
)
def test_a_loop_is_trained_without_waiting(fake_place, optimizer, settings):
    program, cost, _, feed = a_loop(optimizer)
    _, waits = run_fake(ol.Executor(fake_place, **settings), program, feed, [cost], ol.init(program, ol.Scope()), training=True)
    assert not waits


def test_a_run_asks_once_how_many_steps_were_done(fake_place):
    """Random numbers follow from that, which a GPU counts."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=["n", 4], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            state = rnn.memory(shape=[4])
            after = ol.op.dropout(ol.layer.fc(step, 4) + rnn.previous_memory(state), rate=0.5)
            rnn.update_memory(state, after)
            rnn.output(ol.op.dropout(after, rate=0.5))
        cost = ol.op.reduce_sum(rnn())
        ol.optimizer.SGD(0.1).minimize(cost)
    scope = ol.init(program, ol.Scope())
    _, waits = run_fake(ol.Executor(fake_place), program, {"x": numpy.zeros((5, 3, 4), "float32")}, [cost], scope, training=True)
    assert [wait.why for wait in waits] == ["asked"]
    assert "dropout" in waits[0].line


def test_a_condition_on_data_waits_in_each_trip(fake_place):
    workload = workloads.describe("W12")
    _, waits = run_fake(ol.Executor(fake_place), workload.program, workload.feed, [workload.fetch], workload.scope(), training=True)
    assert len(waits) > 1
    assert {(wait.why, wait.depth) for wait in waits} == {("asked", 1)}
    assert all("mean" in wait.line for wait in waits)


def test_normalized_batches_in_a_loop_stay_at_their_place(fake_place):
    """Whether statistics are of the batch the host knows, until that is stacked."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=["n", 4], batch="t")
        mean, variance = ol.layer.data("mean", [4], batch=None), ol.layer.data("variance", [4], batch=None)
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.op.batch_norm(ol.layer.fc(rnn.step_input(x), 4), mean, variance))
        cost = ol.op.reduce_sum(ol.op.square(rnn()))
        pairs = ol.append_backward(cost)
    scope = ol.init(program, ol.Scope())
    gradients = [gradient for _, gradient in pairs]
    feed = {"x": numpy.zeros((5, 3, 4), "float32"), "mean": numpy.zeros(4, "float32"), "variance": numpy.ones(4, "float32")}
    values, waits = run_fake(ol.Executor(fake_place), program, feed, [cost, *gradients], scope, training=True)
    assert {value.device for value in values} == {fake_place.device}
    assert waits
    assert all("batch_norm" in wait.line or (wait.why, wait.depth) == ("copied", 0) for wait in waits)


class Elsewhere(torch.Tensor):
    """A tensor at the processor that says it is not."""

    is_cpu = False


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("operator", [pytest.param(item, id=item.type) for item in FORWARD if item.signature.input("learning_rate")])
def test_an_update_by_a_rate_that_stays_a_tensor_is_the_update_by_its_number(operator: Operator, dtype):
    for _, case in cases_of(operator, Case):
        for kernel in (operator.kernel, *variants_of(operator).in_place.values()):
            expected, actual = (
                _tensors(kernel(*positional(operator, given), **operator.convert_attributes(given.attributes)))
                for given in (
                    arguments_of(operator, case, dtype),
                    arguments_of(operator, case, dtype).replaced(
                        lambda slot, item: item.as_subclass(Elsewhere) if slot == "learning_rate" else item
                    ),
                )
            )
            tolerance = 1e-6 if dtype is torch.float32 else 1e-14
            actual = [item.as_subclass(torch.Tensor) for item in actual]
            torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
            assert all(item.dtype is dtype for item in actual)


@needs_gpu
@pytest.mark.parametrize("name", ["W1", "W2", "W3", "W4", "W5", "W8", "W10", "W11", "W12", "W13"])
def test_training_at_a_gpu_is_training_at_the_processor(name):
    workload = workloads.describe(name)
    losses = {}
    for place in (ol.CPUPlace(), ol.GPUPlace(0)):
        executor, scope = ol.Executor(place), workload.scope()
        step = executor.prepare(workload.program, [workload.fetch], scope=scope, training=workload.training)
        losses[place] = [step(workload.feed)[0].item() for _ in range(3)]
    at_the_processor, at_the_gpu = losses.values()
    assert at_the_gpu == pytest.approx(at_the_processor, rel=1e-3)  # TF32 aside, sums are added in another order


def require_no_waiting(step, held):
    """Run a step, which must not wait for the GPU."""
    try:
        with warnings.catch_warnings(action="ignore"):  # PyTorch says that it may miss some waits
            torch.cuda.set_sync_debug_mode("error")
        step(held)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@needs_gpu
def test_a_loop_does_not_wait_for_the_gpu():
    program, cost, gradients, feed = a_loop()
    place = ol.GPUPlace(0)
    step = ol.Executor(place).prepare(program, [cost, *gradients], scope=ol.init(program, ol.Scope()), return_numpy=False)
    held = {name: torch.tensor(value, device=place.device) for name, value in feed.items()}
    step(held)
    require_no_waiting(step, held)


@needs_gpu
def test_a_scope_that_was_at_a_gpu_is_read_at_the_processor():
    program, cost, _, feed = a_loop()
    scope = ol.init(program, ol.Scope())
    (before,) = ol.Executor().eval(program, [cost], feed, scope=scope)
    ol.Executor(ol.GPUPlace(0)).eval(program, [cost], feed, scope=scope)
    (after,) = ol.Executor().eval(program, [cost], feed, scope=scope)
    assert before == after


class EndedEarlyError(Exception):
    pass


@needs_gpu
@pytest.mark.parametrize("backend", [None, "cuda_graphs"])
def test_a_run_at_a_gpu_that_ended_early_goes_on_to_the_same_bits(tmp_path, backend):
    def on_step(step, _):
        if step == 14 and not mark.exists():
            mark.touch()
            raise EndedEarlyError

    def train(folder, **heard):
        with ol.Program(seed=0):
            image, label = ol.layer.data("image", [1, 8, 8]), ol.layer.data("label", [], dtype="int64")
            hidden = ol.op.dropout(ol.layer.batch_norm(ol.layer.fc(ol.layer.flatten(image), 16, bias=False), act="relu"), 0.2)
            cost = ol.layer.cross_entropy(ol.layer.fc(hidden, 10), label)
        options = {"batch_size": 100, "steps": 30, "run": ol.training.Run(tmp_path / folder, save_every=4), "progress": False}
        place, (data, _) = ol.GPUPlace(0), ol.datasets.digits.split(seed=0)
        ol.train(cost, data, optimizer=ol.optimizer.Adam(0.01), place=place, backend=backend, **options, **heard)
        return load_run(tmp_path / folder).scope

    mark = tmp_path / "ended"
    with pytest.raises(EndedEarlyError):
        train("broken", on_step=on_step)
    resumed, unbroken = train("broken", on_step=on_step), train("unbroken")
    names = list(unbroken)
    assert len(names) > 10
    assert all(torch.equal(unbroken[name], resumed[name]) for name in names)


# Captured as CUDA graphs


class Graphs:
    """A stand-in that computes captured work once; fake tensors have nothing else to compute."""

    def __init__(self, device):
        assert device.type == "cuda"

    def turn(self):
        return nullcontext()

    def warm_up(self, function):
        return function()

    def capture(self, function):
        results = function()
        return lambda: results


@pytest.mark.parametrize("name", ["W1", "W2", "W4", "W10"])
def test_captured_regions_stay_at_their_place_and_wait_nowhere(fake_place, monkeypatch, name):
    monkeypatch.setattr(captured_region, "CudaGraphs", Graphs)
    workload = workloads.describe(name)
    executor, scope = ol.Executor(fake_place, backend="cuda_graphs"), workload.scope()
    assert "region_" in executor.plan(workload.program, [workload.fetch]).text
    step = executor.prepare(workload.program, [workload.fetch], scope=scope, training=workload.training, return_numpy=False)
    with waits_noted() as waits:
        held = {name: torch.tensor(value).to(fake_place.device) for name, value in workload.feed.items()}
        for _ in range(4):
            waits.clear()
            (cost,) = step(held)
    assert cost.device == fake_place.device
    assert [re.search(r"= ([a-z_]+?)(_in_place|_out)?_[0-9]+\(", wait.line)[1] for wait in waits] == WAITS[name]


@pytest.fixture
def replays(monkeypatch):
    """A list that grows by each graph that is replayed."""
    seen = []
    replay = torch.cuda.CUDAGraph.replay

    def noted(graph):
        seen.append(graph)
        replay(graph)

    monkeypatch.setattr(torch.cuda.CUDAGraph, "replay", noted)
    return seen


@needs_gpu
@pytest.mark.parametrize("name", ["W1", "W2", "W3", "W4", "W5", "W8", "W10", "W11", "W12", "W13"])
def test_training_by_captured_regions_is_training_by_lines(name, replays):
    workload = workloads.describe(name)
    losses = []
    for backend in (None, "cuda_graphs"):
        executor, scope = ol.Executor(ol.GPUPlace(0), backend=backend), workload.scope()
        step = executor.prepare(workload.program, [workload.fetch], scope=scope, training=workload.training)
        losses.append([step(workload.feed)[0].item() for _ in range(5)])
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    if name in ("W1", "W2", "W3", "W4", "W10"):  # whose sizes are those of the step before
        regions = executor.plan(workload.program, [workload.fetch]).text.count("region_")
        assert len(replays) == 4 * regions > 0  # but the first step


def network_of_chains():
    """A program whose steps wait nowhere and are regions alone, but for the updates."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[64])
        cost = ol.op.reduce_sum(ol.op.square(ol.layer.fc(ol.layer.fc(x, 32, act="tanh"), 8, act="sigmoid")))
        ol.optimizer.SGD(0.01).minimize(cost)
    return program, cost


@needs_gpu
def test_captured_steps_of_changing_sizes_and_inputs_are_those_of_lines(replays):
    program, cost = network_of_chains()
    place, kept = ol.GPUPlace(0), []
    feeds = [torch.randn(rows, 64, device=place.device) for rows in (8, 3, 8, 3, 8, 8, 3, 3, 8)]
    for backend in (None, "cuda_graphs"):
        step = ol.Executor(place, backend=backend).prepare(program, [cost], scope=ol.init(program, ol.Scope()), return_numpy=False)
        kept.append([step({"x": x})[0] for x in feeds])
    torch.testing.assert_close(*(torch.stack(costs).cpu() for costs in kept), rtol=1e-5, atol=1e-5)
    assert 7 * len(set(replays)) == 2 * len(replays) > 0  # two graphs of each region, replayed but for the first time of each size


@needs_gpu
def test_a_captured_step_does_not_wait_for_the_gpu():
    program, cost = network_of_chains()
    place = ol.GPUPlace(0)
    step = ol.Executor(place, backend="cuda_graphs").prepare(program, [cost], scope=ol.init(program, ol.Scope()), return_numpy=False)
    held = {"x": torch.randn(8, 64, device=place.device)}
    for _ in range(3):
        step(held)
    require_no_waiting(step, held)


@needs_gpu
def test_threads_with_streams_of_their_own_share_graphs():
    with ol.Program() as program:
        y = ol.op.exp(ol.op.tanh(ol.op.multiply(*[ol.layer.data("x", shape=[256])] * 2)))
    place = ol.GPUPlace(0)
    executor = ol.Executor(place, backend="cuda_graphs")

    def work(number):
        results = []
        with torch.cuda.stream(torch.cuda.Stream(place.device)):
            for trial in range(20):
                x = torch.full((512, 256), (number + trial) / 30, device=place.device)
                (result,) = executor.run(program, {"x": x}, [y], scope=ol.Scope(), return_numpy=False)
                results.append((result - torch.exp(torch.tanh(x * x))).abs().max().item())
        return max(results)

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(work, range(4))) < 1e-6


@needs_gpu
def test_what_cannot_be_captured_at_a_gpu_is_run_by_its_kernels(monkeypatch):
    """And streams are what they were before."""
    operator = standard.get("tanh")
    kernel = operator.kernel

    def asking(x):
        if torch.cuda.is_current_stream_capturing():
            torch.cuda.synchronize()
        return kernel(x)

    asking.__module__ = kernel.__module__
    monkeypatch.setattr(operator, "kernel", asking)
    with ol.Program() as program:
        y = ol.op.exp(ol.op.tanh(ol.op.multiply(*[ol.layer.data("x", shape=[3])] * 2)))
    place = ol.GPUPlace(0)
    executor, stream = ol.Executor(place, backend="cuda_graphs"), torch.cuda.current_stream()
    for number in range(4):
        x = torch.full((2, 3), float(number), device=place.device)
        (result,) = executor.run(program, {"x": x}, [y], scope=ol.Scope(), return_numpy=False)
        torch.testing.assert_close(result, torch.exp(torch.tanh(x * x)))
        assert torch.cuda.current_stream() == stream
