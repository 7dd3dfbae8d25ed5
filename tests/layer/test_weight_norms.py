"""Weights divided by their largest singular value, and weights of a length that is trained."""

import pytest
import torch
from tolerances import AUTOGRAD, LAYERS

import oarlock as ol


def weight(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


def unit(x: torch.Tensor) -> torch.Tensor:
    return x / x.norm()


@pytest.mark.parametrize(("shape", "axis"), [((4, 3), 0), ((4, 3), 1), ((2, 3, 2, 2), 0), ((2, 3, 2, 2), 1)])
def test_a_spectral_norm_follows_its_power_iteration_over_training_steps(shape: tuple[int, ...], axis: int):
    """Weights move by gradient descent; the vector is state, read and written by each step, and no gradient goes through it."""
    w = weight(*shape)
    with ol.Program() as program:
        given = ol.layer.create_parameter(shape, dtype="float64", name="w")
        y = ol.layer.spectral_norm(given, axis=axis, iterations=2, name="norm")
        ol.optimizer.SGD(0.1).minimize(ol.op.reduce_sum(ol.op.power(y, 3.0)))
    scope, executor = ol.init(program, ol.Scope()), ol.Executor()
    scope.var("w").value = w
    u = torch.as_tensor(scope["norm.u"]).clone()
    for _ in range(4):
        (found,) = executor.run(program, {}, [y], scope=scope, return_numpy=False)
        leaf = w.clone().requires_grad_()
        matrix = leaf.movedim(axis, 0).flatten(1)
        for _ in range(2):
            v = unit(matrix.detach().T @ u)
            u = unit(matrix.detach() @ v)
        expected = leaf / (u @ (matrix @ v))
        torch.testing.assert_close(found, expected.detach(), rtol=AUTOGRAD[0], atol=AUTOGRAD[1])
        (gradient,) = torch.autograd.grad((expected**3).sum(), leaf)
        w = w - 0.1 * gradient
    torch.testing.assert_close(torch.as_tensor(scope["norm.u"]), u, rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


def test_it_comes_to_the_largest_singular_value_and_stays_where_nothing_trains():
    with ol.Program() as program:
        given = ol.layer.create_parameter((5, 4), dtype="float64", name="w")
        y = ol.layer.spectral_norm(given, iterations=200, name="norm")
    scope = ol.init(program, ol.Scope())
    scope.var("w").value = weight(5, 4)
    executor = ol.Executor()
    before = torch.as_tensor(scope["norm.u"]).clone()
    executor.run(program, {}, [y], scope=scope, training=False)
    assert torch.equal(torch.as_tensor(scope["norm.u"]), before)
    (found,) = executor.run(program, {}, [y], scope=scope, return_numpy=False, training=True)
    assert torch.linalg.matrix_norm(found, 2).item() == pytest.approx(1.0, abs=1e-12)
    after = torch.as_tensor(scope["norm.u"]).clone()
    (again,) = executor.run(program, {}, [y], scope=scope, return_numpy=False, training=False)
    torch.testing.assert_close(again, found, rtol=LAYERS[0], atol=LAYERS[1])
    assert torch.equal(torch.as_tensor(scope["norm.u"]), after)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_a_weight_norm_is_that_of_pytorch(axis: int | None):
    v, g = weight(4, 3).requires_grad_(), torch.rand({0: 4, 1: 3, None: ()}[axis], dtype=torch.float64) + 0.5
    g.requires_grad_()
    expected = torch._weight_norm(v, g.reshape({0: (4, 1), 1: (1, 3), None: ()}[axis]), -1 if axis is None else axis)
    wanted = torch.autograd.grad((expected**3).sum(), [v, g])
    with ol.Program() as program:
        given = ol.layer.create_parameter((4, 3), dtype="float64", name="v")
        y = ol.layer.weight_norm(given, axis=axis, name="norm")
        found = ol.gradients(ol.op.reduce_sum(ol.op.power(y, 3.0)), [given, program.main.vars["norm.g"]])
    scope = ol.init(program, ol.Scope())
    assert (torch.as_tensor(scope["norm.g"]) == 1.0).all()
    scope.var("v").value, scope.var("norm.g").value = v.detach(), g.detach()
    values = ol.Executor().run(program, {}, [y, *found], scope=scope, return_numpy=False)
    torch.testing.assert_close(values, [expected.detach(), *wanted], rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


def test_a_vector_follows_one_weight_of_the_main_block():
    with ol.Program() as program:
        w = ol.layer.create_parameter((2, 2), name="w")
        ol.layer.spectral_norm(w, name="norm")
        with pytest.raises(ol.ProgramError, match=r'spectral_norm: "norm.u" is already declared, and it belongs to one weight'):
            ol.layer.spectral_norm(w, name="norm")
        with pytest.raises(ol.ShapeError, match='spectral_norm: "b" is not a matrix'):
            ol.layer.spectral_norm(ol.layer.create_parameter((2,), name="b"))
        count = ol.layer.data("count", [], batch=None)
        loop = ol.while_loop(count < 3.0)
        with pytest.raises(ol.ProgramError, match="spectral_norm: its vector cannot be updated in main/while_0.body"), loop.block():
            ol.layer.spectral_norm(ol.op.multiply(w, count))
    assert [var.name for var in program.main.vars.values() if var.persistable] == ["w", "norm.u", "b"]
