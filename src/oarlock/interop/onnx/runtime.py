"""Run a model in ONNX Runtime, with Oarlock's feeds, checks and errors, and compare results."""

import io
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

import numpy
import torch

from oarlock.errors import ArgumentError, KernelError, ProgramError
from oarlock.interop.onnx.export import to_onnx
from oarlock.interop.onnx.export_rules.randomness import TRIP
from oarlock.interop.onnx.package import get_package
from oarlock.io.model import Model
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.size import evaluate, names_in
from oarlock.ir.var import Var
from oarlock.passes.pruning import prune
from oarlock.runtime.context import draws_done
from oarlock.runtime.feed import check_feed
from oarlock.runtime.place import CPUPlace
from oarlock.tensor.dtype import from_torch

__all__ = ["Difference", "OnnxRuntimeModel", "compare_with_onnxruntime", "runtime_of"]

_OPSET = 20
_LARGE = 2**30  # bytes of values


class OnnxRuntimeModel:
    """A snapshot of a model in a session of ONNX Runtime.

    `infer(feed)` has the arguments, results and FeedErrors of `ol.infer(model, feed)`. Invalid values that Oarlock's kernels detect, such
    as a label out of range, are left to ONNX Runtime: KernelError if it rejects them. `session` is the ONNX Runtime session. `threads` is
    the number of threads of one operator, by default the number of cores.

    Raises ArgumentError if `onnxruntime` is not installed or the model has run limits, which ONNX Runtime cannot enforce, and the errors of
    `ol.to_onnx`.
    """

    def __init__(self, model: Model, *, threads: int | None = None):
        runtime = get_package("onnxruntime")
        if model.limits is not None:
            raise ArgumentError(
                "the model is untrusted and has run limits, which ONNX Runtime cannot enforce",
                location=here(),
                hint="run it with Oarlock, or load it without untrusted=True if you trust it",
            )
        self.program = prune(model.program, model.program.targets)
        self.scope = model.scope
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        if threads is not None:
            options.intra_op_num_threads = threads
        with tempfile.TemporaryDirectory() as folder:  # for values that do not fit in one message
            large = sum(tensor.nbytes for _, tensor, _ in _values_of(model) if tensor is not None) > _LARGE
            held = f"{folder}/model.onnx" if large else io.BytesIO()
            self.exported = to_onnx(model, held, opset=_OPSET)
            if any(TRIP in path for path in self.exported.random.values()):
                raise ProgramError(
                    "the model draws random numbers in a loop whose number of iterations is unknown",
                    location=here(),
                    hint="run it with Oarlock, or use to_onnx and feed Exported.keys with the largest number of iterations",
                )
            try:
                self.session = runtime.InferenceSession(held if isinstance(held, str) else held.getvalue(), options)
            except Exception as error:  # classes of a compiled module, without a common base class
                raise KernelError(f"ONNX Runtime rejects this program: {error}", given=[]) from error

    def infer(self, feed: Mapping[str, object] | None = None) -> numpy.ndarray | dict[str, numpy.ndarray]:
        """Compute the targets: one array, or a dict of arrays by label if there are several. Raises FeedError and KernelError."""
        results = dict(zip(self.program.targets, self.run(feed or {}), strict=True))
        return next(iter(results.values())) if len(results) == 1 else results

    def run(self, feed: Mapping[str, object]) -> list[numpy.ndarray]:
        """Return the targets, in order."""
        tensors = check_feed(self.program, feed, set(self.program.main.inputs), CPUPlace(), self.scope)
        parts = {name: torch.view_as_real(item) if item.is_complex() else item for name, item in tensors.items()}
        given = {name: parts[name].numpy() for name in self.exported.inputs if name in parts}
        given |= self.exported.keys(draws_done(self.scope))
        try:
            found = self.session.run(None, given)
        except Exception as error:  # as above
            fed = [f'"{name}" is {from_torch(tensor.dtype)}{list(tensor.shape)}' for name, tensor in tensors.items()]
            raise KernelError(f"ONNX Runtime failed: {error}", given=fed) from error
        pairs = zip(self.program.targets.values(), found, strict=True)
        return [value.view(str(var.dtype))[..., 0] if var.dtype.is_complex else value for var, value in pairs]


_Values = list[tuple[Var, torch.Tensor | None, int]]


def _values_of(model: Model) -> _Values:
    """Return the values of the model's variables, with the version counters of their tensors."""
    found: _Values = []
    for var in model.program.persistables():
        variable = model.scope.find_var(var.name)
        held = variable.held if variable is not None and variable.is_set else None
        tensor = held if isinstance(held, torch.Tensor) else None
        found.append((var, tensor, -1 if tensor is None else tensor._version))
    return found


def runtime_of(model: Model) -> OnnxRuntimeModel:
    """Return the session of a model, created again if its program or its values have changed."""
    state = (model.program.serial, model.program.revision), _values_of(model)
    held = model.sessions.get("onnxruntime")
    if held is not None and held[0] == state[0] and _same(held[1], state[1]):
        return held[2]
    made = OnnxRuntimeModel(model)
    model.sessions["onnxruntime"] = (*state, made)
    return made


def _same(before: _Values, now: _Values) -> bool:
    """Return whether both hold the same, unmodified tensors. `before` holds references, so their addresses cannot be reused."""
    return len(before) == len(now) and all(
        old[0] is new[0] and old[1] is new[1] and old[1] is not None and old[2] == new[2] for old, new in zip(before, now, strict=True)
    )


# Comparison


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
