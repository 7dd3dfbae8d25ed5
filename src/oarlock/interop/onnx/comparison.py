"""Compare an imported model with ONNX Runtime, on the same inputs."""

import os
from dataclasses import dataclass

import numpy
import torch

from oarlock.errors import ArgumentError
from oarlock.interop.onnx.package import get_package
from oarlock.io.model import Model
from oarlock.ir.dtype import DType
from oarlock.ir.size import evaluate, names_in
from oarlock.ir.var import Var

__all__ = ["Difference", "compare_with_onnxruntime"]


@dataclass(frozen=True)
class Difference:
    """The difference of one output from ONNX Runtime's: the largest difference and the largest value.

    `fits`: whether dtype and shape agree.
    """

    output: str
    fits: bool
    largest: float
    magnitude: float


def compare_with_onnxruntime(path: str | os.PathLike[str], model: Model, *, size: int = 2, seed: int = 0) -> list[Difference]:
    """Run both with the same inputs, drawn from `seed`, and return one difference per output. Symbolic sizes are `size`.

    Floats are drawn from the normal distribution, integers are 0 or 1. Raises ArgumentError if `onnxruntime` is not installed or rejects
    the file.
    """
    runtime = get_package("onnxruntime")
    try:
        session = runtime.InferenceSession(os.fspath(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has an exception class for each status
        raise ArgumentError(f"ONNX Runtime rejects this model: {error}"[:600]) from error
    random = numpy.random.default_rng(seed)
    feed = {var.name: _drawn(var, size, random) for var in model.program.main.inputs}
    names = [item.name for item in session.get_inputs()]
    theirs = session.run(None, dict(zip(names, feed.values(), strict=True)))
    ours = model.executor.eval(model.program, list(model.program.targets), feed, scope=model.scope, return_numpy=False)
    pairs = zip(model.program.targets, ours, theirs, strict=True)
    return [_difference(label, torch.as_tensor(value), torch.from_numpy(numpy.array(other))) for label, value, other in pairs]


def _drawn(var: Var, size: int, random: numpy.random.Generator) -> numpy.ndarray:
    shape = [evaluate(item, dict.fromkeys(names_in(item), size)) or 0 for item in var.shape or ()]
    if var.dtype is DType.BOOL or var.dtype.is_integer:
        return random.integers(0, 2, shape).astype(str(var.dtype))
    return random.standard_normal(shape).astype(str(var.dtype))


def _difference(label: str, value: torch.Tensor, other: torch.Tensor) -> Difference:
    if value.shape != other.shape or value.dtype is not other.dtype:
        return Difference(label, False, float("nan"), float("nan"))
    if not value.numel():
        return Difference(label, True, 0.0, 0.0)
    wide, theirs = value.double(), other.double()
    apart = torch.where((wide == theirs) | (wide.isnan() & theirs.isnan()), 0.0, (wide - theirs).abs())
    return Difference(label, True, float(apart.max()), float(theirs.abs().nan_to_num().max()))
