import numpy
import pytest
import torch

import oarlock as ol

IMAGES = numpy.random.default_rng(0).random((16, 12), dtype="float32")
LABELS = numpy.arange(16) % 10


def build(order=("backward", "optimization"), *, probabilities=False):
    """The example of the net design, with a smaller image: image -> fc sigmoid -> fc sigmoid -> cross_entropy -> mean.

    Its cross entropy is that of softmax, or of the sigmoids as `probabilities`, which is what the design writes.
    """
    builder = ol.NetBuilder(ol.Net(ol.Program(seed=2)))
    image = builder.add_op("data", name="image", shape=[12])
    label = builder.add_op("data", name="label", shape=[], dtype="int64")
    hidden = builder.add_op("fc", input=image, size=100, activation="sigmoid")
    prediction = builder.add_op("fc", input=hidden, size=10, activation="sigmoid")
    if probabilities:
        cost = builder.add_op("cross_entropy_of_probabilities", input=[prediction, label])  # the mean is in it
    else:
        cost = builder.add_op("mean", input=builder.add_op("softmax_with_cross_entropy", input=[prediction, label]))
    for step in order:
        if step == "backward":
            builder.backward_from(cost)
        else:
            builder.add_optimization(1e-2, "adam")
    return builder, cost


def filled():
    scope = ol.Scope()
    scope.set("image", IMAGES)
    scope.set("label", LABELS)
    return scope


def started(builder):
    """The parameters that the net begins with."""
    scope = ol.init(builder.net.program, ol.Scope())
    return {var.name: scope[var.name] for var in builder.net.program.parameters()}


def torch_costs(parameters, loss=torch.nn.functional.cross_entropy):
    """The costs of 50 steps of Adam in PyTorch, from the same start: two sigmoid layers, then the `loss` of what comes out."""
    w1, b1, w2, b2 = (parameter.clone().requires_grad_(True) for parameter in parameters.values())
    optimizer = torch.optim.Adam([w1, b1, w2, b2], lr=1e-2)
    costs = []
    for _ in range(50):
        prediction = torch.sigmoid(torch.sigmoid(torch.tensor(IMAGES) @ w1 + b1) @ w2 + b2)
        cost = loss(prediction, torch.tensor(LABELS))
        optimizer.zero_grad()
        cost.backward()
        optimizer.step()
        costs.append(cost.item())
    return costs


@pytest.mark.mission("N21")
def test_the_example_is_kept_as_given_its_cross_entropy_is_of_the_sigmoids_and_no_softmax_stands_between():
    builder, cost = build(probabilities=True)
    types = [op.type for op in builder.net]
    assert types[:4] == ["linear", "sigmoid", "linear", "sigmoid"]
    assert not any("softmax" in type for type in types)
    assert [var.shape for var in builder.net.program.parameters()] == [(12, 100), (100,), (100, 10), (10,)]
    scope = filled()
    builder.run(scope, need_backward=False)
    probabilities = scope[builder.net[3].writes[0].name].numpy()
    chosen = probabilities[numpy.arange(len(LABELS)), LABELS]
    numpy.testing.assert_allclose(float(scope[cost.name]), -numpy.log(chosen).mean(), rtol=1e-5)
    assert abs(probabilities.sum(axis=1) - 1).min() > 0.1, "else softmax might have been there"
    costs = []
    for _ in range(50):
        builder.run(scope)
        costs.append(float(scope[cost.name]))
    expected = torch_costs(started(builder), lambda p, label: torch.nn.functional.nll_loss(p.log(), label))
    numpy.testing.assert_allclose(costs, expected, rtol=1e-4)
    assert costs[-1] < 0.1 * costs[0]


@pytest.mark.mission("N18")
def test_layers_are_added_by_their_names_and_the_example_learns():
    builder, cost = build()
    assert [op.type for op in builder.net] == ["linear", "sigmoid", "linear", "sigmoid", "softmax_with_cross_entropy", "mean"]
    assert builder.net[0].writes[0].shape == ("n", 100)
    scope = filled()
    costs = []
    for _ in range(50):
        builder.run(scope)
        costs.append(float(scope[cost.name]))
    numpy.testing.assert_allclose(costs, torch_costs(started(builder)), rtol=1e-4)
    assert costs[-1] < 0.8 * costs[0]
    with pytest.raises(ol.UnknownOperatorError, match='^no operator "fcc"'):
        builder.add_op("fcc", input=cost)
    with pytest.raises(ol.ArgumentError, match="^no activation is called 'sigmoyd'"):
        builder.add_op("fc", input=cost.block.var("image"), size=1, activation="sigmoyd")


@pytest.mark.mission("N19")
def test_backward_and_optimization_are_said_in_any_order_and_built_at_the_first_run():
    texts = []
    for order in (("backward", "optimization"), ("optimization", "backward")):
        builder, _ = build(order)
        assert builder.last_forward_op == len(builder.net) == 6
        builder.run(filled())
        assert builder.last_forward_op < len(builder.net)
        texts.append(builder.net.program.to_text(source=False))
    assert texts[0] == texts[1]
    assert texts[0].count(" = adam(") == 4


@pytest.mark.mission("N20")
def test_a_net_is_rebuilt_when_there_is_something_new_and_else_not():
    builder, cost = build()
    scope = filled()
    builder.run(scope)
    assert builder.need_rebuild is False
    first = builder.net.program.revision
    builder.run(scope)
    assert builder.net.program.revision == first
    hint = builder.add_op("neg", input=cost)
    assert (builder.need_rebuild, builder.last_forward_op, len(builder.net)) == (True, 7, 7)
    builder.run(scope)
    assert (builder.need_rebuild, scope[hint.name]) == (False, -scope[cost.name])
    assert builder.net.program.to_text(source=False).count(" = adam(") == 4
    assert int(scope["@STEP"]) == 3


@pytest.mark.mission("N20")
def test_without_backward_only_the_forward_ops_run():
    builder, cost = build()
    scope = filled()
    builder.run(scope, need_backward=False)
    assert len(builder.net) == builder.last_forward_op == 6
    w = scope["fc_0.w"].clone()
    builder.run(scope)
    assert not torch.equal(scope["fc_0.w"], w)
    w = scope["fc_0.w"].clone()
    before = scope[cost.name]
    scope.var("fc_0.w@GRAD").reset()
    builder.run(scope, need_backward=False)
    assert torch.equal(scope["fc_0.w"], w)
    assert scope[cost.name] < before
    assert not scope.find_var("fc_0.w@GRAD").is_set


def test_backward_without_a_loss_is_refused_and_without_an_optimizer_only_differentiates():
    builder = ol.NetBuilder()
    x = builder.add_op("data", name="image", shape=[12])
    cost = builder.add_op("mean", input=builder.add_op("fc", input=x, size=1))
    with pytest.raises(ol.ProgramError, match="^there is nothing to differentiate"):
        builder.run(filled())
    builder.backward_from(cost)
    with ol.scope.guard(filled()) as scope:
        builder.run()
    assert torch.allclose(scope["fc_0.w@GRAD"][:, 0], torch.tensor(IMAGES.mean(0)), atol=1e-6)
    assert "@STEP" not in scope


def test_a_run_that_learns_is_training_unless_a_context_says_otherwise():
    builder = ol.NetBuilder()
    x = builder.add_op("data", name="image", shape=[12])
    dropped = builder.add_op("dropout", input=builder.add_op("fc", input=x, size=4, bias=False), rate=0.5)
    builder.backward_from(builder.add_op("mean", input=dropped))
    scope = filled()
    builder.run(scope)
    assert 0 in scope[dropped.name].unique()
    builder.run(scope, need_backward=False)
    assert 0 not in scope[dropped.name].unique()
    builder.run(context=ol.Context(scope, training=False))
    assert 0 not in scope[dropped.name].unique()
