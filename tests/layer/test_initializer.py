"""First values of parameters: their distributions, and what they depend on."""

import math

import pytest
import torch
from tolerances import MOMENTS

import oarlock as ol

COUNT = 40_000


def first_values(rule, shape: tuple[int, ...] = (200, 200), *, name: str = "w", seed: int = 0, dtype: str = "float64") -> torch.Tensor:
    """The initial value that `rule` gives a parameter of `shape`."""
    with ol.Program(seed=seed) as program:
        program.main.new_var(name, ol.DType.of(dtype), shape, persistable=True, parameter=True, initializer=rule(shape))
    return ol.init(program, ol.Scope())[name]


def require_moments(values: torch.Tensor, mean: float, deviation: float) -> None:
    """Mean and standard deviation are within a few of their own standard errors."""
    count = values.numel()
    assert count >= COUNT
    assert abs(values.mean().item() - mean) < MOMENTS * deviation / math.sqrt(count)
    assert abs(values.std().item() / deviation - 1.0) < MOMENTS / math.sqrt(count)


def test_a_constant_is_everywhere():
    assert torch.equal(first_values(ol.initializer.constant(0.25), (2, 3)), torch.full((2, 3), 0.25, dtype=torch.float64))


def test_uniform_values_are_spread_evenly():
    values = first_values(ol.initializer.uniform(-1.0, 3.0))
    require_moments(values, 1.0, 4.0 / math.sqrt(12.0))
    assert values.min() >= -1.0
    assert values.max() < 3.0
    counts = torch.histc(values, bins=10, min=-1.0, max=3.0)
    assert (counts / COUNT - 0.1).abs().max() < MOMENTS * math.sqrt(0.1 / COUNT)


def test_normal_values_have_their_mean_and_deviation():
    values = first_values(ol.initializer.normal(2.0, 0.5))
    require_moments(values, 2.0, 0.5)
    within = ((values - 2.0).abs() < 0.5).double().mean().item()
    assert abs(within - math.erf(1.0 / math.sqrt(2.0))) < MOMENTS / math.sqrt(COUNT)
    assert torch.isfinite(values).all()


@pytest.mark.parametrize(("shape", "fans"), [((100, 500), (100, 500)), ((64, 32, 5, 5), (32 * 25, 64 * 25))])
def test_xavier_is_uniform_by_both_fans(shape, fans):
    values = first_values(ol.initializer.xavier(), shape)
    bound = math.sqrt(6.0 / sum(fans))
    require_moments(values, 0.0, bound / math.sqrt(3.0))
    assert values.abs().max() <= bound


@pytest.mark.parametrize(("shape", "fan_in"), [((100, 500), 100), ((64, 32, 5, 5), 32 * 25)])
def test_kaiming_is_normal_by_the_fan_in(shape, fan_in):
    require_moments(first_values(ol.initializer.kaiming(), shape), 0.0, math.sqrt(2.0 / fan_in))


def test_layers_start_as_they_say():
    with ol.Program() as program:
        image = ol.layer.data("image", shape=[8, 10, 10])
        ol.layer.conv2d(image, filters=256, size=5)
        ol.layer.fc(ol.layer.flatten(image), 100)
        ol.layer.fc(ol.layer.flatten(image), 100, initializer=ol.initializer.constant(0.5), name="own")
    scope = ol.init(program, ol.Scope())
    require_moments(scope["conv2d_0.w"].double(), 0.0, math.sqrt(2.0 / (8 * 25)))
    require_moments(scope["fc_0.w"].double(), 0.0, math.sqrt(2.0 / (800 + 100)))
    assert torch.equal(scope["own.w"], torch.full((800, 100), 0.5))
    for name in ("conv2d_0.b", "fc_0.b", "own.b"):
        assert not scope[name].any()


# What first values depend on


def test_first_values_follow_from_the_seed_and_the_name():
    rule = ol.initializer.normal()
    values = first_values(rule)
    torch.manual_seed(1)
    assert torch.equal(first_values(rule), values), "no generator of the process plays a part"
    assert not torch.equal(first_values(rule, seed=1), values)
    assert not torch.equal(first_values(rule, name="v"), values)


def test_parameters_do_not_resemble_each_other():
    first, second = (first_values(ol.initializer.normal(), name=name).flatten() for name in ("fc_0.w", "fc_1.w"))
    correlation = torch.corrcoef(torch.stack([first, second]))[0, 1].item()
    assert abs(correlation) < MOMENTS / math.sqrt(COUNT)


def test_first_values_do_not_depend_on_the_order_of_declaration_or_on_other_parameters():
    def build(names: list[str]) -> ol.Scope:
        with ol.Program(seed=5) as program:
            x = ol.layer.data("x", shape=[10])
            for name in names:
                ol.layer.fc(x, 10, name=name)
        return ol.init(program, ol.Scope())

    forwards, backwards, alone = build(["a", "b", "c"]), build(["c", "b", "a"]), build(["b"])
    for name in ("a.w", "b.w", "c.w"):
        assert torch.equal(forwards[name], backwards[name])
    assert torch.equal(forwards["b.w"], alone["b.w"])


def test_single_precision_starts_as_double_precision_rounded():
    rule = ol.initializer.normal()
    assert torch.equal(first_values(rule, dtype="float32"), first_values(rule).float())


def test_filling_keeps_what_is_there_unless_told_otherwise():
    with ol.Program() as program:
        ol.layer.fc(ol.layer.data("x", shape=[3]), 2)
    scope = ol.Scope()
    scope.set("fc_0.w", torch.ones(3, 2))
    assert ol.init(program, scope) is scope
    assert torch.equal(scope["fc_0.w"], torch.ones(3, 2))
    assert torch.equal(scope["fc_0.b"], torch.zeros(2))
    ol.init(program, scope, overwrite=True)
    assert torch.equal(scope["fc_0.w"], ol.init(program, ol.Scope())["fc_0.w"])


def test_a_variable_without_an_initializer_is_named():
    with ol.Program() as program:
        program.main.new_var("table", ol.DType.FLOAT32, (3,), persistable=True, parameter=True)
    with pytest.raises(ol.ProgramError) as raised:
        ol.init(program, ol.Scope())
    assert raised.value.message == '"table" has no initializer'
    assert raised.value.hint == 'scope.set("table", value)'
