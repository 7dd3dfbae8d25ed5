"""Normalizing layers: against PyTorch's, in training and out of it, and what becomes of running statistics."""

import numpy
import pytest
import torch
from tolerances import AUTOGRAD, LAYERS

import oarlock as ol
import oarlock.op.update


def require_close(actual: object, expected: torch.Tensor) -> None:
    torch.testing.assert_close(torch.as_tensor(actual), expected.detach(), rtol=LAYERS[0], atol=LAYERS[1])


def random_array(*shape: int, seed: int = 0) -> numpy.ndarray:
    return numpy.random.default_rng(seed).standard_normal(shape)


def test_a_layer_norm_is_that_of_pytorch():
    with ol.Program() as program:
        y = ol.layer.layer_norm(ol.layer.data("x", shape=[5, 4], dtype="float64"), epsilon=1e-3)
    assert {var.name: var.shape for var in program.parameters()} == {"layer_norm_0.scale": (4,), "layer_norm_0.bias": (4,)}
    assert (y.name, y.shape) == ("layer_norm_0.out", ("n", 5, 4))
    scope = ol.init(program, ol.Scope())
    scale, bias = torch.from_numpy(random_array(4, seed=1)), torch.from_numpy(random_array(4, seed=2))
    x = random_array(3, 5, 4)
    require_close(
        ol.Executor().run(program, {"x": x}, [y], scope=scope)[0], torch.nn.functional.layer_norm(torch.from_numpy(x), (4,), eps=1e-3)
    )
    scope.set("layer_norm_0.scale", scale)
    scope.set("layer_norm_0.bias", bias)
    expected = torch.nn.functional.layer_norm(torch.from_numpy(x), (4,), scale, bias, 1e-3)
    require_close(ol.Executor().run(program, {"x": x}, [y], scope=scope)[0], expected)


@pytest.mark.mission("C19")
@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5, 2)])
def test_batch_norm_follows_pytorch_through_training_and_after_it(shape):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=list(shape[1:]), dtype="float64")
        y = ol.layer.batch_norm(x, momentum=0.3, name="norm")
        cost = ol.layer.mean(ol.op.square(y + 0.5 * x))
        ol.optimizer.SGD(0.1).minimize(cost)
    assert program.main.vars["norm.mean@NEXT"].op.type == "batch_norm"
    assert {var.name: var.shape for var in program.parameters()} == {"norm.scale": (3,), "norm.bias": (3,)}
    scope = ol.init(program, ol.Scope())
    theirs = (torch.nn.BatchNorm1d if len(shape) == 2 else torch.nn.BatchNorm2d)(3, momentum=0.3).double()
    optimizer = torch.optim.SGD(theirs.parameters(), 0.1)
    executor = ol.Executor()
    for step in range(3):
        values = random_array(*shape, seed=step) * 2 + 1
        given = torch.from_numpy(values)
        result, loss = executor.run(program, {"x": values}, [y, cost], scope=scope, training=True)
        expected = theirs(given)
        require_close(result, expected)
        optimizer.zero_grad()
        their_loss = (expected + 0.5 * given).square().mean()
        their_loss.backward()
        optimizer.step()
        require_close(loss, their_loss)
        for name, value in (
            ("mean", theirs.running_mean),
            ("variance", theirs.running_var),
            ("scale", theirs.weight),
            ("bias", theirs.bias),
        ):
            require_close(scope[f"norm.{name}"], value)
    theirs.eval()
    before = {name: scope[f"norm.{name}"].clone() for name in ("mean", "variance")}
    expected = torch.nn.functional.batch_norm(given, before["mean"], before["variance"], theirs.weight, theirs.bias)
    require_close(executor.run(program, {"x": values}, [y], scope=scope, training=False)[0], expected)
    assert torch.equal(scope["norm.mean"], before["mean"]), "a step that is not training leaves the statistics"
    scope.set("norm.scale", theirs.weight.detach())
    scope.set("norm.bias", theirs.bias.detach())
    require_close(executor.eval(program, [y], {"x": values}, scope=scope)[0], expected)
    executor.eval(program, [y], {"x": values}, scope=scope, training=True)
    assert all(torch.equal(scope[f"norm.{name}"], value) for name, value in before.items()), "what is evaluated moves nothing"


def test_gradients_through_running_statistics_are_those_of_pytorch():
    values = random_array(4, 3, 2, 2)
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3, 2, 2], dtype="float64")
        y = ol.layer.batch_norm(x, name="norm")
        scale = program.main.vars["norm.scale"]
        gradients = ol.gradients([ol.layer.mean(ol.op.square(y) * x)], [x, scale, program.main.vars["norm.bias"]])
    scope = ol.init(program, ol.Scope())
    running = torch.tensor([0.1, -0.2, 0.3], dtype=torch.float64), torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
    scope.set("norm.mean", running[0])
    scope.set("norm.variance", running[1])
    leaves = [torch.from_numpy(values), torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)]
    leaves = [leaf.clone().requires_grad_() for leaf in leaves]
    expected = torch.nn.functional.batch_norm(leaves[0], *running, leaves[1], leaves[2])
    (expected.square() * leaves[0]).mean().backward()
    for actual, leaf in zip(ol.Executor().eval(program, gradients, {"x": values}, scope=scope), leaves, strict=True):
        require_close(actual, leaf.grad)


def test_one_value_of_a_channel_tells_no_variance_and_no_rows_tell_nothing():
    with ol.Program() as program:
        y = ol.layer.batch_norm(ol.layer.data("x", shape=[2], dtype="float64"), name="norm")
    scope = ol.init(program, ol.Scope())
    executor = ol.Executor()
    assert executor.run(program, {"x": [[3.0, 5.0]]}, [y], scope=scope, training=True)[0].tolist() == [[0.0, 0.0]]
    require_close(scope["norm.mean"], torch.tensor([0.3, 0.5], dtype=torch.float64))
    require_close(scope["norm.variance"], torch.ones(2, dtype=torch.float64))
    assert executor.run(program, {"x": numpy.zeros((0, 2))}, [y], scope=scope, training=True)[0].shape == (0, 2)
    require_close(scope["norm.mean"], torch.tensor([0.3, 0.5], dtype=torch.float64))


def test_what_a_model_file_keeps_of_batch_norm_is_what_inference_reads(tmp_path):
    with ol.Program() as program:
        y = ol.layer.batch_norm(ol.layer.data("x", shape=[2], dtype="float64"), name="norm")
    scope = ol.init(program, ol.Scope())
    ol.Executor().run(program, {"x": random_array(8, 2)}, [], scope=scope, training=True)
    pruned = ol.prune(program, {"y": y})
    assert [op.type for op in pruned.main.ops] == ["batch_norm", "assign", "assign"], "the statistics go on with the layer"
    assert {var.name for var in pruned.persistables()} == {"norm.scale", "norm.bias", "norm.mean", "norm.variance"}
    x = random_array(3, 2, seed=1)
    before, after = (ol.Executor().eval(item, [name], {"x": x}, scope=scope)[0] for item, name in ((program, y), (pruned, "norm.out")))
    assert numpy.array_equal(before, after)


def test_batch_norm_is_refused_where_its_statistics_cannot_be_kept():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["n", 3], batch="t")
        rnn = ol.rnn()
        with pytest.raises(ol.ProgramError) as raised, rnn.step():
            ol.layer.batch_norm(rnn.step_input(x), name="norm")
    assert raised.value.message == "batch_norm: its running statistics cannot be updated in main/rnn_0.body"
    assert raised.value.contract == "a step writes persistable variables of the main block only, after every other op"
    assert program.persistables() == []


def test_two_layers_of_one_name_would_have_one_mean():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        ol.layer.batch_norm(x, name="norm")
        before = program.to_bytes()
        with pytest.raises(ol.ProgramError) as raised:
            ol.layer.batch_norm(x, name="norm")
    assert raised.value.message == 'batch_norm: "norm.mean" is already declared, and running statistics belong to one layer'
    assert program.to_bytes() == before


def test_layers_are_numbered_one_after_another():
    with ol.Program():
        x = ol.layer.data("x", shape=[3])
        names = [layer(x).name for layer in (ol.layer.batch_norm, ol.layer.batch_norm, ol.layer.layer_norm, ol.layer.layer_norm)]
    assert names == ["batch_norm_0.out", "batch_norm_1.out", "layer_norm_0.out", "layer_norm_1.out"]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 2, 2), (1, 3, 2)])
@pytest.mark.parametrize("power", [1, 2])
def test_gradients_of_the_gradients_of_batch_norm_are_those_of_pytorch(power, shape, training):
    """By the batch's statistics, which depend on x, and by running ones; where y is in the first gradient, and where it is not."""
    with ol.Program() as program:
        x, weight = (ol.layer.data(name, shape=list(shape[1:]), dtype="float64") for name in ("x", "weight"))
        y = ol.layer.batch_norm(x, name="norm")
        parameters = [x, *(program.main.vars[f"norm.{name}"] for name in ("scale", "bias"))]
        cost = ol.op.reduce_sum(ol.op.multiply(weight, y if power == 1 else ol.op.square(y)))
        penalty = ol.op.sum([ol.op.reduce_sum(ol.op.square(var)) for var in ol.gradients([cost], parameters)])
        wanted = [*parameters, weight]
        found = ol.gradients([penalty], wanted)
    scope = ol.init(program, ol.Scope())
    fed = {"x": random_array(*shape, seed=1), "weight": random_array(*shape, seed=2)}
    running, variance, scale, bias = (torch.from_numpy(random_array(3, seed=seed)) for seed in (3, 4, 5, 6))
    variance = variance.square() + 0.5
    for name, value in {"mean": running, "variance": variance, "scale": scale, "bias": bias}.items():
        scope.set(f"norm.{name}", value.clone())
    leaves = [leaf.clone().requires_grad_() for leaf in (torch.from_numpy(fed["x"]), scale, bias, torch.from_numpy(fed["weight"]))]
    theirs = torch.nn.functional.batch_norm(leaves[0], running, variance, leaves[1], leaves[2], training=training)
    first = torch.autograd.grad((leaves[3] * theirs**power).sum(), leaves[:3], create_graph=True)
    expected = torch.autograd.grad(torch.stack([each.square().sum() for each in first]).sum(), leaves, allow_unused=True)
    for executor in (ol.Executor(interpret=True), ol.Executor(passes=()), ol.Executor()):
        reached = [var for var in found if var is not None]
        values = dict(zip(reached, executor.eval(program, reached, fed, scope=scope, training=training), strict=True))
        for var, leaf, theirs_of in zip(found, leaves, expected, strict=True):
            actual = torch.zeros_like(leaf) if var is None else torch.from_numpy(values[var])
            wanted_of = torch.zeros_like(leaf) if theirs_of is None else theirs_of
            torch.testing.assert_close(actual, wanted_of, rtol=AUTOGRAD[0], atol=AUTOGRAD[0] * float(wanted_of.abs().max()))


def test_the_second_gradient_of_no_rows_is_nothing():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], dtype="float64")
        (first,) = ol.gradients([ol.op.reduce_sum(ol.op.square(ol.layer.batch_norm(x, name="norm")))], [x])
        found = ol.gradients([ol.op.reduce_sum(ol.op.square(first))], [x, program.main.vars["norm.scale"]])
    scope = ol.init(program, ol.Scope())
    for executor in (ol.Executor(interpret=True), ol.Executor()):
        of_x, of_scale = executor.eval(program, found, {"x": numpy.zeros((0, 2))}, scope=scope, training=True)
        assert of_x.shape == (0, 2)
        assert of_scale.tolist() == [0.0, 0.0]


KEPT = {
    "means of all batches": (lambda x: ol.layer.batch_norm(x, momentum=None, name="norm"), torch.nn.BatchNorm2d(3, momentum=None)),
    "no statistics": (lambda x: ol.layer.batch_norm(x, running=False, name="norm"), torch.nn.BatchNorm2d(3, track_running_stats=False)),
    "of instances": (
        lambda x: ol.layer.instance_norm(x, running=True, momentum=0.3, scale=True, bias=True, name="norm"),
        torch.nn.InstanceNorm2d(3, momentum=0.3, affine=True, track_running_stats=True),
    ),
}


@pytest.mark.parametrize("kind", KEPT)
@pytest.mark.parametrize("options", [{"interpret": True}, {}], ids=["interpreter", "plan"])
def test_statistics_are_kept_as_pytorch_keeps_them(kind, options):
    layer, module = KEPT[kind]
    module.double().reset_running_stats()
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3, "h", 4], dtype="float64")
        y = layer(x)
        (dx,) = ol.gradients([ol.op.reduce_sum(ol.op.exp(y))], [x])
    scope, executor = ol.init(program, ol.Scope()), ol.Executor(**options)
    for number, training in enumerate((True, True, False, True, False)):
        value = 2.0 + 3.0 * random_array(2 + number, 3, 5, 4, seed=number)
        given = torch.from_numpy(value).requires_grad_()
        expected = module.train(training)(given)
        expected.exp().sum().backward()
        found = executor.run(program, {"x": value}, [y, dx], scope=scope, training=training)
        require_close(found[0], expected)
        require_close(found[1], given.grad)
        for ours, theirs in (("norm.mean", module.running_mean), ("norm.variance", module.running_var)):
            if theirs is not None:
                require_close(scope[ours], theirs)
    assert ("norm.mean" in [var.name for var in program.persistables()]) == (kind != "no statistics")


def test_no_rows_change_no_statistics_of_instances():
    with ol.Program() as program:
        y = ol.layer.instance_norm(ol.layer.data("x", shape=[3, 4]), running=True, name="norm")
    scope = ol.init(program, ol.Scope())
    (found,) = ol.Executor().run(program, {"x": numpy.zeros((0, 3, 4), "float32")}, [y], scope=scope, training=True)
    assert found.shape == (0, 3, 4)
    assert (scope["norm.mean"].tolist(), scope["norm.variance"].tolist()) == ([0.0] * 3, [1.0] * 3)


def test_statistics_of_instances_are_refused_where_they_cannot_be_kept():
    with ol.Program(), pytest.raises(ol.ProgramError, match='instance_norm: "norm.mean" is already declared'):
        x = ol.layer.data("x", shape=[3, 4])
        ol.layer.instance_norm(ol.layer.instance_norm(x, running=True, name="norm"), running=True, name="norm")
