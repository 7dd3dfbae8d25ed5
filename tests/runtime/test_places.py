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
    with pytest.raises(ol.ArgumentError, match="^a GPU index must be an integer >= 0"):
        ol.GPUPlace(index)


def test_each_worker_on_a_machine_has_a_gpu_of_its_own(monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert ol.GPUPlace.of_worker() == ol.GPUPlace(0)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert ol.GPUPlace.of_worker() == ol.GPUPlace(3)
    monkeypatch.setenv("LOCAL_RANK", "-1")
    with pytest.raises(ol.ArgumentError, match=r"LOCAL_RANK must be the index of a worker on its machine, not '-1'"):
        ol.GPUPlace.of_worker()


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


class TextPlace(ol.Place):
    """A place whose device is text, of the class."""

    device = "cpu"


@dataclasses.dataclass(frozen=True)
class NamedPlace(ol.Place):
    """A place whose device is whatever it is given."""

    device: object = "cpu"


class AskedPlace(ol.Place):
    """A place whose device is text each time it is asked."""

    @property
    def device(self):
        return "meta"


PLACES = [TextPlace(), NamedPlace("cpu"), NamedPlace("meta"), NamedPlace(torch.device("meta")), AskedPlace()]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{type(place).__name__}-{place.device}")
def test_a_place_may_give_its_device_as_text(place):
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[3])
        cost = ol.layer.mean(ol.layer.fc(x, 2))
        ones = ol.op.full(shape=(2, 3), value=1.0)
        ol.optimizer.SGD(0.1).minimize(cost)
    feed = {"x": np.ones((2, 3), "float32")}
    assert place.is_cpu == (str(place.device) == "cpu")
    for options in ({}, {"interpret": True}):
        scope = ol.init(program, ol.Scope())
        executor = ol.Executor(place, **options)
        assert executor.place is place
        step = executor.prepare(program, [cost, ones], scope=scope, return_numpy=False)
        for _ in range(2):
            values = [*executor.run(program, feed, [cost, ones], scope=scope, return_numpy=False), *step(feed)]
            assert {value.device for value in values} == {torch.device(place.device)}
        assert scope["fc_0.w"].device == torch.device(place.device)
    scope = ol.Scope()
    with ol.Program() as program:
        y = ol.op.add(ol.minibatch([1, 2], name="x"), ol.op.full(shape=(1,), value=1.0))
    ol.run_block(program.main, scope, ol.Context(scope, place))
    assert scope[y.name].device == torch.device(place.device)


@pytest.mark.parametrize("device", ["nonsense:0", "nonsense", "", "cpu:x", None, 3, 1.5, ["cpu"], ol.CPUPlace()], ids=repr)
def test_a_device_that_is_none_is_refused_where_the_place_is_given(device):
    program, _ = doubled()
    place = NamedPlace(device)
    for use in (
        lambda: ol.Executor(place),
        lambda: ol.Executor([place]),
        lambda: ol.Context(ol.Scope(), place),
        lambda: program.main.run(ol.Scope(), place),
    ):
        with pytest.raises(ol.ArgumentError) as caught:
            use()
        assert caught.value.message == f"the device of NamedPlace is not a PyTorch device: {device!r}"
        assert caught.value.contract == 'a device is a torch.device or its name: "cpu", "cuda:0"'
        assert caught.value.given == (f"NamedPlace(device={device!r})",)
        assert caught.value.location.file.endswith("test_places.py")


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
        weight = ol.op.full(shape=(3, 5), value=1.0)
        y = ol.op.linear(x, weight)
        z = ol.op.concat([y, y], axis=0)
        made = [weight, ol.op.full_like(x, value=2.0, dtype="float32"), ol.op.arange_like(x)]  # of nothing that lies anywhere
    feed = {"x": np.ones((4, 3), "float32")}
    shapes = {y.name: (4, 5), z.name: (8, 5)} | dict(zip((var.name for var in made), [(3, 5), (4, 3), (4,)], strict=True))
    for place in (ol.CPUPlace(), ElsewherePlace()):
        expected = [(name, place.device, shape) for name, shape in shapes.items()]

        def seen(values, names=tuple(shapes)):
            return [(name, value.device, tuple(value.shape)) for name, value in zip(names, values, strict=True)]

        for passes in ({}, {"passes": ()}, {"interpret": True}):
            executor, scope = ol.Executor(place, **passes), ol.Scope()
            assert seen(executor.run(program, feed, list(shapes), scope=scope, return_numpy=False)) == expected
            step = executor.prepare(program, list(shapes), scope=scope, return_numpy=False)
            assert seen(step(feed)) == seen(step(feed)) == expected
        scope = ol.Scope()
        scope.set("x", torch.ones(4, 3, device=place.device))
        ol.run_block(program.main, scope, ol.Context(scope, place))
        assert seen([scope[name] for name in shapes]) == expected


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
    with pytest.raises(ol.ArgumentError, match="^scope must be a Scope, not ") as caught:
        ol.Context(scope)
    assert caught.value.location.file.endswith("test_places.py")
    program, y = doubled()
    with pytest.raises(ol.ArgumentError, match="^scope must be a Scope, not "):
        ol.Executor().run(program, {"x": np.ones((1, 2), "float32")}, [y], scope=scope)
