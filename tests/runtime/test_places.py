"""Places are values; what runs at one asks whether it is there."""

import dataclasses
import pickle

import numpy as np
import pytest
import torch

import oarlock as ol


@dataclasses.dataclass(frozen=True)
class XeonPhiPlace(ol.Place):
    """A place of a user's, which PyTorch drives as it does the processor."""

    card: int = 0

    @property
    def device(self):
        return torch.device("cpu")

    def require_there(self):
        if self.card > 1:
            raise ol.ArgumentError(f"there is no card {self.card}")


def doubled():
    with ol.Program() as program:
        return program, ol.layer.data("x", shape=[2]) * 2.0


@pytest.mark.mission("F20")
def test_a_gpu_that_is_not_there_can_be_named_compared_and_sent_and_is_refused_where_it_is_to_run():
    place = ol.GPUPlace(10_000)
    assert place == ol.GPUPlace(10_000) != ol.GPUPlace(1) != ol.CPUPlace()
    assert len({place, ol.GPUPlace(10_000), ol.GPUPlace(1)}) == 2
    assert pickle.loads(pickle.dumps(place)) == place
    assert (place.device, place.is_cpu, repr(place)) == (torch.device("cuda", 10_000), False, "GPUPlace(index=10000)")
    for use in (lambda: ol.Executor(place), lambda: ol.Executor([place]), lambda: ol.Context(ol.Scope(), place)):
        with pytest.raises(ol.ArgumentError, match="^there is no GPU 10000: PyTorch sees"):
            use()


@pytest.mark.parametrize("index", [-1, True, 1.0, "0", None])
def test_a_gpu_has_a_number(index):
    with pytest.raises(ol.ArgumentError, match="^a GPU has a number from 0"):
        ol.GPUPlace(index)


def test_a_place_of_a_users_own_runs_programs():
    program, y = doubled()
    executor = ol.Executor(XeonPhiPlace(1))
    assert executor.place == XeonPhiPlace(1)
    assert executor.run(program, {"x": np.ones((1, 2), "float32")}, [y], scope=ol.Scope())[0].tolist() == [[2.0, 2.0]]
    context = ol.Context(ol.Scope(), [XeonPhiPlace()])
    assert ol.eval(y, {"x": np.ones((1, 2), "float32")}, context=context).tolist() == [[2.0, 2.0]]
    with pytest.raises(ol.ArgumentError, match="^there is no card 2$"):
        ol.Executor(XeonPhiPlace(2))
    with pytest.raises(TypeError, match="abstract"):
        ol.Place()


@dataclasses.dataclass(frozen=True)
class ElsewherePlace(ol.Place):
    """A place whose tensors are not the processor's: they have a type and no elements."""

    @property
    def device(self):
        return torch.device("meta")


@pytest.mark.mission("F18")
def test_an_op_makes_its_output_at_the_place_of_the_run_in_the_size_that_follows_from_its_inputs():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        y = ol.op.linear(x, ol.op.fill(shape=(3, 5), value=1.0))
        z = ol.op.concat([y, y], axis=0)
    feed = {"x": np.ones((4, 3), "float32")}
    for place in (ol.CPUPlace(), ElsewherePlace()):
        for executor in (ol.Executor(place), ol.Executor(place, interpret=True)):
            found = executor.run(program, feed, [y, z], scope=ol.Scope(), return_numpy=False)
            assert [(value.device, tuple(value.shape)) for value in found] == [(place.device, (4, 5)), (place.device, (8, 5))]
        scope = ol.Scope()
        scope.set("x", torch.ones(4, 3, device=place.device))
        ol.run_block(program.main, scope, ol.Context(scope, place))
        assert (scope[z.name].device, tuple(scope[z.name].shape)) == (place.device, (8, 5))


@pytest.mark.mission("F15", "F17", "F19")
def test_a_context_has_places_and_makes_scopes_for_contexts_inside_it():
    context = ol.Context(ol.Scope(), ol.CPUPlace(), training=True)
    assert context.places == (ol.CPUPlace(),)
    subscope = context.create_scope("")
    assert subscope.parent is context.scope
    assert context.create_scope("") is not subscope
    assert context.create_scope("step") is context.create_scope("step")
    inner = ol.Context(subscope, context.places, context.training)
    assert (inner.scope, inner.place, inner.training) == (subscope, context.place, True)
    program, y = doubled()
    context.scope["x"] = np.ones((1, 2), "float32")
    ol.run_block(program.main, inner.scope, inner)
    assert y.name in subscope
    assert y.name not in context.scope
    context.scope.delete_scope(subscope)
    with pytest.raises(ol.ScopeError):
        subscope[y.name]


@pytest.mark.parametrize("scope", [None, {}, {"x": 1.0}, "scope", 0, ol.Scope])
def test_a_context_takes_a_scope_and_nothing_else(scope):
    with pytest.raises(ol.ArgumentError, match="^a run has a scope, not "):
        ol.Context(scope)
    program, y = doubled()
    with pytest.raises(ol.ArgumentError, match="^a run has a scope, not "):
        ol.Executor().run(program, {"x": np.ones((1, 2), "float32")}, [y], scope=scope)
