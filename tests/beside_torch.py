"""A layer beside the module of PyTorch that it stands for, with that module's weights: what both give, and all their gradients."""

from collections.abc import Callable, Mapping, Sequence

import numpy
import torch
from tolerances import AUTOGRAD, LAYERS

import oarlock as ol

__all__ = ["require_like", "same", "transposed"]

Copied = str | tuple[str, Callable[[torch.Tensor], torch.Tensor]]
"""A parameter of a module by its name there, and the form in which ours has it."""


def same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """A weight of PyTorch's, [n, k], as we have it, [k, n]."""
    return tensor.mT


def require_like(
    layer: Callable[..., ol.Var | Sequence[ol.Var]],
    module: torch.nn.Module | Callable,
    inputs: Sequence[numpy.ndarray | torch.Tensor],
    copied: Mapping[str, Copied],
    *,
    call: Callable | None = None,
    training: bool = False,
    tolerance: tuple[float, float] = LAYERS,
    wanted: Sequence[int] | None = None,
) -> ol.Program:
    """Hold a layer of inputs, which are called x0, x1 ..., to `call` of the module, or to the module itself.

    Floats among the inputs have a gradient, or those in `wanted` alone. Results without one are compared too. Returns our program.
    """
    arrays = [torch.as_tensor(value) for value in inputs]
    if isinstance(module, torch.nn.Module):
        module.double().train(training).zero_grad()
    with ol.Program() as program:
        vars = [
            ol.Variable(shape=tuple(value.shape), dtype=str(value.dtype).removeprefix("torch."), name=f"x{number}")
            for number, value in enumerate(arrays)
        ]
        found = layer(*vars)
        results = [found] if isinstance(found, ol.Var) else list(found)
        floats = [number for number, value in enumerate(arrays) if value.is_floating_point() and (wanted is None or number in wanted)]
        parameters = list(program.parameters())
        cost = sum(
            (ol.op.reduce_sum(ol.op.square(result) + result) for result in results[1:] if result.dtype.is_floating),
            ol.op.reduce_sum(ol.op.square(results[0]) + results[0]),
        )
        gradients = ol.gradients([cost], [*(vars[number] for number in floats), *parameters])
    assert {var.name for var in parameters} == set(copied), "every parameter is named, and only these"
    scope = ol.init(program, ol.Scope())
    theirs = dict(module.named_parameters()) if isinstance(module, torch.nn.Module) else {}
    for name, how in copied.items():
        source, form = (how, same) if isinstance(how, str) else how
        scope.set(name, form(theirs[source].detach()).contiguous().clone())
    leaves = [value.clone().requires_grad_(number in floats) for number, value in enumerate(arrays)]
    expected = (call or module)(*leaves)
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    torch.stack([(result.square() + result).sum() for result in expected if result.is_floating_point()]).sum().backward()
    feed = {f"x{number}": value.numpy() for number, value in enumerate(arrays)}
    values = ol.Executor(check=True).run(program, feed, [*results, *gradients], scope=scope, training=training)
    for actual, wanted_value in zip(values, expected, strict=False):
        torch.testing.assert_close(torch.as_tensor(actual), wanted_value.detach(), rtol=tolerance[0], atol=tolerance[1], equal_nan=True)
    of_inputs = [leaves[number].grad for number in floats]
    of_parameters = []
    for var in parameters:
        how = copied[var.name]
        source, form = (how, same) if isinstance(how, str) else how
        of_parameters.append(form(theirs[source].grad))
    rest = values[len(results) :]
    for name, actual, gradient in zip([*floats, *parameters], rest, [*of_inputs, *of_parameters], strict=True):
        torch.testing.assert_close(
            torch.as_tensor(actual),
            gradient,
            rtol=AUTOGRAD[0],
            atol=10 * AUTOGRAD[1],
            equal_nan=True,
            msg=lambda text, name=name: f"{name}: {text}",
        )
    return program
