"""How far PyTorch is from itself in float32: a model in one memory format and in the other, each beside float64, and ours.

    python tools/model_spread.py tv/resnet34,tv/fcn_resnet50

The numbers are those of the gate (`model_gate.py`), as shares of what it allows: the largest of the forward pass, and the loss, of the
first size and both batches. Above 1 the gate says no.
"""

import argparse
import copy
import math

import numpy
import torch
from model_catalogue import find_subject, renamed_first
from torch import nn
from torch.utils import _pytree as pytree

import oarlock as ol

_FORWARD, _LOSS = 1e-5, 1e-4
_BATCHES = (2, 3)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare float32 of PyTorch, in two memory formats, and of ours.")
    parser.add_argument("names", help="models of the list, with commas between them")
    print(f"{'shares of what the gate allows':34} {'forward':>34}   {'loss':>34}")
    print(f"{'':34} {'formats':>10} {'ours':>11} {'float64':>11}   {'formats':>10} {'ours':>11} {'float64':>11}")
    for name in parser.parse_args().names.split(","):
        forward, loss = spread(name)
        numbers = "   ".join(" ".join(f"{number:11.2f}" for number in each) for each in (forward, loss))
        print(f"{name:34}{numbers}", flush=True)
    return 0


def spread(name: str) -> tuple[list[float], list[float]]:
    """For the forward pass and the loss: channels last from contiguous, ours from contiguous, contiguous from float64."""
    subject = find_subject(name)
    size = subject.sizes[0]
    module = subject.module(size)
    forward, loss = [0.0] * 3, [0.0] * 3
    for batch in _BATCHES:
        given = renamed_first(module, subject.inputs(size, batch))
        for training, found, measure in ((False, forward, _off), (True, loss, _loss_off)):
            plain, last, exact = (_run(module, given, training=training, form=form) for form in ("contiguous", "channels last", "float64"))
            for number, pair in enumerate(((last, plain), (_ours(module, given, training=training), plain), (plain, exact))):
                found[number] = max(found[number], measure(*pair))
    return forward, loss


def _run(module: nn.Module, given: dict[str, torch.Tensor], *, training: bool, form: str) -> list[torch.Tensor]:
    own = copy.deepcopy(module).train(training)
    if form == "channels last":
        own = own.to(memory_format=torch.channels_last)
        given = {key: value.to(memory_format=torch.channels_last) if value.ndim == 4 else value for key, value in given.items()}
    elif form == "float64":
        own, given = own.double(), {key: value.double() if value.is_floating_point() else value for key, value in given.items()}
    with torch.no_grad():
        leaves = pytree.tree_flatten(own(**given))[0]
    return [leaf.double() for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]


def _ours(module: nn.Module, given: dict[str, torch.Tensor], *, training: bool) -> list[torch.Tensor]:
    model = ol.from_torch(copy.deepcopy(module), given, dynamic="n", training=training)
    outputs = [var for var in model.outputs.values() if var.dtype.is_floating]
    feed = {key: value.numpy() for key, value in given.items()}
    scope = ol.init(model.program, ol.Scope(), limits=ol.Limits(parameter_bytes=2**34))
    return [torch.as_tensor(value).double() for value in model.executor.run(model.program, feed, outputs, scope=scope, training=training)]


def _off(ones: list[torch.Tensor], others: list[torch.Tensor]) -> float:
    return max(float(((one - other).abs() / other.abs().clamp(min=1.0)).max()) for one, other in zip(ones, others, strict=True)) / _FORWARD


def _loss_off(ones: list[torch.Tensor], others: list[torch.Tensor]) -> float:
    """As the gate has it: mean squared distances from targets of the size of the outputs."""
    generator = torch.Generator().manual_seed(5)
    weights = [torch.randn(value.shape, generator=generator, dtype=torch.float64) for value in others]
    targets = [value.square().mean().sqrt() * weight for value, weight in zip(others, weights, strict=True)]
    first, second = (
        math.fsum(float((value - target).square().mean()) for value, target in zip(values, targets, strict=True) if value.numel())
        for values in (ones, others)
    )
    return abs(first - second) / (_LOSS * max(second, numpy.finfo(float).tiny))


if __name__ == "__main__":
    raise SystemExit(main())
