"""Tied weights: one tensor under several names, in files of PyTorch's and back in its modules."""

import itertools

import pytest
import safetensors.torch
import torch
from torch import nn

import oarlock as ol

IDS = torch.tensor([1, 2, 4])


class Tied(nn.Module):
    """An embedding whose table is the matrix of the layer on top."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids):
        return self.head(self.table(ids))


class Shared(nn.Module):
    """A layer under three names, and a buffer under two."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.first = nn.Linear(3, 3)
        self.second = self.first
        self.third = nn.Linear(3, 3)
        self.third.weight = self.first.weight
        self.register_buffer("shift", torch.ones(3))
        self.register_buffer("again", self.shift)

    def forward(self, ids):
        return (self.third(self.second(torch.tanh(self.first(self.table(ids))))) + self.shift) * self.again


NAMES = {
    Tied: [("table.weight", "head.weight")],
    Shared: [("first.weight", "second.weight", "third.weight"), ("first.bias", "second.bias"), ("shift", "again")],
}


def module(kind, seed=0):
    torch.manual_seed(seed)
    made = kind()
    for buffer in made.buffers():
        buffer.copy_(torch.randn(3))
    return made


def imported(kind, seed=9):
    return ol.from_torch(module(kind, seed), IDS, dynamic="n")


def require_same(model, expected):
    """That a model computes what a module does, and that the state of the one is taken by the other."""
    found = ol.infer(model, {"ids": IDS.numpy()})
    torch.testing.assert_close(torch.as_tensor(found), expected(IDS).detach())
    state, again = ol.to_torch_state(model), module(type(expected), seed=5)
    again.load_state_dict(state, strict=True)
    assert list(state) == list(expected.state_dict()) or set(state) == set(expected.state_dict())
    assert all(torch.equal(again.state_dict()[name], value) for name, value in expected.state_dict().items())


def subsets(names):
    return [some for count in range(1, len(names) + 1) for some in itertools.combinations(names, count)]


@pytest.mark.parametrize("kind", NAMES)
def test_any_of_the_names_is_enough_and_several_are_fine_where_they_are_equal(kind, tmp_path):
    source, model = module(kind), imported(kind)
    whole = {name: value.clone() for name, value in source.state_dict().items()}
    assert set(ol.to_torch_state(model)) == set(whole)
    for group in NAMES[kind]:
        for kept in subsets(group):
            model = imported(kind)
            held = {name: value for name, value in whole.items() if name not in group or name in kept}
            safetensors.torch.save_file(held, tmp_path / "w.safetensors")
            loaded = ol.load_weights(model, tmp_path / "w.safetensors")
            assert (loaded.missing, loaded.unexpected) == ((), ())
            require_same(model, source)


@pytest.mark.parametrize("kind", NAMES)
def test_a_file_of_save_model_and_a_state_dict_with_all_names_are_taken(kind, tmp_path):
    source = module(kind)
    safetensors.torch.save_model(source, str(tmp_path / "dropped.safetensors"))
    torch.save(source.state_dict(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    safetensors.torch.save_file({name: value.clone() for name, value in state.items()}, tmp_path / "whole.safetensors")
    for file in ("dropped.safetensors", "whole.safetensors"):
        model = imported(kind)
        ol.load_weights(model, tmp_path / file)
        require_same(model, source)
        ol.save_model(model, tmp_path / "ours")
        require_same(ol.load_model(tmp_path / "ours"), source)
        read = ol.load_model(tmp_path / "ours")  # which knows the names without the module
        ol.load_weights(read, tmp_path / file)
        require_same(read, source)


def test_a_program_and_a_scope_know_the_names_too(tmp_path):
    source, model = module(Tied), imported(Tied)
    safetensors.torch.save_file({"head.weight": source.head.weight.detach().clone()}, tmp_path / "w.safetensors")
    assert torch.equal(ol.load_weights(model.program, tmp_path / "w.safetensors").scope["table.weight"], source.table.weight)
    assert ol.load_weights(model.scope, tmp_path / "w.safetensors").loaded == ("table.weight",)
    require_same(model, source)


def test_a_layer_of_ones_own_program_knows_the_names_behind_its_own(tmp_path):
    source, model = module(Tied), imported(Tied)
    with ol.Program() as program:
        program.targets["y"] = model(ol.layer.data("ids", [], dtype="int64"), name="trunk")
    safetensors.torch.save_file({"trunk.head.weight": source.head.weight.detach().clone()}, tmp_path / "w.safetensors")
    scope = ol.load_weights(program, tmp_path / "w.safetensors").scope
    assert torch.equal(scope["trunk.table.weight"], source.table.weight)
    safetensors.torch.save_model(source, str(tmp_path / "m.safetensors"))
    names = lambda name: name.removeprefix("trunk.")  # noqa: E731
    scope = ol.load_weights(program, tmp_path / "m.safetensors", names=names).scope
    assert torch.equal(scope["trunk.table.weight"], source.table.weight)
    module(Tied, seed=3).load_state_dict(ol.to_torch_state(scope, source, name="trunk"), strict=True)


def test_tensors_of_one_variable_that_differ_are_refused_and_nothing_is_changed(tmp_path):
    model = imported(Tied)
    before = model.scope["table.weight"].clone()
    safetensors.torch.save_file({"table.weight": torch.ones(5, 3), "head.weight": torch.zeros(5, 3)}, tmp_path / "w.safetensors")
    with pytest.raises(ol.ArgumentError) as caught:
        ol.load_weights(model, tmp_path / "w.safetensors")
    assert caught.value.message == '"table.weight" and "head.weight" are tied to one variable, "table.weight", but their tensors differ'
    assert caught.value.given == ('"table.weight" in "w.safetensors"', '"head.weight" in "w.safetensors"')
    assert caught.value.hint == 'use names={"head.weight": None} with strict=False to skip "head.weight"'
    assert torch.equal(model.scope["table.weight"], before)
    assert ol.load_weights(model, tmp_path / "w.safetensors", names={"head.weight": None}, strict=False).unexpected == ("head.weight",)
    assert torch.equal(model.scope["table.weight"], torch.ones(5, 3))


def test_another_shape_or_dtype_under_the_other_name_is_refused_as_under_the_first(tmp_path):
    for value, error in ((torch.ones(3, 5), ol.ShapeError), (torch.ones(5, 3, dtype=torch.float16), ol.DTypeError)):
        safetensors.torch.save_file({"head.weight": value}, tmp_path / "w.safetensors")
        with pytest.raises(error, match='"head.weight" is float32'):
            ol.load_weights(imported(Tied), tmp_path / "w.safetensors")
    model = imported(Tied)
    assert ol.load_weights(model, tmp_path / "w.safetensors", cast=True).loaded == ("table.weight",)
    assert torch.equal(model.scope["table.weight"], torch.ones(5, 3))


def test_without_any_of_its_names_a_variable_is_missing(tmp_path):
    safetensors.torch.save_file({"other": torch.ones(5, 3)}, tmp_path / "w.safetensors")
    with pytest.raises(ol.UndefinedVarError, match="1 of 1 variables have no tensor, and 1 tensor of 1 is not used by any variable"):
        ol.load_weights(imported(Tied), tmp_path / "w.safetensors")


def test_what_is_trained_goes_back_to_the_module_under_all_of_its_names():
    model, data = imported(Tied), {"ids": IDS.numpy(), "label": IDS.numpy()}
    with ol.Program():
        logits = model(ol.layer.data("ids", [], dtype="int64"))
        cost = ol.layer.mean(ol.op.softmax_with_cross_entropy(logits, ol.layer.data("label", [], dtype="int64")))
    result = ol.train(cost, data, optimizer=ol.optimizer.SGD(0.5), epochs=2, batch_size=3, progress=False)
    state, again = ol.to_torch_state(result), module(Tied)
    again.load_state_dict(state, strict=True)
    assert torch.equal(state["head.weight"], state["table.weight"])
    assert not torch.equal(state["head.weight"], model.scope["table.weight"])
