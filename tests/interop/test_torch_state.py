"""The values of a module: trained here, and back in a state dict; names, ties, statistics and counters."""

import numpy
import pytest
import torch
from torch import nn

import oarlock as ol


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(4, 4), nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.second.weight = self.first.weight
        self.frozen = nn.Parameter(torch.ones(4), requires_grad=False)
        self.table = nn.Parameter(torch.ones(4))

    def forward(self, x):
        with torch.no_grad():
            shift = self.table * 2.0
        return self.norm(self.second(torch.relu(self.first(x)))) + self.frozen + shift


@pytest.fixture
def module():
    torch.manual_seed(0)
    return Tied().double()


def rows(count):
    return torch.randn(count, 4, dtype=torch.float64)


def test_tied_parameters_are_one_variable_and_frozen_ones_stay_so(module):
    program = ol.from_torch(module, rows(2)).program
    assert {var.name: var.trainable for var in program.parameters()} == {
        "frozen": False,
        "table": False,  # no gradient comes to it
        "first.weight": True,
        "first.bias": True,
        "second.bias": True,
        "norm.weight": True,
        "norm.bias": True,
    }


def test_a_step_of_training_gives_the_gradients_and_buffers_of_pytorch(module):
    x = rows(6)
    model = ol.from_torch(module, x[:2], dynamic="n")
    with model.program:
        loss = ol.op.mean(ol.op.square(model.output))
        pairs = ol.append_backward(loss)
    values = ol.Executor().run(model.program, {"x": x}, [loss, *(gradient for _, gradient in pairs)], scope=model.scope, training=True)
    module.train()
    expected = module(x).square().mean()
    expected.backward()
    assert abs(values[0] - expected.item()) < 1e-12
    gradients = dict(module.named_parameters())
    for (parameter, _), value in zip(pairs, values[1:], strict=True):
        numpy.testing.assert_allclose(value, gradients[parameter.name].grad, rtol=1e-9, atol=1e-12)
    for name, buffer in module.named_buffers():
        numpy.testing.assert_allclose(model.scope[name], buffer, rtol=1e-12)


def test_a_run_that_does_not_train_leaves_the_statistics(module):
    model = ol.from_torch(module, rows(2), dynamic="n")
    ol.infer(model, {"x": rows(5)})
    assert {name: value.tolist() for name, value in ol.to_torch_state(model).items()} == {
        name: value.tolist() for name, value in module.state_dict().items()
    }


class Unread(nn.Module):
    """Tied weights, and a buffer that nothing reads: neither is touched by any op of the program."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("version", torch.tensor([3]))

    def forward(self, x):
        return self.second(self.first(x))


def test_values_that_no_op_touches_do_not_keep_a_module_from_training_where_it_came_in():
    module = Unread()
    model = ol.from_torch(module, torch.randn(2, 4), dynamic="n")
    with model.program:
        cost = ol.layer.mean(ol.op.square(model.output))
    before = model.scope["first.weight"].clone()
    result = ol.train(cost, {"x": torch.randn(8, 4).numpy()}, batch_size=4, scope=model.scope, progress=False)
    assert not torch.equal(result.parameters["first.weight"], before)
    state = ol.to_torch_state(result, module)
    assert sorted(state) == ["first.weight", "second.weight", "version"]
    module.load_state_dict(state)
    assert torch.equal(module.second.weight, result.parameters["first.weight"])


def test_what_was_imported_is_a_copy(module):
    model = ol.from_torch(module, rows(2), dynamic="n")
    before = ol.infer(model, {"x": torch.ones(1, 4, dtype=torch.float64)})
    with torch.no_grad():
        module.first.bias += 1.0
    assert (ol.infer(model, {"x": torch.ones(1, 4, dtype=torch.float64)}) == before).all()
    start = model.scope["first.bias"].clone()
    with model.program:
        ol.optimizer.SGD(0.5).minimize(ol.op.mean(ol.op.square(model.output)))
    ol.init(model.program, model.scope)
    for _ in range(2):
        ol.Executor().run(model.program, {"x": rows(3)}, scope=model.scope)
    assert not torch.equal(model.scope["first.bias"], start)
    assert torch.equal(ol.init(model.program, ol.Scope())["first.bias"], start)


def test_a_layer_is_trained_in_a_program_of_ones_own_and_goes_back(module, tmp_path):
    trunk = ol.from_torch(module, rows(2), dynamic="n")
    with ol.Program() as program:
        x = ol.layer.data("x", [4], "float64")
        cost = ol.layer.mean(ol.op.square(ol.layer.fc(trunk(x, name="trunk"), 2)))
    assert program.main.find_var("trunk.first.weight").shape == (4, 4)
    result = ol.train(cost, {"x": rows(12).numpy()}, batch_size=4, epochs=2, progress=False, tune=False)
    path = tmp_path / "trained.safetensors"
    ol.save_model(result, path)
    state = ol.to_torch_state(ol.load_model(path), name="trunk")
    assert state["norm.num_batches_tracked"] == 6
    assert torch.equal(state["first.weight"], state["second.weight"])
    assert not torch.equal(state["first.weight"], module.first.weight)
    assert torch.equal(state["table"], module.table)
    x = rows(5)
    with ol.Program():
        given = ol.layer.data("x", [4], "float64")
        expected = ol.infer(trunk(given, name="trunk"), {"x": x}, result.parameters)
    module.load_state_dict(state)
    numpy.testing.assert_allclose(module.eval()(x).detach(), expected, rtol=1e-12)
    assert list(ol.to_torch_state(result, module, name="trunk")) == list(module.state_dict())


def test_calls_share_parameters_but_not_statistics(module):
    trunk = ol.from_torch(module, rows(2), dynamic="n")
    with ol.Program() as program:
        x = ol.layer.data("x", [4], "float64")
        trunk(x)
        before = str(program)
        with pytest.raises(ol.UnsupportedError) as raised:
            trunk(x)
    assert str(program) == before
    assert [refusal.why for refusal in raised.value.refusals] == [
        f'"norm.{name}" is updated twice in one step' for name in ("running_mean", "running_var", "num_batches_tracked")
    ]


def test_another_module_of_the_same_names_is_refused(module):
    one, two = ol.from_torch(nn.Linear(4, 4), torch.ones(2, 4)), ol.from_torch(nn.Linear(4, 4), torch.ones(2, 4))
    with ol.Program():
        x = ol.Variable(shape=[2, 4], name="x")
        one(x)
        with pytest.raises(ol.ProgramError) as raised:
            two(x)
        two(x, name="two")
    assert raised.value.message == 'from_torch: "weight" is already declared for another tensor'


def test_a_call_is_held_to_the_example():
    layer = ol.from_torch(nn.Linear(4, 4), torch.ones(2, 4))
    with ol.Program() as program:
        with pytest.raises(ol.ShapeError) as raised:
            layer(ol.layer.data("x", [4]))
        with pytest.raises(ol.DTypeError) as other:
            layer(ol.Variable(shape=[2, 4], name="y", dtype="float64"))
        with pytest.raises(ol.ArgumentError):
            layer()
    assert not program.main.ops
    assert raised.value.message == 'from_torch: the input "input" has size n on axis 0, but the module was imported for 2'
    assert raised.value.hint == 'from_torch(..., dynamic={"input": {0: "n"}}) makes the size symbolic'
    assert other.value.message == "Linear: input must be float32, not float64"


def test_parts_of_one_memory_are_refused():
    module = nn.Linear(4, 4)
    module.part = nn.Parameter(module.weight.detach()[:2])
    with pytest.raises(ol.UnsupportedError) as raised:
        ol.from_torch(module, torch.ones(2, 4))
    assert raised.value.message == 'from_torch: "part" and "weight" share memory but are not the same tensor'
