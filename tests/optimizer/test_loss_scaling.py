"""Loss scaling follows PyTorch's GradScaler, through steps whose gradients are not finite."""

import numpy
import pytest
import torch
from tolerances import FLOAT32_UPDATES

import oarlock as ol
from oarlock.registry.catalogue import standard
from oarlock.registry.type_check import require_legal

SETTINGS = {"initial": 1024.0, "growth": 4.0, "backoff": 0.25, "interval": 3}
W = numpy.random.default_rng(1).normal(size=(4, 3)).astype("float32")


def feeds() -> list[dict[str, numpy.ndarray]]:
    values = numpy.random.default_rng(0).normal(size=(12, 5, 4)).astype("float32")
    values[2, 0, 0], values[7, 1, 1], values[8, 0, 0] = numpy.inf, numpy.nan, -numpy.inf
    return [{"x": value} for value in values]


def written(optimizer: ol.optimizer.Optimizer) -> tuple[ol.Program, ol.Var]:
    with ol.Program() as program:
        w = ol.layer.create_parameter([4, 3], name="w", initializer=ol.initializer.array(W))
        cost = ol.layer.mean(ol.op.square(ol.op.linear(ol.layer.data("x", [4]), w)))
        optimizer.minimize(cost)
    require_legal(program, standard)
    return program, cost


@pytest.mark.parametrize("options", [{"interpret": True}, {}], ids=["interpreter", "plan"])
def test_it_follows_the_scaler_of_pytorch(options):
    program, cost = written(ol.optimizer.LossScaling(ol.optimizer.Adam(0.05), **SETTINGS))
    w = torch.nn.Parameter(torch.tensor(W))
    optimizer = torch.optim.Adam([w], lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_factor=4.0, backoff_factor=0.25, growth_interval=3)
    scope, executor = ol.init(program, ol.Scope()), ol.Executor(**options)
    for feed in feeds():
        executor.run(program, feed, [cost], scope=scope)
        optimizer.zero_grad()
        scaler.scale((torch.tensor(feed["x"]) @ w).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scope["loss_scale_0"].numpy() == scaler.get_scale()
        numpy.testing.assert_allclose(scope["w"].numpy(), w.detach().numpy(), rtol=FLOAT32_UPDATES[0], atol=FLOAT32_UPDATES[1])
    assert (int(scope["@STEP"].numpy()), int(scope["loss_scale_0.updates"].numpy())) == (12, 9)


def test_groups_and_accumulation_are_skipped_as_one():
    groups = ol.optimizer.Groups([("w", ol.optimizer.SGD(0.1, accumulate=2))])
    program, cost = written(ol.optimizer.LossScaling(groups, **SETTINGS))
    scope, executor = ol.init(program, ol.Scope()), ol.Executor()
    before = []
    for feed in feeds()[:4]:
        executor.run(program, feed, [cost], scope=scope)
        before.append((scope["w"].numpy().copy(), scope["w@ACCUMULATED"].numpy().copy()))
    assert not numpy.array_equal(before[0][0], before[1][0])  # after two steps
    for one, other in zip(before[1], before[2], strict=True):  # the third is not finite
        assert numpy.array_equal(one, other)
    assert not numpy.array_equal(before[2][1], before[3][1])


@pytest.mark.parametrize(("accumulate", "rates"), [(1, [0.4, 0.2, 0.1, 0.1]), (2, [0.4, 0.4, 0.2, 0.2])])
def test_a_schedule_counts_the_updates_that_were_made(accumulate, rates):
    sgd = ol.optimizer.SGD(ol.optimizer.schedule.StepDecay(0.4, 1, 0.5), accumulate=accumulate)
    program, _ = written(ol.optimizer.LossScaling(sgd, **SETTINGS))
    scope, executor = ol.init(program, ol.Scope()), ol.Executor()
    rate = program.main.var("sgd_0.learning_rate")
    assert [float(executor.run(program, feed, [rate], scope=scope)[0]) for feed in feeds()[:4]] == rates  # the third is not finite


def test_what_is_no_setting_is_refused():
    with pytest.raises(ol.ArgumentError, match="LossScaling: optimizer must be another optimizer, not "):
        ol.optimizer.LossScaling(0.1)  # type: ignore[arg-type]
    with pytest.raises(ol.ArgumentError, match="backoff must be a finite number > 0 and <= 1, not 2"):
        ol.optimizer.LossScaling(ol.optimizer.SGD(0.1), backoff=2.0)
    with ol.Program() as program:
        w = ol.layer.create_parameter([4, 3], name="w")
        pairs = ol.append_backward(ol.layer.mean(w))
        with pytest.raises(ol.ProgramError, match="LossScaling has not scaled the cost of these gradients"):
            ol.optimizer.LossScaling(ol.optimizer.SGD(0.1)).apply(pairs)
    assert not program.is_training
