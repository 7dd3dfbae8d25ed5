"""Every schedule is its closed form, and that of `torch.optim.lr_scheduler` where there is one; by plan and by interpreter."""

import math
from bisect import bisect_right

import numpy
import pytest
import torch
from tolerances import PYTORCH

import oarlock as ol

schedule, theirs = ol.optimizer.schedule, torch.optim.lr_scheduler
STEPS = 40


def one_weight(rate, **options) -> ol.Program:
    """`b`, whose slope is fed as "x", and an SGD."""
    with ol.Program() as program:
        b = ol.layer.create_parameter([], dtype="float64", name="b", initializer=ol.initializer.constant(0.0))
        ol.optimizer.SGD(rate, **options).minimize(b * ol.layer.data("x", shape=[], batch=None, dtype="float64"))
    return program


def rates_of(rate, *, interpret=False, steps=STEPS, program=None, scope=None) -> list[float]:
    program = one_weight(rate) if program is None else program
    scope = ol.init(program, ol.Scope()) if scope is None else scope
    executor = ol.Executor(interpret=interpret)
    feed = {"x": 1.0}
    return [float(executor.run(program, feed, ["sgd_0.learning_rate"], scope=scope, training=True)[0]) for _ in range(steps)]


def torch_rates(make, rate: float, steps: int = STEPS) -> list[float]:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=rate)
    scheduler, found = make(optimizer), []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def restarts(t):
    start, length, number = 0, 5, 0
    while t >= start + length:
        start, length, number = start + length, length * 2, number + 1
    return 0.01 + (0.1 * 0.5**number - 0.01) * (1 + math.cos(math.pi * (t - start) / length)) / 2


def triangle(t, up, down):
    cycle, at = divmod(t, up + down)
    return (at / up if at <= up else (up + down - at) / down), cycle


CLOSED = {
    "constant": (schedule.Constant(0.3), lambda t: 0.3),
    "step": (schedule.StepDecay(0.5, 7, 0.3), lambda t: 0.5 * 0.3 ** (t // 7)),
    "multi-step": (schedule.MultiStepDecay(0.5, [3, 4, 20], 0.2), lambda t: 0.5 * 0.2 ** bisect_right([3, 4, 20], t)),
    "multi-step, none": (schedule.MultiStepDecay(0.5, []), lambda t: 0.5),
    "exponential": (schedule.ExponentialDecay(0.5, 0.9), lambda t: 0.5 * 0.9**t),
    "exponential, stairs": (schedule.ExponentialDecay(0.5, 0.9, 6, staircase=True), lambda t: 0.5 * 0.9 ** (t // 6)),
    "natural": (schedule.NaturalExponentialDecay(0.5, 0.3, 4), lambda t: 0.5 * math.exp(-0.3 * t / 4)),
    "natural, stairs": (schedule.NaturalExponentialDecay(0.5, 0.3, 4, staircase=True), lambda t: 0.5 * math.exp(-0.3 * (t // 4))),
    "inverse time": (schedule.InverseTimeDecay(0.5, 0.3, 4), lambda t: 0.5 / (1 + 0.3 * t / 4)),
    "inverse time, stairs": (schedule.InverseTimeDecay(0.5, 0.3, 4, staircase=True), lambda t: 0.5 / (1 + 0.3 * (t // 4))),
    "polynomial": (schedule.PolynomialDecay(0.5, 20, 0.1, 2.0), lambda t: 0.4 * (1 - min(t, 20) / 20) ** 2 + 0.1),
    "polynomial, cycle": (
        schedule.PolynomialDecay(0.5, 9, 0.1, 1.5, cycle=True),
        lambda t: 0.4 * (1 - t / (9 * max(1, math.ceil(t / 9)))) ** 1.5 + 0.1,
    ),
    "linear": (schedule.LinearDecay(0.5, 20, 0.2, 0.9), lambda t: 0.5 * (0.2 + 0.7 * min(t, 20) / 20)),
    "cosine": (schedule.CosineDecay(0.5, 20, 0.1), lambda t: 0.1 + 0.4 * (1 + math.cos(math.pi * min(t, 20) / 20)) / 2),
    "restarts": (schedule.CosineRestarts(0.1, 5, 2, 0.01, restart_factor=0.5), restarts),
    "warm-up": (schedule.WarmUp(0.5, 8, 0.1), lambda t: 0.5 * min(1.0, 0.1 + 0.9 * t / 8)),
    "warm-up into exponential": (
        schedule.WarmUp(schedule.ExponentialDecay(0.5, 0.9), 8),
        lambda t: 0.5 * t / 8 if t < 8 else 0.5 * 0.9 ** (t - 8),
    ),
    "noam": (schedule.Noam(64, 10, 2.0), lambda t: 2.0 * 64**-0.5 * min((t + 1) ** -0.5, (t + 1) * 10**-1.5)),
    "cyclic": (schedule.Cyclic(0.1, 0.5, 4, 7), lambda t: 0.1 + 0.4 * triangle(t, 4, 7)[0]),
    "cyclic, halved": (
        schedule.Cyclic(0.1, 0.5, 5, mode="triangular2"),
        lambda t: 0.1 + 0.4 * triangle(t, 5, 5)[0] / 2 ** triangle(t, 5, 5)[1],
    ),
    "one cycle": (
        schedule.OneCycle(0.5, 30, rising=0.5, start_divisor=10, end_divisor=100, shape="linear"),
        lambda t: 0.05 + 0.45 * t / 14 if t <= 14 else 0.5 + (0.0005 - 0.5) * (min(t, 29) - 14) / 15,
    ),
    "piecewise": (schedule.Piecewise([3, 10], [0.5, 0.2, 0.0]), lambda t: [0.5, 0.2, 0.0][bisect_right([3, 10], t)]),
    "piecewise, one": (schedule.Piecewise([], [0.5]), lambda t: 0.5),
    "sequential": (
        schedule.Sequential([schedule.StepDecay(0.5, 2), 0.3, schedule.Piecewise([4], [0.2, 0.1])], [5, 9]),
        lambda t: 0.5 * 0.1 ** (t // 2) if t < 5 else 0.3 if t < 9 else 0.2 if t < 13 else 0.1,
    ),
    "one's own": (lambda progress: 0.1 / (1.0 + progress.step), lambda t: 0.1 / (1 + t)),
    "one's own of float32": (lambda progress: ol.op.cast(0.25 * progress.step, dtype="float32"), lambda t: 0.25 * t),
    "one's own of the steps": (lambda progress: progress.step, float),
}


@pytest.mark.parametrize("interpret", [False, True], ids=["plan", "interpreter"])
@pytest.mark.parametrize("name", CLOSED)
def test_a_schedule_is_its_closed_form(name, interpret):
    ours, closed = CLOSED[name]
    found = rates_of(ours, interpret=interpret, steps=12 if interpret else STEPS)
    numpy.testing.assert_allclose(found, [closed(t) for t in range(len(found))], rtol=PYTORCH[0], atol=PYTORCH[1])


TWINS = {
    "StepLR": (schedule.StepDecay(0.5, 7, 0.3), lambda o: theirs.StepLR(o, 7, 0.3)),
    "MultiStepLR": (schedule.MultiStepDecay(0.5, [3, 20], 0.2), lambda o: theirs.MultiStepLR(o, [3, 20], 0.2)),
    "ExponentialLR": (schedule.ExponentialDecay(0.5, 0.9), lambda o: theirs.ExponentialLR(o, 0.9)),
    "LinearLR": (schedule.LinearDecay(0.5, 20, 0.2, 0.9), lambda o: theirs.LinearLR(o, 0.2, 0.9, 20)),
    "PolynomialLR": (schedule.PolynomialDecay(0.5, 20, power=2.0), lambda o: theirs.PolynomialLR(o, 20, 2.0)),
    "CosineAnnealingLR": (schedule.CosineDecay(0.5, STEPS, 0.1), lambda o: theirs.CosineAnnealingLR(o, STEPS, 0.1)),
    "restarts of one length": (schedule.CosineRestarts(0.5, 7, 1, 0.1), lambda o: theirs.CosineAnnealingWarmRestarts(o, 7, 1, 0.1)),
    "restarts that grow": (schedule.CosineRestarts(0.5, 4, 3), lambda o: theirs.CosineAnnealingWarmRestarts(o, 4, 3)),
    "triangular": (schedule.Cyclic(0.1, 0.5, 4, 7), lambda o: theirs.CyclicLR(o, 0.1, 0.5, 4, 7, cycle_momentum=False)),
    "triangular2": (
        schedule.Cyclic(0.1, 0.5, 5, mode="triangular2"),
        lambda o: theirs.CyclicLR(o, 0.1, 0.5, 5, mode="triangular2", cycle_momentum=False),
    ),
    "exp_range": (
        schedule.Cyclic(0.1, 0.5, 5, mode="exp_range", gamma=0.97),
        lambda o: theirs.CyclicLR(o, 0.1, 0.5, 5, mode="exp_range", gamma=0.97, cycle_momentum=False),
    ),
    "OneCycleLR": (schedule.OneCycle(0.5, 43), lambda o: theirs.OneCycleLR(o, 0.5, 43, cycle_momentum=False)),
    "OneCycleLR, three phases": (
        schedule.OneCycle(0.5, 43, rising=0.4, start_divisor=10, end_divisor=50, shape="linear", three_phases=True),
        lambda o: theirs.OneCycleLR(o, 0.5, 43, None, None, 0.4, "linear", False, div_factor=10, final_div_factor=50, three_phase=True),
    ),
    "SequentialLR": (
        schedule.WarmUp(schedule.CosineDecay(0.5, 35), 5, 0.1),
        lambda o: theirs.SequentialLR(o, [theirs.LinearLR(o, 0.1, 1.0, 5), theirs.CosineAnnealingLR(o, 35)], [5]),
    ),
    "LambdaLR": (lambda progress: 0.5 * 0.95**progress.step, lambda o: theirs.LambdaLR(o, lambda t: 0.95**t)),
}


@pytest.mark.filterwarnings("ignore:The epoch parameter:UserWarning")
@pytest.mark.parametrize("name", TWINS)
def test_a_schedule_follows_pytorch(name):
    ours, twin = TWINS[name]
    numpy.testing.assert_allclose(rates_of(ours), torch_rates(twin, 0.5), rtol=PYTORCH[0], atol=PYTORCH[1])


def test_the_rate_of_a_schedule_is_what_moves_the_parameter_and_no_state():
    program = one_weight(schedule.InverseTimeDecay(0.5, 1.0))
    assert [var.name for var in program.persistables()] == ["b", "@STEP"]
    scope = ol.init(program, ol.Scope())
    rates = rates_of(None, program=program, scope=scope, steps=4)
    assert float(scope["b"]) == pytest.approx(-sum(rates), rel=1e-12)


def test_a_schedule_goes_by_updates_where_gradients_are_accumulated():
    found = rates_of(None, program=one_weight(schedule.ExponentialDecay(0.5, 0.5), accumulate=3), steps=9)
    assert found == [0.5] * 3 + [0.25] * 3 + [0.125] * 3


def test_two_optimizers_of_one_program_have_schedules_of_their_own():
    with ol.Program() as program:
        a, b = (ol.layer.create_parameter([], dtype="float64", name=name, initializer=ol.initializer.constant(0.0)) for name in "ab")
        groups = ol.optimizer.Groups(
            [("a", ol.optimizer.SGD(schedule.StepDecay(0.5, 1, 0.5))), ("b", ol.optimizer.SGD(schedule.ReduceOnPlateau(0.25)))]
        )
        groups.minimize(a + b)
    scope = ol.init(program, ol.Scope())
    for _ in range(2):
        ol.Executor().run(program, {}, [], scope=scope, training=True)
    assert (float(scope["a"]), float(scope["b"])) == (-0.75, -0.5)


# Reduce on plateau

COSTS = [5.0, 4.0, 4.0, 4.1, 3.9999, 4.0, 3.0, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5, 2.0, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5]


def plateau_rates(make, costs) -> list[float]:
    """The rates where the cost is what is fed."""
    with ol.Program() as program:
        b = ol.layer.create_parameter([], name="b", initializer=ol.initializer.constant(0.0))
        x = ol.layer.data("x", shape=[], batch=None)
        ol.optimizer.SGD(make(x)).minimize(b * 0.0 + x)
    scope = ol.init(program, ol.Scope())
    executor, found = ol.Executor(), []
    for cost in costs:
        found.append(float(executor.run(program, {"x": cost}, ["sgd_0.learning_rate"], scope=scope, training=True)[0]))
    return found


PLATEAUS = {
    "plain": {"patience": 2},
    "cooldown": {"patience": 1, "cooldown": 2, "factor": 0.5},
    "absolute": {"patience": 1, "threshold": 0.3, "threshold_mode": "abs"},
    "least": {"patience": 0, "factor": 0.5},
    "upwards": {"patience": 1, "mode": "max", "factor": 0.7},
}


@pytest.mark.parametrize("name", PLATEAUS)
def test_a_plateau_reduces_as_pytorchs_does(name):
    options = PLATEAUS[name]
    least = 0.1 if name == "least" else 0.0
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    scheduler, expected = theirs.ReduceLROnPlateau(optimizer, min_lr=least, **options), []
    for cost in COSTS:
        expected.append(optimizer.param_groups[0]["lr"])
        scheduler.step(float(numpy.float32(cost)))
    found = plateau_rates(lambda x: schedule.ReduceOnPlateau(0.5, least=least, **options), COSTS)
    numpy.testing.assert_allclose(found, expected, rtol=PYTORCH[0], atol=PYTORCH[1])
    assert len(set(expected)) > 1


def test_a_plateau_may_measure_means_over_epochs_and_another_variable():
    costs = [value for value in COSTS[:8] for value in (value - 0.25, value + 0.25)]
    each = plateau_rates(lambda x: schedule.ReduceOnPlateau(0.5, patience=1), COSTS[:8])
    assert plateau_rates(lambda x: schedule.ReduceOnPlateau(0.5, patience=1, every=2), costs) == [rate for rate in each for _ in range(2)]
    rising = plateau_rates(lambda x: schedule.ReduceOnPlateau(0.5, patience=0, measure=ol.op.neg(x)), [3.0, 2.0, 1.0])
    assert rising == [0.5, 0.5, pytest.approx(0.05)]


def test_a_plateau_after_a_warm_up_keeps_its_state():
    found = plateau_rates(lambda x: schedule.WarmUp(schedule.ReduceOnPlateau(0.5, patience=0), 2), [1.0, 1.0, 1.0, 1.0])
    assert found == pytest.approx([0.0, 0.25, 0.05, 0.005])


def test_a_run_with_a_schedule_goes_on_bit_for_bit_where_it_was_saved(tmp_path):
    """Its state - a plateau's, an average, what is accumulated - is in the file."""

    def build():
        with ol.Program():
            x = ol.layer.data("x", shape=[3])
            cost = ol.layer.mean(ol.op.square(ol.layer.fc(x, 2, act="tanh") - 0.5))
        return cost

    def optimizer():
        rate = schedule.WarmUp(schedule.ReduceOnPlateau(0.2, factor=0.5, patience=0, every=2), 3)
        return ol.optimizer.NAdam(rate, accumulate=2, average=ol.optimizer.ExponentialAverage(0.9), clip=ol.optimizer.ClipByGlobalNorm(0.1))

    data = {"x": numpy.random.default_rng(0).standard_normal((30, 3)).astype("float32")}
    whole = ol.train(build(), data, optimizer=optimizer(), epochs=4, batch_size=5, progress=False)
    part = ol.train(build(), data, optimizer=optimizer(), epochs=4, batch_size=5, steps=9, progress=False)
    ol.save_model(part, tmp_path / "run")
    rest = ol.train(ol.load_model(tmp_path / "run"), data, progress=False)
    assert rest.steps == whole.steps == 24
    for name in whole.parameters:
        assert torch.equal(whole.parameters[name], rest.parameters[name]), name
    assert {"nadam_0.reduced_rate", "nadam_0.mu_product", "fc_0.w@AVERAGE", "fc_0.w@ACCUMULATED"} <= set(whole.parameters)


# What is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: schedule.StepDecay(0.0, 5), "StepDecay: rate must be a finite number > 0, not 0.0"),
        (lambda: schedule.StepDecay(0.1, 0), "StepDecay: every must be an integer >= 1, not 0"),
        (lambda: schedule.MultiStepDecay(0.1, [5, 3]), "MultiStepDecay: milestones: they must be increasing, unlike [5, 3]"),
        (lambda: schedule.PolynomialDecay(0.1, 10, power=-1.0), "PolynomialDecay: power must be a finite number > 0, not -1.0"),
        (lambda: schedule.CosineDecay(0.1, 1.5), "CosineDecay: steps must be an integer >= 1, not 1.5"),
        (lambda: schedule.CosineRestarts(0.1, 5, 0), "CosineRestarts: multiplier must be an integer >= 1, not 0"),
        (lambda: schedule.WarmUp("fast", 5), "WarmUp: into must be a schedule or a number, not str 'fast'"),
        (lambda: schedule.WarmUp(-0.1, 5), "WarmUp: into must be a finite number >= 0, not -0.1"),
        (lambda: schedule.Noam(0), "Noam: width must be an integer >= 1, not 0"),
        (lambda: schedule.Cyclic(0.5, 0.1), "Cyclic: most must be a finite number > 0.5, not 0.1"),
        (lambda: schedule.Cyclic(0.1, 0.5, mode="square"), "Cyclic: mode must be 'triangular', 'triangular2' or 'exp_range', not 'square'"),
        (lambda: schedule.OneCycle(0.1, 3), "OneCycle: 3 steps are too few: some phase would have none"),
        (
            lambda: schedule.OneCycle(0.1, 100, rising=0.5, three_phases=True),
            "OneCycle: rising must be a finite number > 0 and < 0.5, not 0.5",
        ),
        (lambda: schedule.Piecewise([5], [0.1]), "Piecewise: 1 boundaries require 2 rates, not 1"),
        (lambda: schedule.Sequential([0.1, "b"], [5]), "Sequential: a schedule must be a schedule or a number, not str 'b'"),
        (lambda: schedule.ReduceOnPlateau(0.1, 1.0), "ReduceOnPlateau: factor must be a finite number > 0 and < 1, not 1.0"),
        (lambda: schedule.ReduceOnPlateau(0.1, measure="loss"), "ReduceOnPlateau: measure must be a variable, not str 'loss'"),
    ],
)
def test_bad_settings_of_schedules_are_errors_of_ours(make, message):
    with pytest.raises(ol.ArgumentError) as raised:
        make()
    assert raised.value.message == message


@pytest.mark.parametrize(
    ("rate", "error", "message"),
    [
        (lambda progress: 0.1, ol.ArgumentError, "a schedule must return a variable, float64[], not float 0.1"),
        (lambda progress: ol.op.full(shape=(2,), value=0.1), ol.ShapeError, "a schedule must return one number, not float32[2]"),
        (lambda progress: ol.op.cast(progress.step, dtype="int64"), ol.DTypeError, "a schedule must return a float, not int64[]"),
    ],
)
def test_a_schedule_of_ones_own_that_gives_no_rate_is_refused_and_changes_nothing(rate, error, message):
    with ol.Program() as program:
        b = ol.layer.create_parameter([], name="b")
        cost = b * 2.0
    before = program.to_bytes()
    with pytest.raises(error) as raised:
        ol.optimizer.SGD(rate).minimize(cost)
    assert raised.value.message == message
    assert program.to_bytes() == before


def test_a_plateau_without_a_cost_is_refused():
    with ol.Program():
        b = ol.layer.create_parameter([], name="b")
        pairs = ol.append_backward(b * 2.0)
        with pytest.raises(ol.ArgumentError, match="there is no cost to measure"):
            ol.optimizer.SGD(schedule.ReduceOnPlateau(0.1)).apply(pairs)
