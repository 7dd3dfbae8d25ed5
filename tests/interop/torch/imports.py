"""A function or module of PyTorch beside its import: forward, and every gradient, in float64."""

from collections.abc import Callable, Sequence

import numpy
import torch
from tolerances import AUTOGRAD
from torch.utils import _pytree as pytree

import oarlock as ol
from oarlock.interop.torch.imported import ImportedModule
from oarlock.layer.inputs import data


class Function(torch.nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., object]):
        super().__init__()
        self.function = function

    def forward(self, *given: torch.Tensor) -> object:
        return self.function(*given)


def compare(
    module: torch.nn.Module | Callable[..., object],
    given: Sequence[torch.Tensor],
    *more: Sequence[torch.Tensor],
    dynamic: object = None,
    tolerance: tuple[float, float] = AUTOGRAD,
    differentiate: bool = True,
) -> ImportedModule:
    """Import a module for `given`; hold what it gives for that, and for what else is given, and its gradients to PyTorch's."""
    module = module if isinstance(module, torch.nn.Module) else Function(module)
    state = {name: value.clone() for name, value in module.state_dict().items()}
    model = ol.from_torch(module, tuple(given), dynamic=dynamic)
    training = _with_gradients(model) if differentiate else None
    for values in (given, *more):
        module.load_state_dict(state)
        _compare_forward(module, model, values, tolerance)
        if training is not None:
            _compare_training(module, model, training, values, tolerance)
    module.load_state_dict(state)
    return model


def _tensors(output: object) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_flatten(output)[0] if isinstance(leaf, torch.Tensor)]


def _feed(model: ImportedModule, values: Sequence[torch.Tensor]) -> dict[str, numpy.ndarray]:
    return {name: value.detach().numpy() for name, value in zip(model.inputs, values, strict=True)}


def _compare_forward(
    module: torch.nn.Module, model: ImportedModule, values: Sequence[torch.Tensor], tolerance: tuple[float, float]
) -> None:
    module.eval()
    with torch.no_grad():
        wanted = _tensors(module(*values))
    made = model.executor.run(model.program, _feed(model, values), list(model.outputs.values()), scope=model.scope, training=False)
    for label, one, other in zip(model.outputs, made, wanted, strict=True):
        _require_close(label, one, other, tolerance)


def _require_close(what: str, one: numpy.ndarray, other: torch.Tensor, tolerance: tuple[float, float]) -> None:
    assert one.dtype == other.numpy().dtype, what
    numpy.testing.assert_allclose(one, other.numpy(), rtol=tolerance[0], atol=tolerance[1], equal_nan=True, err_msg=what)


def _with_gradients(model: ImportedModule):
    """Gradients at all that is trained and all floating inputs, against gradients of the outputs that are fed."""
    wanted = [var for var in model.program.main.vars.values() if var.parameter and var.trainable]
    wanted += [var for var in model.inputs.values() if var.dtype.is_floating]
    outputs = [var for var in model.outputs.values() if var.dtype.is_floating]
    with model.program:
        weights = [data(f"weight.{number}", var.shape, var.dtype, batch=None) for number, var in enumerate(outputs)]
        return wanted, weights, ol.gradients(outputs, wanted, weights)


def _compare_training(module, model, training, values, tolerance) -> None:
    wanted, weights, found = training
    module.train()
    inputs = [value.clone().requires_grad_(value.is_floating_point()) for value in values]
    outputs = [value for value in _tensors(module(*inputs)) if value.is_floating_point()]
    generator = torch.Generator().manual_seed(3)
    drawn = [torch.randn(value.shape, generator=generator, dtype=torch.float64).to(value.dtype) for value in outputs]
    own = {**dict(module.named_parameters()), **dict(zip(model.inputs, inputs, strict=True))}
    linked = [(value, weight) for value, weight in zip(outputs, drawn, strict=True) if value.requires_grad]
    assert linked
    leaves = [own[var.name] for var in wanted]
    theirs = torch.autograd.grad([value for value, _ in linked], leaves, [weight for _, weight in linked], allow_unused=True)
    scope = ol.init(model.program, ol.Scope())
    feed = {**_feed(model, values), **{var.name: weight.numpy() for var, weight in zip(weights, drawn, strict=True)}}
    made = iter(model.executor.run(model.program, feed, [var for var in found if var is not None], scope=scope, training=True))
    for var, gradient, other in zip(wanted, found, theirs, strict=True):
        value = next(made) if gradient is not None else numpy.zeros(())
        expected = torch.zeros(tuple(own[var.name].shape), dtype=own[var.name].dtype) if other is None else other
        _require_close(f"the gradient at {var.name}", numpy.broadcast_to(value, tuple(expected.shape)), expected, tolerance)
    for name, buffer in module.named_buffers():
        if name in scope:
            _require_close(name, numpy.asarray(scope[name]), buffer, tolerance)
