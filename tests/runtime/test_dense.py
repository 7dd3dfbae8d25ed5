"""A scope and a feed may hold tensors that are not dense, or have no elements: no way of running a program computes with them."""

import dataclasses
from collections.abc import Callable

import pytest
import torch

import oarlock as ol
from oarlock.runtime import tensor_guard

pytestmark = pytest.mark.filterwarnings("ignore:.*(Sparse|nested|quantize|quantization|quantized).*")
STATE = "fc_0.w@VELOCITY"
KINDS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str, str]] = {
    "sparse": (lambda tensor: tensor.to_sparse(), "a sparse tensor", "value.to_dense()"),
    "rows": (lambda tensor: tensor.to_sparse_csr(), "a sparse tensor", "value.to_dense()"),
    "mkldnn": (lambda tensor: tensor.to_mkldnn(), "a tensor in an MKL-DNN layout", "value.to_dense()"),
    "nested": (lambda tensor: torch.nested.nested_tensor(list(tensor)), "a nested tensor", "value.to_padded_tensor(0.0)"),
    "jagged": (
        lambda tensor: torch.nested.nested_tensor(list(tensor), layout=torch.jagged),
        "a nested tensor",
        "value.to_padded_tensor(0.0)",
    ),
    "meta": (
        lambda tensor: tensor.to("meta"),
        'float32[{}] without elements (device "meta")',
        'torch.zeros_like(value, device="cpu")',
    ),
}


@dataclasses.dataclass(frozen=True)
class MetaPlace(ol.Place):
    """A place whose tensors have types and no elements."""

    @property
    def device(self) -> torch.device:
        return torch.device("meta")


def trained() -> tuple[ol.Program, ol.Scope]:
    with ol.Program(seed=0) as program:
        cost = ol.layer.mean(ol.layer.fc(ol.layer.data("x", [3]), 4))
        program.targets["cost"] = cost
        ol.optimizer.Momentum(0.1).minimize(cost)
    return program, ol.init(program, ol.Scope())


def step(program: ol.Program, scope: ol.Scope, feed: dict[str, object], **options: object) -> object:
    prepared = ol.Executor().prepare(program, ["cost"], scope=scope, **options)  # type: ignore[arg-type]
    return prepared(feed)


WAYS: dict[str, Callable[[ol.Program, ol.Scope, dict[str, object]], object]] = {
    "plan": lambda program, scope, feed: ol.Executor().run(program, feed, ["cost"], scope=scope),
    "plan_without_passes": lambda program, scope, feed: ol.Executor(passes=()).run(program, feed, ["cost"], scope=scope),
    "prepared": step,
    "interpreter": lambda program, scope, feed: ol.Executor(interpret=True).run(program, feed, ["cost"], scope=scope),
    "checked": lambda program, scope, feed: ol.Executor(check=True).run(program, feed, ["cost"], scope=scope),
    "limited": lambda program, scope, feed: ol.Executor(limits=ol.RunLimits()).run(program, feed, ["cost"], scope=scope),
    "kept_scopes": lambda program, scope, feed: ol.Executor().run(program, feed, ["cost"], scope=scope, keep_scopes=True),
}


def dense_state(scope: ol.Scope) -> dict[str, bytes]:
    return {name: scope[name].numpy().tobytes() for name in scope if name != STATE}  # type: ignore[attr-defined]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_state_that_is_not_dense_is_refused_before_anything_runs(kind: str, way: str):
    make, what, form = KINDS[kind]
    program, scope = trained()
    scope[STATE] = make(torch.ones(3, 4))
    before = dense_state(scope)
    with pytest.raises(ol.DTypeError) as raised:
        WAYS[way](program, scope, {"x": torch.ones(2, 3)})
    assert raised.value.message == f'"{STATE}" is {what.format("3, 4")} in the scope, but float32[3, 4] in the program'
    assert raised.value.hint == f'convert it to a dense tensor: scope.set("{STATE}", {form})'
    assert dense_state(scope) == before
    scope[STATE] = torch.zeros(3, 4)
    WAYS[way](program, scope, {"x": torch.ones(2, 3)})
    assert dense_state(scope) != before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_feed_that_is_not_dense_is_refused(kind: str, way: str):
    make, what, form = KINDS[kind]
    program, scope = trained()
    before = dense_state(scope)
    with pytest.raises(ol.FeedError) as raised:
        WAYS[way](program, scope, {"x": make(torch.ones(2, 3))})
    assert raised.value.message == f'"x" must be float32[n, 3], not {what.format("2, 3")}'
    assert raised.value.hint == f'convert it to a dense tensor: feed={{"x": {form}}}'
    assert dense_state(scope) == before


@pytest.mark.parametrize("guards", [tensor_guard.tensor_guards, lambda *tensors, **how: None], ids=["in one call", "each"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_that_has_seen_dense_tensors_looks_at_the_next(guards: object, kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tensor_guard, "tensor_guards", guards)
    make, _, _ = KINDS[kind]
    program, scope = trained()
    run = ol.Executor().prepare(program, ["cost"], scope=scope)
    for _ in range(3):
        run({"x": torch.ones(2, 3)})
    with pytest.raises(ol.FeedError):
        run({"x": make(torch.ones(2, 3))})
    scope[STATE] = make(torch.ones(3, 4))
    with pytest.raises(ol.DTypeError):
        run({"x": torch.ones(2, 3)})


@pytest.mark.parametrize("name", ["x", "fc_0.w"])
@pytest.mark.parametrize("kind", KINDS)
def test_ops_that_are_run_where_the_caller_says_look_too(name: str, kind: str):
    make, what, form = KINDS[kind]
    program, scope = trained()
    scope["x"] = torch.ones(2, 3)
    sizes = "2, 3" if name == "x" else "3, 4"
    scope[name] = make(torch.ones(*map(int, sizes.split(", "))))
    for run in (ol.run_block, lambda block, scope, **_: block.run(scope)):
        with pytest.raises(ol.DTypeError) as raised:
            run(program.main, scope, check=False)
        declared = program.main.vars[name].type_text
        assert raised.value.message == f'"{name}" is declared as {declared}, but is {what.format(sizes)}'
        assert raised.value.hint == f'convert it to a dense tensor: scope.set("{name}", {form})'


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_dense_is_not_saved(kind: str, tmp_path):
    make, what, _ = KINDS[kind]
    program, scope = trained()
    scope["fc_0.w"] = make(torch.ones(3, 4))
    with pytest.raises(ol.DTypeError) as raised:
        ol.save_model(program, scope, tmp_path / "model.safetensors")
    assert raised.value.message == f'"fc_0.w" is {what.format("3, 4")} in the scope, but float32[3, 4] in the program'
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("way", WAYS)
def test_state_of_a_dtype_that_no_program_has_is_named(way: str):
    program, scope = trained()
    scope.var("fc_0.w").value = torch.quantize_per_tensor(torch.ones(3, 4), 0.1, 0, torch.quint8)
    with pytest.raises(ol.DTypeError) as raised:
        WAYS[way](program, scope, {"x": torch.ones(2, 3)})
    assert raised.value.message == '"fc_0.w" is torch.quint8[3, 4] in the scope, but float32[3, 4] in the program'


@pytest.mark.parametrize("options", [{}, {"interpret": True}])
def test_where_the_place_itself_has_no_elements_tensors_may_lack_them(options: dict[str, bool]):
    with ol.Program(seed=0) as program:
        program.targets["y"] = ol.layer.fc(ol.layer.data("x", [3]), 4, bias=False)
    executor = ol.Executor(MetaPlace(), **options)  # type: ignore[arg-type]
    for weight in (torch.ones(3, 4, device="meta"), torch.ones(3, 4)):
        scope = ol.Scope()
        scope["fc_0.w"] = weight
        (found,) = executor.run(program, {"x": torch.ones(2, 3, device="meta")}, ["y"], scope=scope, return_numpy=False)
        assert (found.device.type, tuple(found.shape)) == ("meta", (2, 4))  # type: ignore[union-attr]
        scope["fc_0.w"] = torch.ones(3, 4).to_sparse()
        with pytest.raises(ol.DTypeError, match="is a sparse tensor in the scope"):
            executor.run(program, {"x": torch.ones(2, 3, device="meta")}, ["y"], scope=scope, return_numpy=False)


@pytest.mark.parametrize("kind", KINDS)
def test_what_becomes_an_array_is_dense(kind: str):
    make, what, form = KINDS[kind]
    value = make(torch.ones(2, 3))
    described = what.format("2, 3")
    with ol.Program(seed=0):
        with pytest.raises(ol.ArgumentError) as refused:
            ol.layer.data("x", value=value)
        assert (refused.value.message, refused.value.hint) == (f'"x": {described} cannot be stored in a file', form)
        cost = ol.layer.mean(ol.layer.fc(ol.layer.data("x", [3]), 4))
    with pytest.raises(ol.FeedError) as fed:
        ol.train(cost, {"x": value}, optimizer=ol.optimizer.SGD(0.1), epochs=1, progress=False)
    assert fed.value.message == f'"x" must be float32[n, 3], not {described}'
    assert fed.value.hint == f"convert it to a dense tensor: {form}"
    with pytest.raises(ol.ArgumentError) as ragged:
        ol.Ragged(value, (torch.tensor([0, 2]),))  # type: ignore[arg-type]
    assert f"{described} cannot be converted to an array" in str(ragged.value)
