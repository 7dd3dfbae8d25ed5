"""The keywords that every optimizer takes, and settings that a parameter carries: clipping, decay, penalties, rates."""

import numpy
import pytest
import torch
from optimizer.followed import STEPS, follow_by_torch, follow_by_us, regression
from optimizer.test_following_pytorch import require_same

import oarlock as ol

optim, ours = torch.optim, ol.optimizer


def clip_norms(limit):
    def clip(tensors, optimizer):
        for tensor in tensors:
            torch.nn.utils.clip_grad_norm_([tensor], limit)

    return clip


CLIPS = {
    "value": (ours.ClipByValue(0.05), lambda tensors, _: torch.nn.utils.clip_grad_value_(tensors, 0.05)),
    "norm": (ours.ClipByNorm(0.1), clip_norms(0.1)),
    "global norm": (ours.ClipByGlobalNorm(0.1), lambda tensors, _: torch.nn.utils.clip_grad_norm_(tensors, 0.1)),
    "a large norm": (ours.ClipByGlobalNorm(1e6), None),
    "one of ones own": (
        lambda pairs: [(parameter, ol.op.tanh(gradient)) for parameter, gradient in pairs],
        lambda tensors, _: [tensor.grad.tanh_() for tensor in tensors],
    ),
}


@pytest.mark.parametrize("name", CLIPS)
def test_gradients_are_clipped_as_pytorch_clips(name):
    clip, theirs = CLIPS[name]
    program, _ = regression(ours.Momentum(0.3, clip=clip, weight_decay=0.01))
    scope, _ = follow_by_us(program)
    require_same(scope, follow_by_torch(lambda p: optim.SGD(p, lr=0.3, momentum=0.9, weight_decay=0.01), before_step=theirs))


def test_a_global_norm_is_of_the_gradients_of_all_groups_where_the_groups_are_clipped():
    groups = ours.Groups([("*.b", ours.SGD(0.3))], otherwise=ours.SGD(0.2), clip=ours.ClipByGlobalNorm(0.1))
    scope, _ = follow_by_us(regression(groups)[0])
    expected = follow_by_torch(
        lambda p: optim.SGD([{"params": p[1], "lr": 0.3}, {"params": [p[0], p[2]]}], lr=0.2), before_step=CLIPS["global norm"][1]
    )
    require_same(scope, expected)


def test_a_norm_of_halves_does_not_overflow():
    with ol.Program() as program:
        w = ol.layer.create_parameter([4], dtype="float32", initializer=ol.initializer.constant(0.0))
        halves = ol.op.cast(ol.layer.data("g", shape=[4], batch=None), dtype="float16")
        ((_, clipped),) = ours.ClipByGlobalNorm(1.0)([(w, halves)])
    (value,) = ol.Executor().run(program, {"g": numpy.full(4, 1000, "float32")}, [clipped], scope=ol.Scope())
    assert value.dtype == numpy.float16
    numpy.testing.assert_allclose(value, 0.5, rtol=1e-3)


def test_a_penalty_of_absolute_values_is_the_slope_of_their_sum():
    program, cost = regression(None)
    with program:
        penalty = sum(ol.op.reduce_sum(abs(var)) for var in program.parameters()[1:]) + ol.op.reduce_sum(abs(program.parameters()[0]))
        ours.SGD(0.1).minimize(cost + 0.01 * penalty)
    expected, _ = follow_by_us(program)
    scope, _ = follow_by_us(regression(ours.SGD(0.1, l1=0.01))[0])
    require_same(scope, {var.name: expected[var.name] for var in program.parameters()})


@pytest.mark.parametrize("make", [ours.SGD, ours.Adagrad, ours.Adamax], ids=lambda make: make.__name__)
def test_a_decoupled_decay_takes_off_what_the_rule_does_not_see(make):
    """Each step is one without decay, less ``rate decay w``."""
    plain, _ = regression(make(0.05))
    decayed, _ = regression(make(0.05, weight_decay=0.3, decoupled_weight_decay=True))
    scope = ol.init(plain, ol.Scope())
    before = {var.name: scope[var.name].clone() for var in plain.parameters()}
    follow_by_us(plain, steps=1, scope=scope)
    after, _ = follow_by_us(decayed, steps=1)
    require_same(after, {name: scope[name] - 0.05 * 0.3 * value for name, value in before.items()})


# Settings of a parameter


def settled(optimizer, **settings: ol.optimizer.UpdateSettings) -> ol.Program:
    program, cost = regression(None)
    for name, value in settings.items():
        program.main.var(f"{name[:-1]}.{name[-1]}").update_settings = value
    read = ol.Program.from_bytes(program.to_bytes())  # they are data of the program
    optimizer.minimize(read.main.var(cost.name))
    return read


def test_a_parameter_departs_from_its_optimizer_by_what_it_carries():
    program = settled(
        ours.Momentum(0.1, weight_decay=0.05),
        firstw=ours.UpdateSettings(rate_factor=0.5, weight_decay=0.0),
        firstb=ours.UpdateSettings(rate_factor=2.0, l2=0.1),
        secondw=ours.UpdateSettings(clip_value=0.04, clip_norm=0.08),
    )

    def clip(tensors, _):
        torch.nn.utils.clip_grad_value_(tensors[2], 0.04)
        torch.nn.utils.clip_grad_norm_(tensors[2], 0.08)

    def twin(p):
        groups = [
            {"params": p[0], "lr": 0.05, "weight_decay": 0.0},
            {"params": p[1], "lr": 0.2, "weight_decay": 0.15},
            {"params": p[2]},
        ]
        return optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=0.05)

    require_same(follow_by_us(program)[0], follow_by_torch(twin, before_step=clip))


@pytest.mark.parametrize("make", [ours.AdamW, ours.Lion, ours.Lamb, ours.RAdam], ids=lambda make: make.__name__)
def test_a_decay_and_a_rate_of_a_parameters_own_work_as_its_optimizers(make):
    """Settings that all carry are those of the optimizer."""
    own = ours.UpdateSettings(weight_decay=0.1, rate_factor=0.5)
    carried, _ = follow_by_us(settled(make(0.02, weight_decay=0.5), firstw=own, firstb=own, secondw=own), steps=5)
    expected, _ = follow_by_us(regression(make(0.01, weight_decay=0.1))[0], steps=5)
    require_same(carried, {name: expected[name] for name in ("first.w", "first.b", "second.w")})


def test_a_rate_factor_of_zero_freezes_and_does_not_stop_the_others():
    program = settled(ours.AdamW(0.1), firstw=ours.UpdateSettings(rate_factor=0.0))
    start = ol.init(program, ol.Scope())
    before = {name: start[name].clone() for name in ("first.w", "second.w")}
    scope, _ = follow_by_us(program, steps=2)
    assert torch.equal(scope["first.w"], before["first.w"])
    assert not torch.equal(scope["second.w"], before["second.w"])


# Accumulation


@pytest.mark.parametrize("interpret", [False, True], ids=["plan", "interpreter"])
@pytest.mark.parametrize("make", [lambda k: ours.AdamW(0.05, accumulate=k, clip=ours.ClipByGlobalNorm(0.1))], ids=["adamw"])
def test_gradients_of_several_steps_make_one_update(make, interpret):
    """As PyTorch's where a loop divides each loss by their number, and steps once for them."""
    count = 3
    program, _ = regression(make(count))
    scope, _ = follow_by_us(program, interpret=interpret)

    class Accumulating:
        def __init__(self, tensors):
            self.tensors, self.inner, self.seen = tensors, optim.AdamW(tensors, lr=0.05), 0

        def zero_grad(self):
            if self.seen % count == 0:
                self.inner.zero_grad()

        def step(self):
            self.seen += 1
            if self.seen % count == 0:
                for tensor in self.tensors:
                    tensor.grad /= count
                torch.nn.utils.clip_grad_norm_(self.tensors, 0.1)
                self.inner.step()

    require_same(scope, follow_by_torch(Accumulating))
    assert int(scope["@STEP"]) == STEPS


def test_steps_that_only_accumulate_change_nothing_else():
    program, _ = regression(ours.Adam(0.05, accumulate=4, average=ours.ExponentialAverage(0.5)))
    scope = ol.init(program, ol.Scope())
    before = {name: scope[name].clone() for name in scope}
    follow_by_us(program, scope=scope, steps=3)
    changed = [name for name in scope if not torch.equal(scope[name], before[name])]
    means = ["first.b@ACCUMULATED", "first.w@ACCUMULATED", "second.w@ACCUMULATED"]
    assert sorted(changed) == ["@STEP", "adam_0.accumulated", *means]
    follow_by_us(program, scope=scope, steps=1)
    assert not any(scope[f"{name}@ACCUMULATED"].any() for name in ("first.w", "first.b", "second.w"))
    assert torch.equal(scope["first.w@AVERAGE"], scope["first.w"])


# Averages


def test_an_exponential_average_is_that_of_pytorchs_averaged_model():
    program, _ = regression(ours.SGD(0.3, average=ours.ExponentialAverage(0.8)))
    scope, _ = follow_by_us(program)
    averaged = []

    def average(tensors, _):
        if not averaged:
            averaged.extend(tensor.detach().clone() for tensor in tensors)
        else:
            torch.optim.swa_utils.get_ema_multi_avg_fn(0.8)(averaged, [tensor.detach() for tensor in tensors], len(averaged))

    expected = follow_by_torch(lambda p: optim.SGD(p, lr=0.3), after_step=average)
    require_same(scope, expected)
    require_same(ours.averages(program, scope), dict(zip(expected, averaged, strict=True)))


@pytest.mark.parametrize(("start", "every"), [(1, 1), (20, 5)])
def test_a_uniform_average_is_the_mean_of_what_it_takes(start, every):
    program, _ = regression(ours.SGD(0.3, average=ours.UniformAverage(start=start, every=every)))
    scope, _ = follow_by_us(program)
    seen = []
    follow_by_torch(lambda p: optim.SGD(p, lr=0.3), after_step=lambda tensors, _: seen.append(tensors[0].detach().clone()))
    expected = torch.stack(seen[start - 1 :: every]).mean(0)
    require_same(ours.averages(program, scope), {"first.w": expected})


def test_what_predicts_by_averages_is_saved_with_them_while_training_goes_on(tmp_path):
    program, cost = regression(ours.SGD(0.3, average=ours.ExponentialAverage(0.9)))
    scope, _ = follow_by_us(program, steps=4)
    with pytest.raises(ol.ScopeError, match="has no averages"):
        ours.averages(regression(ours.SGD(0.3))[0], scope)
    by_averages = ours.averages(program, scope)
    held = {name: by_averages[name].clone() for name in by_averages}
    assert sorted(held) == ["first.b", "first.w", "second.w"]
    follow_by_us(program, steps=2, scope=scope)
    assert all(torch.equal(by_averages[name], value) for name, value in held.items())
    ol.save_model(cost, by_averages, tmp_path / "model")
    model = ol.load_model(tmp_path / "model")
    assert all(torch.equal(model.scope[name], value) for name, value in held.items())
    assert not any("@" in name for name in model.scope)


# What is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ours.SGD(0.1, weight_decay=-1), "weight_decay must be a finite number >= 0, not -1"),
        (lambda: ours.Adam(0.1, l1=float("nan")), "l1 must be a finite number >= 0, not nan"),
        (lambda: ours.Adam(0.1, beta1=1.0), "Adam: beta1 must be a finite number >= 0 and < 1, not 1.0"),
        (lambda: ours.SGD(0.1, accumulate=0), "accumulate must be an integer >= 1, not 0"),
        (lambda: ours.SGD(0.1, clip=1.0), "clip must be a function of pairs, such as ol.optimizer.ClipByGlobalNorm(1.0), not float 1.0"),
        (lambda: ours.SGD(0.1, average=0.9), "average must be an average, such as ol.optimizer.ExponentialAverage(0.999), not float 0.9"),
        (lambda: ours.SGD("fast"), "a learning rate must be a positive finite number, not 'fast'"),
        (lambda: ours.ClipByValue(0), "ClipByValue: limit must be a finite number > 0, not 0"),
        (lambda: ours.ClipByNorm(1.0, epsilon=-1.0), "clipping by a norm: epsilon must be a finite number >= 0, not -1.0"),
        (lambda: ours.ExponentialAverage(1.0), "ExponentialAverage: decay must be a finite number >= 0 and < 1, not 1.0"),
        (lambda: ours.UniformAverage(every=0), "UniformAverage: every must be an integer >= 1, not 0"),
        (lambda: ours.Muon(scale="match"), "Muon: scale must be 'original' or 'match_rms_adamw', not 'match'"),
        (lambda: ours.Rprop(lambda progress: progress.step), "Rprop: the learning rate must be a number, the size of the first steps"),
        (lambda: ours.Groups([0.1]), "a group must be a pair (selection, optimizer), not float 0.1"),
    ],
)
def test_bad_settings_are_errors_of_ours(make, message):
    with pytest.raises(ol.ArgumentError) as raised:
        make()
    assert raised.value.message == message


def test_a_keyword_that_no_optimizer_has_is_refused_with_one_that_it_has():
    with pytest.raises(ol.ArgumentError) as raised:
        ours.Adam(0.1, weigth_decay=0.1)
    assert raised.value.message == "Adam: no argument weigth_decay"
    assert raised.value.hint == 'did you mean "weight_decay"?'


def test_an_optimizer_that_cannot_update_leaves_the_program_as_it_was():
    program, cost = regression(None)
    before = program.to_bytes()

    class Failing(ours.SGD):
        def update(self, step, parameter, gradient):
            super().update(step, parameter, gradient)
            if parameter.name == "second.w":
                raise ValueError("no")

    for optimizer, error in (
        (ours.Muon(0.1), ol.ShapeError),
        (ours.Groups([("*.b", ours.SGD())]), ol.ProgramError),
        (ours.Groups([("*.c", ours.SGD())], otherwise=ours.SGD()), ol.ProgramError),
        (Failing(0.1), ValueError),
        (Failing(0.1, accumulate=2), ValueError),
    ):
        with pytest.raises(error):
            optimizer.minimize(cost)
        assert program.to_bytes() == before


def test_names_of_pytorch_and_keras_are_told_by_ours():
    from oarlock.suggestions import OPTIMIZERS_OF_OTHERS

    for theirs, place in OPTIMIZERS_OF_OTHERS.items():
        for module in (ours, ours.schedule):
            with pytest.raises(AttributeError, match=rf"did you mean ol\.optimizer\.{place}\?"):
                getattr(module, theirs)
        home, _, name = place.rpartition(".")
        assert name in (ours.schedule if home else ours).__all__
    with pytest.raises(AttributeError, match=r"did you mean ol\.optimizer\.schedule\.CosineDecay\?"):
        ours.CosineDecay
    for make, name in (
        (lambda: ours.Adam(0.1, betas=(0.9, 0.99)), "beta1"),
        (lambda: ours.schedule.CosineDecay(0.1, T_max=5), "steps"),
        (lambda: ours.schedule.StepDecay(0.1, step_size=5), "every"),
        (lambda: ours.LBFGS(history_size=5), "history"),
    ):
        with pytest.raises(ol.ArgumentError) as raised:
            make()
        assert raised.value.hint == f'did you mean "{name}"?'
