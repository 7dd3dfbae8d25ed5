"""`minimize`: what it adds to a program, what a caller may set between steps, and which parameters it moves."""

import numpy
import pytest
import torch
from classifiers import Classifier, small_classifier, small_rows
from tolerances import LAYERS

import oarlock as ol

ROWS = small_rows(10)
OPTIMIZERS = {
    "sgd": lambda: ol.optimizer.SGD(0.5),
    "momentum": lambda: ol.optimizer.Momentum(0.5),
    "adam": lambda: ol.optimizer.Adam(0.5),
}


@pytest.fixture
def small() -> Classifier:
    return small_classifier()


def step(program: ol.Program, scope: ol.Scope) -> None:
    ol.Executor().run(program, ROWS, scope=scope, training=True)


def moved(program: ol.Program, steps: int = 1) -> list[str]:
    """The parameters that `steps` steps change."""
    scope = ol.init(program, ol.Scope())
    before = {var.name: scope[var.name] for var in program.parameters()}
    for _ in range(steps):
        step(program, scope)
    return [name for name, value in before.items() if not torch.equal(scope[name], value)]


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("sgd", []),
        ("momentum", ["fc_0.b@VELOCITY", "fc_0.w@VELOCITY"]),
        ("adam", ["fc_0.b@MOMENT1", "fc_0.b@MOMENT2", "fc_0.w@MOMENT1", "fc_0.w@MOMENT2"]),
    ],
)
def test_the_state_of_an_optimizer_is_variables_beside_the_parameters(kind, state, small):
    OPTIMIZERS[kind]().minimize(small.cost)
    persistables = {var.name: var for var in small.program.persistables()}
    assert sorted(persistables) == sorted(["@STEP", "fc_0.b", "fc_0.w", f"{kind}_0.learning_rate", *state])
    for name in state:
        var, parameter = persistables[name], persistables[name.partition("@")[0]]
        assert (var.shape, var.dtype, var.parameter) == (parameter.shape, parameter.dtype, False)
    scope = ol.init(small.program, ol.Scope())
    assert not any(scope[name].any() for name in state), "it starts as zeros"
    step(small.program, scope)
    assert all(scope[name].any() for name in state)


def test_it_returns_parameters_and_their_gradients(small):
    pairs = ol.optimizer.SGD().minimize(small.cost)
    assert [(parameter.name, gradient.name) for parameter, gradient in pairs] == [("fc_0.w", "fc_0.w@GRAD"), ("fc_0.b", "fc_0.b@GRAD")]
    assert all(parameter.shape == gradient.shape for parameter, gradient in pairs)


def test_a_program_counts_its_steps(small):
    ol.optimizer.SGD().minimize(small.cost)
    scope = ol.init(small.program, ol.Scope())
    for number in range(3):
        assert int(scope["@STEP"]) == number
        step(small.program, scope)


def test_one_step_of_gradient_descent_goes_against_the_gradient(small):
    pairs = ol.optimizer.SGD(0.5).minimize(small.cost)
    scope = ol.init(small.program, ol.Scope())
    before = {parameter.name: scope[parameter.name] for parameter, _ in pairs}
    gradients = ol.Executor().run(small.program, ROWS, [gradient for _, gradient in pairs], scope=scope, return_numpy=False)
    for (name, value), gradient in zip(before.items(), gradients, strict=True):
        torch.testing.assert_close(scope[name], value - 0.5 * gradient, rtol=LAYERS[0], atol=LAYERS[1])
        assert gradient.any()


@pytest.mark.parametrize("kind", list(OPTIMIZERS))
def test_the_rate_may_be_set_between_steps(kind, small):
    OPTIMIZERS[kind]().minimize(small.cost)
    scope = ol.init(small.program, ol.Scope())
    assert scope[f"{kind}_0.learning_rate"].dtype is torch.float64
    assert float(scope[f"{kind}_0.learning_rate"]) == 0.5
    scope.set(f"{kind}_0.learning_rate", numpy.float64(0.0))
    before = scope["fc_0.w"]
    step(small.program, scope)
    assert torch.equal(scope["fc_0.w"], before), "with a rate of 0 nothing moves"
    scope.set(f"{kind}_0.learning_rate", numpy.float64(0.1))
    step(small.program, scope)
    assert not torch.equal(scope["fc_0.w"], before)


def test_only_the_parameters_that_are_given_are_moved(small):
    (weight, bias) = small.program.parameters()
    assert weight.name == "fc_0.w"
    pairs = ol.optimizer.Adam(0.1).minimize(small.cost, parameters=[bias])
    assert [parameter for parameter, _ in pairs] == [bias]
    assert moved(small.program) == ["fc_0.b"]


def test_parameters_that_are_not_trainable_stay(small):
    small.program.parameters()[0].trainable = False
    ol.optimizer.SGD(0.5).minimize(small.cost)
    assert moved(small.program) == ["fc_0.b"]


def test_parameters_that_the_cost_does_not_depend_on_stay(small):
    ol.layer.fc(small.predict, 3, name="aside")
    ol.optimizer.SGD(0.5).minimize(small.cost)
    assert moved(small.program) == ["fc_0.w", "fc_0.b"]


def test_two_optimizers_divide_the_parameters_and_count_steps_once(small):
    weight, bias = small.program.parameters()
    ol.optimizer.SGD(0.5).minimize(small.cost, parameters=[weight])
    ol.optimizer.Adam(0.1).minimize(small.cost, parameters=[bias])
    scope = ol.init(small.program, ol.Scope())
    assert {"sgd_0.learning_rate", "adam_0.learning_rate", "fc_0.b@MOMENT1"} <= set(scope)
    step(small.program, scope)
    assert int(scope["@STEP"]) == 1

    def alone(optimizer: ol.optimizer.Optimizer, number: int) -> torch.Tensor:
        other = small_classifier()
        parameter = other.program.parameters()[number]
        optimizer.minimize(other.cost, parameters=[parameter])
        found = ol.init(other.program, ol.Scope())
        step(other.program, found)
        return found[parameter.name]

    assert torch.equal(scope["fc_0.w"], alone(ol.optimizer.SGD(0.5), 0)), "both read the values from before the step"
    assert torch.equal(scope["fc_0.b"], alone(ol.optimizer.Adam(0.1), 1))


def test_two_optimizers_of_one_kind_have_a_rate_each(small):
    weight, bias = small.program.parameters()
    ol.optimizer.SGD(0.5).minimize(small.cost, parameters=[weight])
    ol.optimizer.SGD(0.1).minimize(small.cost, parameters=[bias])
    scope = ol.init(small.program, ol.Scope())
    assert (float(scope["sgd_0.learning_rate"]), float(scope["sgd_1.learning_rate"])) == (0.5, 0.1)


@pytest.mark.parametrize("kind", list(OPTIMIZERS))
def test_a_parameter_that_two_layers_share_is_updated_once_by_the_sum_of_its_gradients(kind):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3], dtype="float64")
        hidden = ol.layer.fc(ol.layer.fc(x, 3, name="shared", act="tanh"), 3, name="shared")
        cost = ol.layer.mean(ol.op.square(hidden))
    pairs = OPTIMIZERS[kind]().minimize(cost)
    assert [parameter.name for parameter, _ in pairs] == ["shared.w", "shared.b"]
    assert [op.writes[0].name for op in program.main.tail].count("shared.w") == 1
    scope = ol.init(program, ol.Scope())
    w, b = (scope[name].clone().requires_grad_() for name in ("shared.w", "shared.b"))
    rows = torch.from_numpy(ROWS["x"]).double()
    ((torch.tanh(rows @ w + b) @ w + b) ** 2).mean().backward()
    theirs = {"sgd": torch.optim.SGD, "momentum": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9), "adam": torch.optim.Adam}
    theirs[kind]([w, b], lr=0.5).step()
    ol.Executor().run(program, {"x": rows}, scope=scope)
    for name, expected in (("shared.w", w), ("shared.b", b)):
        torch.testing.assert_close(scope[name], expected.detach(), rtol=LAYERS[0], atol=LAYERS[1])


def test_a_fetched_parameter_has_its_value_from_before_the_step(small):
    ol.optimizer.SGD(0.5).minimize(small.cost)
    scope = ol.init(small.program, ol.Scope())
    before = scope["fc_0.w"].clone()
    (fetched,) = ol.Executor().run(small.program, ROWS, ["fc_0.w"], scope=scope, return_numpy=False)
    assert torch.equal(fetched, before)
    assert not torch.equal(scope["fc_0.w"], before)


def test_what_a_caller_holds_of_a_parameter_does_not_change_under_them(small):
    ol.optimizer.Adam(0.5).minimize(small.cost)
    scope = ol.init(small.program, ol.Scope())
    held = scope["fc_0.w"]
    before = held.clone()
    step(small.program, scope)
    assert torch.equal(held, before)


# What is refused leaves the program as it was


@pytest.mark.parametrize("rate", [0, -0.1, float("nan"), float("inf"), True, "0.1"])
def test_a_rate_is_above_zero(rate):
    with pytest.raises(ol.ArgumentError) as raised:
        ol.optimizer.SGD(rate)
    assert raised.value.message == f"a learning rate must be a positive finite number, not {rate!r}"


def require_refused(small: Classifier, kind: type[ol.OarlockError], message: str, cost: ol.Var, **options: object) -> None:
    before = small.program.to_bytes()
    with pytest.raises(kind) as raised:
        ol.optimizer.SGD().minimize(cost, **options)
    assert raised.value.message == message
    assert small.program.to_bytes() == before


def test_a_second_optimizer_of_the_same_parameters_is_refused(small):
    ol.optimizer.Adam().minimize(small.cost)
    require_refused(small, ol.ProgramError, '"fc_0.w" is already updated by an optimizer', small.cost)


def test_a_cost_of_many_numbers_is_refused(small):
    require_refused(small, ol.GradientError, 'the cost must be one float, yet "softmax_0" is float32[n, 2]', small.predict)


def test_nothing_to_update_is_refused(small):
    constant = ol.layer.mean(small.program.main.inputs[0])
    message = f'"{constant.name}" depends on no trainable parameter: there is nothing to update'
    require_refused(small, ol.ProgramError, message, constant)
    require_refused(small, ol.ProgramError, "parameters is empty: there is nothing to update", small.cost, parameters=[])


def test_a_parameter_that_the_cost_does_not_depend_on_is_refused(small):
    aside = ol.layer.fc(small.predict, 3, name="aside").block.var("aside.w")
    with pytest.raises(ol.GradientError) as raised:
        ol.optimizer.SGD().minimize(small.cost, parameters=[aside])
    assert raised.value.message == f'"{small.cost.name}" does not depend on "aside.w"'
    assert not small.program.is_training


# An optimizer of one's own


def test_an_optimizer_of_ones_own_is_a_few_lines(small):
    class SignDescent(ol.optimizer.Optimizer):
        """``w' = w - rate * sign(dw)``, by existing operators."""

        def update(self, step, parameter, gradient):
            sign = gradient / (ol.op.abs(gradient) + 1e-30)
            step.commit(parameter, parameter - sign * ol.op.cast(step.learning_rate, dtype="float32"))

    SignDescent(0.25).minimize(small.cost)
    scope = ol.init(small.program, ol.Scope())
    before = scope["fc_0.w"]
    step(small.program, scope)
    torch.testing.assert_close((scope["fc_0.w"] - before).abs(), torch.full((3, 2), 0.25))
    assert "signdescent_0.learning_rate" in scope


@pytest.mark.parametrize("kind", [ol.optimizer.SGD, ol.optimizer.Momentum, ol.optimizer.Adam])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_variable_is_the_learning_rate_of_every_optimizer(kind, dtype):
    """Fed 0.5 at each step, it moves the parameters bit for bit as the number 0.5 does; fed 0, it does not move them."""
    fed, fixed = small_classifier(), small_classifier()
    with fed.program:
        rate = ol.layer.data("rate", shape=[], dtype=dtype, batch=None)
    kind(rate).minimize(fed.cost)
    kind(0.5).minimize(fixed.cost)
    assert not [var.name for var in fed.program.persistables() if var.name.endswith(".learning_rate")]
    scopes = [ol.init(each.program, ol.Scope()) for each in (fed, fixed)]
    feed = {**ROWS, "rate": numpy.asarray(0.5, dtype)}
    for _ in range(2):
        ol.Executor().run(fed.program, feed, scope=scopes[0], training=True)
        step(fixed.program, scopes[1])
    before = {var.name: scopes[0][var.name] for var in fed.program.parameters()}
    assert all(torch.equal(value, scopes[1][name]) for name, value in before.items())
    ol.Executor().run(fed.program, {**feed, "rate": numpy.asarray(0, dtype)}, scope=scopes[0], training=True)
    assert all(torch.equal(scopes[0][name], value) for name, value in before.items())


def test_a_learning_rate_that_is_another_variable_is_refused(small):
    with small.program:
        vector = ol.layer.data("vector", shape=[3], batch=None)
        whole = ol.layer.data("whole", shape=[], dtype="int64", batch=None)
    with ol.Program():
        foreign = ol.layer.data("rate", shape=[], batch=None)
    before = small.program.to_bytes()
    for rate, kind, message in (
        (vector, ol.ShapeError, 'the learning rate "vector" is float32[3], not one number'),
        (whole, ol.DTypeError, 'the learning rate "whole" is int64[], not a float'),
        (foreign, ol.ProgramError, 'the learning rate "rate" is not a variable of the main block of this program'),
    ):
        with pytest.raises(kind) as raised:
            ol.optimizer.SGD(rate).minimize(small.cost)
        assert raised.value.message == message
    assert small.program.to_bytes() == before
