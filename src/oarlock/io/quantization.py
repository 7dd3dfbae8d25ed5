"""`quantize`: convert the weights of a model to 8-bit integers."""

import torch

from oarlock.errors import ArgumentError, UnsetVarError
from oarlock.io.model import Model
from oarlock.ir.location import here
from oarlock.passes.precision.quantization import LEAST_PRODUCT, Mode
from oarlock.passes.precision.quantization import quantize as quantize_program
from oarlock.registry.creator import describe_value
from oarlock.runtime.scope import Scope
from oarlock.tensor.dtype import quantized

__all__ = ["quantize"]


def quantize(model: Model, mode: Mode = "dynamic", *, at_least: int = 4096, products_at_least: int = LEAST_PRODUCT) -> Model:
    """Return a copy of a model with int8 weights, about a quarter of the size, that computes the same up to rounding.

        small = ol.quantize(ol.load_model("predict.safetensors"))
        ol.save_model(small, "small.safetensors")

    In the mode "dynamic", products with weights are computed in integers, and each row of the other factor is quantized at run time; in
    the mode "weights", they are computed in floats. This applies `ol.passes.quantize`, which describes the result and raises its errors,
    to a copy of the program. Weights of fewer than `at_least` elements are not quantized. Those of fewer than `products_at_least` are
    treated as in the mode "weights", which is faster for a single row. All other values are shared with `model`. Raises ArgumentError if
    `model` is not a model, UnsetVarError for a weight without a value.
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
    """Return a tensor of a model. Raises UnsetVarError."""
    found = model.scope.find_var(name)
    value = found.value if found is not None and found.is_set else None
    if not isinstance(value, torch.Tensor):
        raise UnsetVarError(f'the model has no value for "{name}"', location=here())
    return value
