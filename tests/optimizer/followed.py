"""A small regression in float64, and how it is trained: by a program of ours, and by another optimizer on the same gradients."""

from collections.abc import Callable

import numpy
import torch

import oarlock as ol

__all__ = ["STEPS", "follow_by_numpy", "follow_by_torch", "follow_by_us", "initial", "loss", "regression", "rows"]

STEPS = 50


def regression(optimizer: ol.optimizer.Optimizer | None, *, dtype: str = "float64") -> tuple[ol.Program, ol.Var]:
    """``tanh(x w + b) v`` against `y`, with a matrix that is wide, one that is high, and a bias; minimized where an optimizer is given."""
    with ol.Program(seed=3) as program:
        x, y = ol.layer.data("x", shape=[3], dtype=dtype), ol.layer.data("y", shape=[2], dtype=dtype)
        hidden = ol.layer.fc(x, 4, act="tanh", name="first")
        cost = ol.layer.mean(ol.op.square(ol.layer.fc(hidden, 2, bias=False, name="second") - y))
    if optimizer is not None:
        optimizer.minimize(cost)
    return program, cost


def rows(number: int, *, dtype: str = "float64") -> dict[str, numpy.ndarray]:
    """Another minibatch for each step."""
    random = numpy.random.default_rng(number)
    x = random.standard_normal((5, 3)).astype(dtype)
    return {"x": x, "y": numpy.stack([numpy.sin(x[:, 0]), x[:, 1] * x[:, 2]], axis=1).astype(dtype)}


def tensors_of(number: int) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(value) for name, value in rows(number).items()}


def initial() -> dict[str, torch.Tensor]:
    program, _ = regression(None)
    scope = ol.init(program, ol.Scope())
    return {var.name: scope[var.name].clone() for var in program.parameters()}


def follow_by_us(
    program: ol.Program, *, interpret: bool = False, steps: int = STEPS, fetch: list[str] | None = None, scope: ol.Scope | None = None
) -> tuple[ol.Scope, list[list[float]]]:
    """The scope after `steps` steps, and what each fetched."""
    scope = ol.init(program, ol.Scope()) if scope is None else scope
    executor = ol.Executor(interpret=interpret)
    fetched = [executor.run(program, rows(number), fetch or [], scope=scope, training=True) for number in range(steps)]
    return scope, [[float(value) for value in values] for values in fetched]


def loss(parameters: dict[str, torch.Tensor], batch: dict[str, torch.Tensor]) -> torch.Tensor:
    x, y = batch.values()
    hidden = torch.tanh(x @ parameters["first.w"] + parameters["first.b"])
    return ((hidden @ parameters["second.w"] - y) ** 2).mean()


def follow_by_torch(
    make: Callable[[list[torch.Tensor]], torch.optim.Optimizer],
    *,
    steps: int = STEPS,
    before_step: Callable[[list[torch.Tensor], torch.optim.Optimizer], object] | None = None,
    after_step: Callable[[list[torch.Tensor], torch.optim.Optimizer], object] | None = None,
) -> dict[str, torch.Tensor]:
    """The parameters after `steps` steps of an optimizer of PyTorch. Its scalars are float64 too, which they are where that is usual."""
    parameters = {name: value.requires_grad_() for name, value in initial().items()}
    tensors = list(parameters.values())
    torch.set_default_dtype(torch.float64)
    try:
        optimizer = make(tensors)
        for number in range(steps):
            optimizer.zero_grad()
            loss(parameters, tensors_of(number)).backward()
            if before_step is not None:
                before_step(tensors, optimizer)
            optimizer.step()
            if after_step is not None:
                after_step(tensors, optimizer)
    finally:
        torch.set_default_dtype(torch.float32)
    return {name: value.detach() for name, value in parameters.items()}


def follow_by_numpy(
    rule: Callable[[numpy.ndarray, numpy.ndarray, dict[str, numpy.ndarray], int], numpy.ndarray], *, steps: int = STEPS
) -> dict[str, torch.Tensor]:
    """The parameters after `steps` steps of ``rule(w, dw, state, t)``, which returns the next ``w`` and keeps what it likes in `state`."""
    parameters = {name: value.requires_grad_() for name, value in initial().items()}
    states: dict[str, dict[str, numpy.ndarray]] = {name: {} for name in parameters}
    for number in range(steps):
        gradients = torch.autograd.grad(loss(parameters, tensors_of(number)), list(parameters.values()))
        for (name, value), gradient in zip(list(parameters.items()), gradients, strict=True):
            following = rule(value.detach().numpy(), gradient.numpy(), states[name], number + 1)
            parameters[name] = torch.from_numpy(numpy.asarray(following)).requires_grad_()
    return {name: value.detach() for name, value in parameters.items()}
