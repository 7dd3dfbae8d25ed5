"""`quantize`: a model whose weights are integers of 8 bits, made of one of floats."""

import torch

from oarlock.errors import ArgumentError, UnsetVarError
from oarlock.io.model import Model
from oarlock.ir.location import here
from oarlock.passes.precision.quantization import LEAST_PRODUCT, Mode
from oarlock.passes.precision.quantization import quantize as quantize_program
from oarlock.registry.creator import describe_value
from oarlock.runtime.scope import Scope
from oarlock.tensor.quantization import quantized

__all__ = ["quantize"]


def quantize(model: Model, mode: Mode = "dynamic", *, at_least: int = 4096, products_at_least: int = LEAST_PRODUCT) -> Model:
    """A model that computes what `model` does but for rounding, with weights as int8: about a quarter of its size.

        small = ol.quantize(ol.load_model("predict.safetensors"))
        ol.save_model(small, "small.safetensors")

    With the mode "dynamic", products of weights are products of integers, for which each row of the other factor is quantised when it
    runs; with "weights", products are those of floats. The program says so: see `ol.passes.quantize`, which this applies to a copy, with
    the errors that it raises. Weights of fewer than `at_least` elements stay as they are, and those of fewer than `products_at_least` are
    as with "weights", for one row is faster so; everything else is shared with `model`.
    Raises ArgumentError for what is no model, UnsetVarError for a weight that has no value.
    """
    if not isinstance(model, Model):
        raise ArgumentError(f"quantize takes a model, such as ol.load_model(path), not {describe_value(model)}", location=here())
    program = model.program.clone()
    changed = quantize_program(program, mode, at_least=at_least, products_at_least=products_at_least)
    scope = Scope()
    for weight in changed:
        integers, scales = quantized(_value(model, weight.weight), weight.axis)
        integers = integers.mT.contiguous() if weight.is_transposed else integers
        for name, value in ((weight.integers, integers), (weight.scales, scales)):
            scope.var(name).give(value, own=True)
            scope.var(name).estimated = False
    made = {name for weight in changed for name in (weight.integers, weight.scales)}
    for var in program.persistables():
        if var.name not in made:
            scope.var(var.name).give(_value(model, var.name))
    return Model(program, scope, catalogue=model.catalogue, limits=model.limits)


def _value(model: Model, name: str) -> torch.Tensor:
    """The tensor that a model holds. Raises UnsetVarError."""
    found = model.scope.find_var(name)
    value = found.value if found is not None and found.is_set else None
    if not isinstance(value, torch.Tensor):
        raise UnsetVarError(f'the model holds no value of "{name}"', location=here())
    return value
