"""Programs at a GPU.

Where there is none, PyTorch's fake tensors stand for its memory: they have a device and a shape, and no elements. Kernels that mix places,
or that wait for the GPU because they ask for an element, are refused by them as they would be there. What is computed, and
how fast, only a GPU can tell: those tests are skipped without one.
"""

import numpy
import pytest
import torch
import workloads
from torch._subclasses import FakeTensorMode

import oarlock as ol

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@pytest.fixture
def fake_place(monkeypatch):
    """A place whose tensors are fake.

    Where PyTorch is built without CUDA, some methods ask for a GPU before they call an op, which would not: here they are the op.
    """
    indexed = torch.Tensor.__getitem__

    def item(self, index):
        if isinstance(index, int):
            return self.select(0, index)
        if isinstance(index, slice):
            return torch.ops.aten.slice(self, 0, index.start, index.stop, index.step or 1)
        return indexed(self, index)

    monkeypatch.setattr(torch.Tensor, "__getitem__", item)
    monkeypatch.setattr(torch.Tensor, "copy_", lambda self, other: torch.ops.aten.copy_(self, other))
    monkeypatch.setattr(torch.Tensor, "contiguous", lambda self, **format: torch.ops.aten.contiguous(self, **format))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    return ol.GPUPlace(0)


def run_fake(executor, program, feed, fetch, scope):
    """What a run gives, of fake tensors. It is planned before: passes look at numbers."""
    step = executor.prepare(program, fetch, scope=scope, return_numpy=False)
    with FakeTensorMode(allow_non_fake_inputs=True):
        return step(feed)


def a_loop():
    """A program, its cost, the gradients of its loop, and what is fed."""
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
        pairs = ol.append_backward(cost)
    return program, cost, [gradient for _, gradient in pairs], {"x": numpy.linspace(-1, 1, 60, dtype="float32").reshape(5, 3, 4)}


@pytest.mark.parametrize("settings", [{}, {"passes": ()}, {"interpret": True}], ids=["plan", "without passes", "interpreter"])
def test_a_loop_and_its_gradient_stay_at_their_place_and_ask_for_no_element(fake_place, settings):
    program, cost, gradients, feed = a_loop()
    scope = ol.init(program, ol.Scope())
    values = run_fake(ol.Executor(fake_place, **settings), program, feed, [cost, *gradients], scope)
    assert {value.device for value in values} == {fake_place.device}
    assert [tuple(value.shape) for value in values] == [(), *(tuple(gradient.shape) for gradient in gradients)]


def test_parameters_move_to_the_place_of_the_run_and_what_is_made_of_nothing_is_made_there(fake_place):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        y = ol.layer.fc(x, 2, name="fc") + ol.op.fill(shape=(2,), value=1.0)
    scope = ol.init(program, ol.Scope())
    assert scope["fc.w"].device.type == "cpu"
    for interpret in (False, True):
        (value,) = run_fake(ol.Executor(fake_place, interpret=interpret), program, {"x": [[1.0, 2.0, 3.0]]}, [y], scope)
        assert value.device == fake_place.device
        assert scope["fc.w"].device == scope["fc.b"].device == fake_place.device


def test_a_fake_place_refuses_what_a_gpu_would(fake_place):
    """So that the tests above can fail."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        there = torch.ones(3, 4, device=fake_place.device)
        with pytest.raises(RuntimeError, match="same device"):
            there + torch.ones(3, 4)
        with pytest.raises(RuntimeError, match="_local_scalar_dense"):
            there.sum().item()


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


@needs_gpu
def test_a_loop_does_not_wait_for_the_gpu():
    program, cost, gradients, feed = a_loop()
    place = ol.GPUPlace(0)
    step = ol.Executor(place).prepare(program, [cost, *gradients], scope=ol.init(program, ol.Scope()), return_numpy=False)
    held = {name: torch.tensor(value, device=place.device) for name, value in feed.items()}
    step(held)
    torch.cuda.set_sync_debug_mode("error")
    try:
        step(held)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@needs_gpu
def test_a_scope_that_was_at_a_gpu_is_read_at_the_processor():
    program, cost, _, feed = a_loop()
    scope = ol.init(program, ol.Scope())
    (before,) = ol.Executor().eval(program, [cost], feed, scope=scope)
    ol.Executor(ol.GPUPlace(0)).eval(program, [cost], feed, scope=scope)
    (after,) = ol.Executor().eval(program, [cost], feed, scope=scope)
    assert before == after
