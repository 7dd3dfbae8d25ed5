"""Programs of complex numbers after every pass: loops, lookups, sums of products, transforms, their gradients and updates."""

from collections.abc import Callable

import numpy
import pytest
import torch
from tolerances import AUTOGRAD

import oarlock as ol

N, T, K = 3, 4, 2


def numbers(*shape: int, seed: int) -> numpy.ndarray:
    random = numpy.random.default_rng(seed)
    return (random.standard_normal(shape) + 1j * random.standard_normal(shape)) * 0.5


def parameter(name: str, *shape: int) -> ol.Var:
    start = ol.initializer.array(numbers(*shape, seed=len(name) + sum(shape)))
    return ol.layer.create_parameter(list(shape), dtype="complex128", name=name, initializer=start)


def recurrence(z: ol.Var, ids: ol.Var) -> ol.Var:
    u, w, steps = parameter("u", K, K), parameter("w", K, K), ol.op.transpose(z, axes=(1, 0, 2))
    first = ol.op.cast(ol.op.real(z[:, 0]) * 0.5, dtype="complex128")
    rnn = ol.rnn()
    with rnn.step():
        step = rnn.step_input(steps)
        memory = rnn.memory(init=first)
        following = ol.op.tanh(step @ w + rnn.previous_memory(memory) @ u)
        rnn.update_memory(memory, following)
        rnn.output(following)
    return rnn()


def lookup(z: ol.Var, ids: ol.Var) -> ol.Var:
    table, w, bias = parameter("table", 5, K), parameter("w", K, K), parameter("bias", K)
    rows = ol.op.gather(table, ids)
    return ol.op.linear(rows, w, bias) * ol.op.linear(ol.op.gather(table, ids), w) + z[:, 0]


def sums(z: ol.Var, ids: ol.Var) -> ol.Var:
    u, w, v = parameter("u", K, K), parameter("w", K, K), parameter("v", K)
    x = z[:, 1]
    a, b = x @ u, x @ ol.op.matrix_transpose(w)
    return a * v + ol.op.conj(b) * v + (x - a * 2.0 + b * 1j) * 1.0 + ol.op.conj(ol.op.conj(x)) + x * 0.0 + ol.op.neg(ol.op.neg(b))


def spectra(z: ol.Var, ids: ol.Var) -> ol.Var:
    v = parameter("v", T)
    turned = ol.op.fft(ol.op.transpose(z, axes=(0, 2, 1))) * v
    return ol.op.ifft(turned / (ol.op.cast(ol.op.square(ol.op.abs(turned)), dtype="complex128") + 1.0))


def systems(z: ol.Var, ids: ol.Var) -> ol.Var:
    w = parameter("w", K, K)
    return ol.op.solve(w + ol.op.cast(ol.op.eye(rows=K, dtype="float64"), dtype="complex128") * 3.0, ol.op.transpose(z[:, 2], axes=(1, 0)))


PROGRAMS = [recurrence, lookup, sums, spectra, systems]


def program_of(build: Callable[[ol.Var, ol.Var], ol.Var], update: bool) -> tuple[ol.Program, list[ol.Var]]:
    with ol.Program(seed=1) as program:
        z = ol.layer.data("z", [T, K], "complex128")
        ids = ol.layer.data("ids", [], "int64")
        y = build(z, ids)
        cost = ol.op.reduce_sum(ol.op.square(ol.op.abs(y))) + ol.op.reduce_sum(ol.op.real(y * y))
    if update:
        ol.optimizer.Momentum(0.01).minimize(cost)
        return program, [cost]
    parameters = list(program.parameters())
    found = ol.gradients(cost, [*parameters, z])
    return program, [cost, y, *(each for each in found if each is not None)]


FEED = {"z": numbers(N, T, K, seed=0), "ids": numpy.array([4, 0, 4])}


@pytest.mark.parametrize("build", PROGRAMS)
def test_a_plan_computes_what_the_interpreter_computes(build):
    program, fetch = program_of(build, update=False)
    scope = ol.init(program, ol.Scope())
    expected = ol.Executor(interpret=True, check=True).run(program, FEED, fetch, scope=scope)
    for passes in (None, ()):
        executor = ol.Executor() if passes is None else ol.Executor(passes=passes)
        for ours, theirs in zip(executor.run(program, FEED, fetch, scope=scope), expected, strict=True):
            numpy.testing.assert_allclose(ours, theirs, *AUTOGRAD)
    slopes = differences(program, fetch[0], scope)
    for slope, found in zip(slopes.values(), expected[2:], strict=False):  # the last gradient is that of what is fed
        direction = numbers(*found.shape, seed=5)
        assert float((found.conj() * direction).sum().real) == pytest.approx(slope, rel=1e-5)


def differences(program: ol.Program, cost: ol.Var, scope: ol.Scope) -> dict[str, float]:
    """The slope of the cost where each parameter moves in a direction, by central differences."""
    found, executor = {}, ol.Executor(interpret=True)
    for var in program.parameters():
        start, ends = scope[var.name].clone(), []
        for step in (1e-6, -1e-6):
            scope.set(var.name, start + step * torch.from_numpy(numbers(*start.shape, seed=5)))
            ends.append(float(executor.run(program, FEED, [cost], scope=scope)[0]))
        scope.set(var.name, start)
        found[var.name] = (ends[0] - ends[1]) / 2e-6
    return found


@pytest.mark.parametrize("build", PROGRAMS)
def test_a_plan_trains_to_what_the_interpreter_trains_to(build):
    program, fetch = program_of(build, update=True)
    scopes = []
    for executor in (ol.Executor(), ol.Executor(interpret=True)):
        scopes.append(ol.init(program, ol.Scope()))
        for _ in range(4):
            executor.run(program, FEED, fetch, scope=scopes[-1], training=True)
    for var in program.parameters():
        torch.testing.assert_close(scopes[0][var.name], scopes[1][var.name], rtol=AUTOGRAD[0], atol=AUTOGRAD[1])
