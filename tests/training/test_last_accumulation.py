"""The end of a run that accumulates gradients: what is left is applied, scaled by the batches that it has, as a loop of PyTorch's does."""

import warnings

import numpy
import pytest
import torch
from tolerances import PYTORCH

import oarlock as ol

ROWS, SIZE = 40, 4
BATCHES = ROWS // SIZE
RANDOM = numpy.random.default_rng(0)
DATA = {"x": RANDOM.normal(size=(ROWS, 3)), "y": RANDOM.normal(size=(ROWS, 1))}
OPTIMIZERS = {
    "SGD": (lambda count: ol.optimizer.SGD(0.1, accumulate=count), lambda p: torch.optim.SGD(p, 0.1)),
    "Momentum": (lambda count: ol.optimizer.Momentum(0.1, mu=0.9, accumulate=count), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    "Adam": (lambda count: ol.optimizer.Adam(0.1, accumulate=count), lambda p: torch.optim.Adam(p, 0.1)),
    "loss scaling": (
        lambda count: ol.optimizer.LossScaling(ol.optimizer.Adam(0.1, accumulate=count)), lambda p: torch.optim.Adam(p, 0.1),
    ),
    "a schedule": (
        lambda count: ol.optimizer.SGD(ol.optimizer.schedule.ExponentialDecay(0.1, 0.5), accumulate=count),
        lambda p: torch.optim.SGD(p, 0.1),
    ),
    "clipping": (
        lambda count: ol.optimizer.SGD(0.1, accumulate=count, clip=ol.optimizer.ClipByGlobalNorm(0.2)), lambda p: torch.optim.SGD(p, 0.1),
    ),
}  # fmt: skip


def written(optimizer):
    with ol.Program(seed=0) as program:
        x, y = (ol.layer.data(name, [size], dtype="float64") for name, size in (("x", 3), ("y", 1)))
        w = ol.layer.create_parameter([3, 1], name="w", dtype="float64", initializer=ol.initializer.constant(0.3))
        cost = ol.layer.mean(ol.op.square(ol.op.matmul(x, w) - y))
        if optimizer is not None:
            optimizer.minimize(cost)
    return program, cost


def trained(optimizer, epochs=1, resume=None, **options):
    data = ol.data.read(DATA, shuffle=False)
    given = {"optimizer": optimizer, "epochs": epochs, "batch_size": SIZE} if resume is None else {}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = ol.train(written(None)[1] if resume is None else resume, data, progress=False, **given, **options)
    return result, [str(each.message) for each in told if "mean gradient" in str(each.message)]


def by_torch(name, count, epochs=1):
    """The parameter after a loop that updates after `count` batches and after the last one."""
    w = torch.full((3, 1), 0.3, dtype=torch.float64, requires_grad=True)
    optimizer = OPTIMIZERS[name][1]([w])
    decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5) if name == "a schedule" else None
    held = []

    def update():
        w.grad = sum(held) / len(held)
        if name == "clipping":
            torch.nn.utils.clip_grad_norm_([w], 0.2)
        optimizer.step()
        if decay is not None:
            decay.step()
        held.clear()

    for number in [*range(BATCHES)] * epochs:
        x, y = (torch.from_numpy(DATA[key][number * SIZE : (number + 1) * SIZE]) for key in ("x", "y"))
        held.append(torch.autograd.grad(((x @ w - y) ** 2).mean(), w)[0])
        if len(held) == count:
            update()
    if held:
        update()
    return w.detach()


def require_close(found, expected):
    torch.testing.assert_close(found, expected, rtol=PYTORCH[0], atol=PYTORCH[0])


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("count", [4, 10, 16])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_last_update_is_by_the_mean_of_the_batches_that_there_are(name, count, epochs):
    result, told = trained(OPTIMIZERS[name][0](count), epochs)
    require_close(result.parameters["w"], by_torch(name, count, epochs))
    left = epochs * BATCHES % count
    assert told == (
        [f"the last update uses the mean gradient of only {left} step{'s' * (left > 1)}, fewer than the optimizer accumulates"]
        if left
        else []
    )
    assert not result.parameters["w@ACCUMULATED"].any()
    assert result.steps == epochs * BATCHES


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_loop_of_ones_own_applies_it(name):
    program, _ = written(OPTIMIZERS[name][0](4))
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, [], scope=scope)
    for number in range(BATCHES):
        step({key: value[number * SIZE : (number + 1) * SIZE] for key, value in DATA.items()})
    assert ol.optimizer.apply_accumulated(program, scope) == BATCHES % 4
    require_close(scope["w"], by_torch(name, 4))
    before = scope["w"].clone()
    assert ol.optimizer.apply_accumulated(program, scope) == 0, "nothing is left"
    assert torch.equal(scope["w"], before)


def test_more_steps_begin_a_new_mean():
    program, _ = written(ol.optimizer.Adam(0.1, accumulate=4))
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, [], scope=scope)
    w = torch.full((3, 1), 0.3, dtype=torch.float64, requires_grad=True)
    optimizer, held = torch.optim.Adam([w], 0.1), []
    for number in range(BATCHES):
        batch = {key: value[number * SIZE : (number + 1) * SIZE] for key, value in DATA.items()}
        step(batch)
        x, y = (torch.from_numpy(batch[key]) for key in ("x", "y"))
        held.append(torch.autograd.grad(((x @ w - y) ** 2).mean(), w)[0])
        if number == 1:
            assert ol.optimizer.apply_accumulated(program, scope) == 2
        if number in (1, 5, 9):
            w.grad = sum(held) / len(held)
            optimizer.step()
            held.clear()
    require_close(scope["w"], w.detach())


@pytest.mark.parametrize("stop", [1, 5, 9])
def test_a_run_that_stops_after_some_steps_keeps_its_means_and_goes_on_to_the_same_bits(stop, tmp_path):
    whole, _ = trained(ol.optimizer.Adam(0.1, accumulate=4))
    part, told = trained(ol.optimizer.Adam(0.1, accumulate=4), steps=stop)
    assert not told
    assert int(part.parameters["adam_0.accumulated"]) == stop % 4
    ol.save_model(part, tmp_path / "part")
    rest, _ = trained(None, resume=ol.load_model(tmp_path / "part"))
    for name in whole.parameters:
        assert torch.equal(whole.parameters[name], rest.parameters[name]), name


def test_a_run_folder_holds_the_last_update_and_a_run_that_was_stopped_ends_with_the_same_bits(tmp_path):
    def run(name, **options):
        kept = ol.training.Run(tmp_path / name, save_every=3)
        return trained(ol.optimizer.Adam(0.1, accumulate=4), epochs=3, run=kept, **options)[0]

    whole = run("whole")
    run("part", steps=17)
    rest = run("part")
    for name in whole.parameters:
        assert torch.equal(whole.parameters[name], rest.parameters[name]), name
    require_close(whole.parameters["w"], by_torch("Adam", 4, 3))
    again = run("whole")  # which is over
    assert torch.equal(again.parameters["w"], whole.parameters["w"])


def test_ctrl_c_leaves_the_means_as_they_are():
    def interrupt(step, _):
        if step == 6:
            raise KeyboardInterrupt

    with pytest.raises(ol.training.Interrupted) as caught:
        trained(ol.optimizer.Adam(0.1, accumulate=4), on_step=interrupt)
    assert int(caught.value.result.parameters["adam_0.accumulated"]) == 2
    rest, _ = trained(None, resume=caught.value.result)
    assert torch.equal(rest.parameters["w"], trained(ol.optimizer.Adam(0.1, accumulate=4))[0].parameters["w"])


def test_a_run_that_ends_early_applies_it_and_one_that_goes_back_to_its_best_state_does_not():
    ended, told = trained(ol.optimizer.Adam(0.1, accumulate=4), epochs=5, on_epoch=lambda record: record.epoch == 1)
    assert len(told) == 1
    require_close(ended.parameters["w"], by_torch("Adam", 4))
    stopping = ol.training.EarlyStopping("loss", patience=1, restore_best=True)
    options = {"validate": ol.data.read(DATA, shuffle=False), "early_stopping": stopping}
    best, _ = trained(ol.optimizer.SGD(5.0, accumulate=4), epochs=5, **options)
    assert best.steps < 5 * BATCHES


def test_the_last_validation_is_of_the_last_update():
    result, _ = trained(ol.optimizer.SGD(0.1, accumulate=4), validate=ol.data.read(DATA, shuffle=False))
    loss = ((DATA["x"] @ result.parameters["w"].numpy() - DATA["y"]) ** 2).mean()
    assert next(iter(result.history[-1].validation.values())) == pytest.approx(loss)
