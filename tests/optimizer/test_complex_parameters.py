"""Complex parameters go where `torch.optim` takes them, which sees two real numbers in each: 50 steps in complex128."""

import numpy
import pytest
import torch
from tolerances import PYTORCH

import oarlock as ol

optim, ours = torch.optim, ol.optimizer
STEPS = 50

FOLLOWED = {
    "sgd": (lambda: ours.SGD(0.02), lambda p: optim.SGD(p, lr=0.02)),
    "sgd, decayed": (lambda: ours.SGD(0.02, weight_decay=0.05), lambda p: optim.SGD(p, lr=0.02, weight_decay=0.05)),
    "momentum": (lambda: ours.Momentum(0.01), lambda p: optim.SGD(p, lr=0.01, momentum=0.9)),
    "momentum, nesterov": (
        lambda: ours.Momentum(0.01, 0.8, nesterov=True),
        lambda p: optim.SGD(p, lr=0.01, momentum=0.8, nesterov=True),
    ),
    "adagrad": (lambda: ours.Adagrad(0.1), lambda p: optim.Adagrad(p, lr=0.1)),
    "rmsprop": (lambda: ours.RMSProp(0.02), lambda p: optim.RMSprop(p, lr=0.02)),
    "adam": (lambda: ours.Adam(0.02), lambda p: optim.Adam(p, lr=0.02)),
    "adam, all": (
        lambda: ours.Adam(0.02, beta1=0.8, beta2=0.95, amsgrad=True, weight_decay=0.1),
        lambda p: optim.Adam(p, lr=0.02, betas=(0.8, 0.95), amsgrad=True, weight_decay=0.1),
    ),
    "adamw": (lambda: ours.AdamW(0.02, weight_decay=0.2), lambda p: optim.AdamW(p, lr=0.02, weight_decay=0.2)),
    "sgd, decoupled": (
        lambda: ours.SGD(0.02, weight_decay=0.05, decoupled_weight_decay=True),
        lambda p: optim.SGD(p, lr=0.02, weight_decay=0.05),
    ),
}


def rows(number: int) -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(number)
    x = random.standard_normal((5, 3)) + 1j * random.standard_normal((5, 3))
    return {"x": x, "y": numpy.stack([x[:, 0] * x[:, 1], x[:, 2].conj()], axis=1)}


def regression(optimizer: ol.optimizer.Optimizer) -> ol.Program:
    """``tanh(x w) v`` against `y`, by the mean of the squared sizes of differences."""
    with ol.Program(seed=3) as program:
        x, y = ol.layer.data("x", [3], "complex128"), ol.layer.data("y", [2], "complex128")
        w = ol.layer.create_parameter([3, 4], dtype="complex128", name="w", initializer=ol.initializer.normal(0.0, 0.3))
        v = ol.layer.create_parameter([4, 2], dtype="complex128", name="v", initializer=ol.initializer.normal(0.0, 0.3))
        apart = ol.op.tanh(x @ w) @ v - y
        cost = ol.op.mean(ol.op.square(ol.op.abs(apart)))
    optimizer.minimize(cost)
    return program


@pytest.mark.parametrize("interpret", [False, True], ids=["plan", "interpreter"])
@pytest.mark.parametrize("name", FOLLOWED)
def test_a_complex_parameter_goes_where_pytorch_takes_it(name: str, interpret: bool):
    program = regression(FOLLOWED[name][0]())
    scope = ol.init(program, ol.Scope())
    w, v = (scope[each].clone().requires_grad_() for each in ("w", "v"))
    theirs = FOLLOWED[name][1]([w, v])
    executor = ol.Executor(interpret=interpret)
    for number in range(STEPS):
        batch = rows(number)
        executor.run(program, batch, [], scope=scope, training=True)
        theirs.zero_grad()
        x, y = (torch.from_numpy(batch[each]) for each in ("x", "y"))
        (torch.tanh(x @ w) @ v - y).abs().square().mean().backward()
        theirs.step()
    for found, expected in ((scope["w"], w), (scope["v"], v)):
        torch.testing.assert_close(found, expected.detach(), rtol=PYTORCH[0], atol=PYTORCH[1])


def test_clipping_by_norm_counts_both_parts():
    program = regression(ours.SGD(0.1, clip=ours.ClipByGlobalNorm(0.05)))
    scope = ol.init(program, ol.Scope())
    before = {name: scope[name].clone() for name in ("w", "v")}
    ol.Executor().run(program, rows(0), [], scope=scope, training=True)
    moved = torch.stack([(scope[name] - before[name]).abs().square().sum() for name in before]).sum().sqrt()
    assert float(moved) == pytest.approx(0.1 * 0.05, rel=1e-4)


def test_a_training_program_of_complex_parameters_goes_on_from_its_file(tmp_path):
    program = regression(ours.Adam(0.02))
    scope, path = ol.init(program, ol.Scope()), tmp_path / "model.safetensors"
    for number in range(3):
        ol.Executor().run(program, rows(number), [], scope=scope, training=True)
    ol.save_model(program, scope, path)
    again = ol.load_model(path)
    for which, held in ((program, scope), (again.program, again.scope)):
        ol.Executor().run(which, rows(3), [], scope=held, training=True)
    assert torch.equal(scope["w"], again.scope["w"])
