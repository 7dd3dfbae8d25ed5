"""First values of parameters: their distributions, and what they depend on."""

import math

import pytest
import torch
from tolerances import LAYERS, MOMENTS

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


@pytest.mark.parametrize(
    ("rule", "theirs"),
    [
        (ol.initializer.xavier_normal(2.0), lambda w: torch.nn.init.xavier_normal_(w, 2.0)),
        (ol.initializer.xavier_uniform(0.5), lambda w: torch.nn.init.xavier_uniform_(w, 0.5)),
        (ol.initializer.kaiming_normal(mode="fan_out"), lambda w: torch.nn.init.kaiming_normal_(w, mode="fan_out")),
        (ol.initializer.kaiming_normal(nonlinearity="selu"), lambda w: torch.nn.init.kaiming_normal_(w, nonlinearity="selu")),
        (ol.initializer.kaiming_uniform(nonlinearity="leaky_relu", slope=0.2), lambda w: torch.nn.init.kaiming_uniform_(w, a=0.2)),
        (ol.initializer.kaiming_uniform(nonlinearity="tanh"), lambda w: torch.nn.init.kaiming_uniform_(w, nonlinearity="tanh")),
        (ol.initializer.lecun_normal(), lambda w: torch.nn.init.kaiming_normal_(w, nonlinearity="linear")),
        (ol.initializer.truncated_normal(1.0, 2.0, low=0.0, high=4.0), lambda w: torch.nn.init.trunc_normal_(w, 1.0, 2.0, 0.0, 4.0)),
    ],
    ids=range(8),
)
def test_rules_have_the_moments_of_those_of_pytorch(rule, theirs):
    shape = (64, 32, 5, 5)
    torch.manual_seed(0)
    expected = theirs(torch.empty(shape, dtype=torch.float64))
    values = first_values(rule, shape)
    count = values.numel()
    assert abs(values.mean().item() - expected.mean().item()) < 1.5 * MOMENTS * expected.std().item() / math.sqrt(count)
    assert abs(values.std().item() / expected.std().item() - 1.0) < 1.5 * MOMENTS / math.sqrt(count)
    assert values.abs().max() < 1.2 * expected.abs().max()


def test_normal_values_are_cut_off_two_deviations_away_unless_told_otherwise():
    values = first_values(ol.initializer.truncated_normal(1.0, 0.5))
    assert values.min() >= 0.0
    assert values.max() <= 2.0
    require_moments(values, 1.0, 0.5 * 0.8796256610342398)  # of a standard normal distribution cut off at 2
    far = first_values(ol.initializer.truncated_normal(0.0, 1.0, low=30.0, high=31.0), (10,))
    assert ((far >= 30.0) & (far <= 31.0)).all(), "where no number of double precision tells the bounds apart"


@pytest.mark.parametrize("shape", [(40, 40), (60, 7), (7, 60), (6, 5, 3, 3), (30, 2, 2), (0, 3)])
def test_orthogonal_rows_or_columns_have_one_length_and_right_angles(shape):
    values = first_values(ol.initializer.orthogonal(1.5), shape).flatten(1)
    products = values @ values.T if values.shape[0] <= values.shape[1] else values.T @ values
    torch.testing.assert_close(products, 2.25 * torch.eye(len(products), dtype=torch.float64), rtol=LAYERS[0], atol=10 * LAYERS[1])


def test_orthogonal_matrices_are_spread_evenly():
    """The sign of an entry tells nothing: a QR decomposition alone would give its first column one of them."""
    corners = torch.stack([first_values(ol.initializer.orthogonal(), (2, 2), name=f"w{number}") for number in range(200)])
    for sign in torch.sign(corners).mean(0).flatten():
        assert abs(sign.item()) < MOMENTS / math.sqrt(200)


def test_an_identity_and_filters_that_change_nothing():
    assert torch.equal(first_values(ol.initializer.identity(2.0), (2, 3)), 2.0 * torch.eye(2, 3, dtype=torch.float64))
    for groups, shape in ((1, (3, 4, 3)), (2, (4, 2, 3, 3)), (2, (6, 2, 1, 2, 3))):
        expected = torch.nn.init.dirac_(torch.empty(shape, dtype=torch.float64), groups)
        assert torch.equal(first_values(ol.initializer.dirac(groups), shape), expected)


def test_a_share_of_each_column_is_sparse():
    values = first_values(ol.initializer.sparse(0.305, 2.0), (200, 300))
    assert ((values == 0.0).sum(0) == 61).all()
    require_moments(values[values != 0.0], 0.0, 2.0)
    assert ((values == 0.0).sum(1) > 0).all(), "other rows in other columns"
    column = first_values(ol.initializer.sparse(0.5, 2.0), (2 * COUNT, 1))
    require_moments(column[column != 0.0], 0.0, 2.0)  # which are 0 has nothing to do with how large they would be


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_a_parameter_starts_as_an_array(dtype):
    array = [[0.1, 2.0, 3.0], [4.0, 5.0, 6.0]]
    rule = ol.initializer.array(array)
    with ol.Program() as program:
        ol.layer.create_parameter([2, 3], dtype=dtype, initializer=rule, name="w")
    program = ol.registry.parse_program(str(program))
    assert torch.equal(ol.init(program, ol.Scope())["w"], torch.tensor(array, dtype=getattr(torch, dtype)))


def test_an_array_of_another_shape_or_too_large_is_refused():
    with ol.Program() as program:
        with pytest.raises(ol.ShapeError) as raised:
            ol.layer.create_parameter([3, 2], initializer=ol.initializer.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
        assert raised.value.message == "array: the parameter has shape [3, 2], but its initial value has shape [2, 3]"
        with pytest.raises(ol.LimitError) as refused:
            ol.layer.create_parameter([2049, 2048], initializer=ol.initializer.array(torch.zeros(2049, 2048)))
        assert refused.value.message == "array: an initial value of 16,785,408 bytes, but a program may contain at most 16,777,216"
    assert program.persistables() == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ol.initializer.orthogonal()((3,)), "orthogonal: the parameter must have 2 axes or more, not shape [3]"),
        (lambda: ol.initializer.identity()((3, 3, 3)), "identity: the parameter must have 2 axes, not shape [3, 3, 3]"),
        (lambda: ol.initializer.dirac()((3, 3)), "dirac: the parameter must have 3 axes or more, not shape [3, 3]"),
        (lambda: ol.initializer.dirac(2)((3, 3, 3)), "dirac: 2 groups do not divide 3 filters"),
        (lambda: ol.initializer.sparse(1.5), "sparse: sparsity must be in [0, 1], not 1.5"),
        (
            lambda: ol.initializer.truncated_normal(low=1.0, high=1.0),
            "truncated_normal: low must be below high and deviation above 0, not 1.0, 1.0 and 1.0",
        ),
        (lambda: ol.initializer.kaiming_normal(mode="fan_on"), "kaiming: mode must be one of fan_in, fan_out, fan_average, not 'fan_on'"),
        (
            lambda: ol.initializer.kaiming_uniform(nonlinearity="rellu"),
            "kaiming: nonlinearity must be one of linear, sigmoid, tanh, relu, leaky_relu, selu, not 'rellu'",
        ),
    ],
)
def test_a_rule_refuses_what_it_cannot_fill(make, message):
    with pytest.raises(ol.ArgumentError) as raised:
        make()
    assert raised.value.message == message


def test_a_rule_that_was_not_called_is_told():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        for given, hint in (
            (ol.initializer.xavier_normal, "ol.initializer.xavier_normal(...)"),
            (ol.initializer.constant, "ol.initializer.constant(...)"),
            (0.5, "ol.initializer.normal(...)"),
            (lambda shape: 0.5, "ol.initializer.normal(...)"),
        ):
            with pytest.raises(ol.ArgumentError) as raised:
                ol.layer.fc(x, 2, initializer=given)
            assert raised.value.message.startswith("an initializer must be a rule, such as ol.initializer.zeros(), not ")
            assert raised.value.hint == hint
    assert program.persistables() == []


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
    assert raised.value.hint == 'use scope.set("table", value)'
