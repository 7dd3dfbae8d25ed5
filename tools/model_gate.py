"""Compare an imported model with PyTorch: forward, gradients and buffers, the saved file in another process, and the export."""

import math
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy
import torch
from model_catalogue import Subject, renamed_first
from model_onnx import OnnxOutcome, compare_under_onnxruntime
from torch import nn
from torch.utils import _pytree as pytree

import oarlock as ol
from oarlock.interop.torch.imported import ImportedModule
from oarlock.ir.traversal import walk
from oarlock.layer.inputs import data

__all__ = [
    "BATCHES",
    "FORWARD",
    "LOSS",
    "Outcome",
    "cast_inputs",
    "draw_weights",
    "feed_of",
    "forward_distance",
    "judge",
    "losses_beside",
    "suppress_output",
    "tensors_of",
]

FORWARD = {torch.float32: 1e-5, torch.float64: 1e-9}
_FORWARD_WITH_CASTS = 1e-5  # in float64, if the model computes a part in float32
_GRADIENT = 1e-7
_GRADIENT_WITH_CASTS = 1e-5
_SMALLEST = 1e-6  # of the largest gradient; smaller ones are compared with that scale
_BUFFER = 1e-7
LOSS = 1e-4  # in float32
_WEIGHTED_SUM = 1e-7  # in float64
_ALIVE = 0.9  # of the gradients, by their count or by that of their numbers
BATCHES = (2, 3)

_RELOADED = """
import sys
sys.path.insert(0, sys.argv[1])
for name in ("torchvision", "timm", "transformers"):
    sys.modules[name] = None
import numpy
from oarlock import inference
folder = sys.argv[2]
given = numpy.load(folder + "/inputs.npz")
made = inference.infer(inference.load_model(folder + "/model.safetensors"), {name: given[name] for name in given.files})
made = made if isinstance(made, dict) else {"output": made}
numpy.savez(folder + "/outputs.npz", **made)
"""


@dataclass
class Outcome:
    """The outcome of a model: "passed", "refused" or "failed", the reason, and how many nodes became one operator or several."""

    name: str
    status: str = "passed"
    faults: list[str] = field(default_factory=list)
    nodes: int = 0
    native: int = 0
    composed: int = 0
    dynamic: bool = True
    training: bool = True
    seconds: float = 0.0
    worst: dict[str, float] = field(default_factory=dict)
    composed_of: dict[str, int] = field(default_factory=dict)
    onnx: OnnxOutcome | None = None
    """The outcome of its export in float32, judged separately."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def judge(subject: Subject, *, quick: bool = False) -> Outcome:
    """Test a model with two sizes and two batches, in float32 and float64; `quick` tests each dtype at one size."""
    outcome, start = Outcome(subject.name), time.time()
    plans = [(subject.sizes[0], torch.float32), (subject.sizes[1], torch.float64)]
    if not quick:
        plans += [(subject.sizes[1], torch.float32), (subject.sizes[0], torch.float64)]
    for number, (size, dtype) in enumerate(plans):
        try:
            _judge_at(subject, size, dtype, outcome, save=number == 0)
        except ol.errors.OarlockError as error:
            refused = type(error).__name__ == "UnsupportedError"
            outcome.status = "refused" if refused else "failed"
            outcome.faults.append(f"{size} {_short(dtype)}: {error}")
            break
        if outcome.faults:
            outcome.status = "failed"
            break
    outcome.seconds = round(time.time() - start, 1)
    return outcome


def _judge_at(subject: Subject, size: Any, dtype: torch.dtype, outcome: Outcome, *, save: bool) -> None:
    module = subject.module(size).to(dtype)
    if dtype is torch.float64 and hasattr(module, "set_experts_implementation"):
        module.set_experts_implementation("batched_mm")  # PyTorch has no product of groups in float64
    batches = [cast_inputs(renamed_first(module, subject.inputs(size, batch)), dtype) for batch in BATCHES]
    state = {name: value.detach().clone() for name, value in module.state_dict().items()}
    fault = _Faults(outcome, f"{size} {_short(dtype)}")
    imported = _import(module, batches, outcome)
    report = imported[0].report
    outcome.native, outcome.composed, outcome.nodes = report.native, report.composed, report.native + report.composed
    outcome.composed_of = {name: count for (name, operators), count in report.counts.items() if len(operators) > 1}
    for model, given in zip(imported, batches, strict=True):
        _compare_forward(module, model, given, dtype, fault)
    if save:
        _compare_reloaded(imported[0], batches[0], fault)
    if dtype is torch.float32 and (outcome.onnx is None or outcome.onnx.status == "agrees"):
        alike = batches if imported[0] is imported[1] else batches[:1]
        outcome.onnx = compare_under_onnxruntime(imported[0], [feed_of(given) for given in alike])
    trained: dict[int, _Training] = {}
    for model, given, batch in zip(imported, batches, BATCHES, strict=True):
        if id(model) not in trained:
            trained[id(model)] = _Training(model)
        module.load_state_dict(state)
        trained[id(model)].compare(module, given, fault.at(f"batch {batch}"), dtype)


def _import(module: nn.Module, batches: list[dict[str, torch.Tensor]], outcome: Outcome) -> list[ImportedModule]:
    """Import the module for each batch: once for both, unless the module fixes the batch size, which is recorded.

    A module that cannot be exported in training mode is recorded too, and imported in evaluation mode.
    """
    try:
        return [ol.from_torch(module, batches[0], dynamic="n", training=outcome.training)] * 2
    except ol.errors.OarlockError as error:
        if "fixes a size" in str(error):
            outcome.dynamic = False
            return [ol.from_torch(module, batch, training=outcome.training) for batch in batches]
        if "Python control flow" in str(error) and outcome.training:
            outcome.training = False
            return _import(module, batches, outcome)
        raise


class _Faults:
    """A list of faults with their positions."""

    def __init__(self, outcome: Outcome, where: str):
        self.outcome, self.where = outcome, where

    def at(self, more: str) -> "_Faults":
        return _Faults(self.outcome, f"{self.where} {more}")

    def add(self, what: str) -> None:
        self.outcome.faults.append(f"{self.where}: {what}")

    def measure(self, kind: str, error: float, allowed: float, what: str) -> None:
        """Record a deviation as a share of the tolerance."""
        share = error / allowed if math.isfinite(error) else math.inf
        self.outcome.worst[kind] = max(self.outcome.worst.get(kind, 0.0), share)
        if not share <= 1.0:
            self.add(f"{kind}: {what} is off by {error:.2e}, {share:.1e} of what is allowed")


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def cast_inputs(inputs: dict[str, torch.Tensor], dtype: torch.dtype) -> dict[str, torch.Tensor]:
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in inputs.items()}


def tensors_of(output: object) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_flatten(output)[0] if isinstance(leaf, torch.Tensor)]


def _has_casts(model: ImportedModule) -> bool:
    """Return whether a float64 model computes a part in lower precision."""
    return any(
        op.type == "cast"
        and op.inputs["x"][0].dtype is ol.DType.FLOAT64
        and op.attributes["dtype"] in (ol.DType.FLOAT32, ol.DType.BFLOAT16)
        for op in walk(model.program.main)
    ) or any(op.type == "cast" and op.inputs["x"][0].dtype is ol.DType.FLOAT32 for op in walk(model.program.main))


def _compare_forward(module: nn.Module, model: ImportedModule, given: dict[str, torch.Tensor], dtype: torch.dtype, fault: _Faults) -> None:
    module.eval()
    with torch.no_grad():
        wanted = tensors_of(module(**given))
    made = model.executor.run(model.program, feed_of(given), list(model.outputs.values()), scope=model.scope, training=False)
    allowed = _FORWARD_WITH_CASTS if dtype is torch.float64 and _has_casts(model) else FORWARD[dtype]
    if len(made) < len(wanted):
        fault.add(f"{len(made)} outputs, where PyTorch gives {len(wanted)}")
    for label, one, other in zip(model.outputs, made, wanted, strict=False):
        other = other.numpy()
        if one.shape != other.shape or one.dtype != other.dtype:
            fault.add(f"forward: {label} is {one.dtype}{list(one.shape)}, not {other.dtype}{list(other.shape)}")
        elif one.size:
            off = forward_distance(torch.as_tensor(one), torch.as_tensor(other))
            fault.measure("forward" if dtype is torch.float32 else "forward64", off, allowed, label)


def forward_distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return the largest ``|one - other| / max(1, |other|)``. Equal values, also infinities and NaN, have distance 0."""
    one, other = one.double(), other.double()
    same = (one == other) | (one.isnan() & other.isnan())
    return float(torch.where(same, 0.0, (one - other).abs() / other.abs().clamp(min=1.0)).max())


def feed_of(given: dict[str, torch.Tensor]) -> dict[str, numpy.ndarray]:
    return {name: value.numpy() for name, value in given.items()}


def _compare_reloaded(model: ImportedModule, given: dict[str, torch.Tensor], fault: _Faults) -> None:
    """Compare the bits of the saved file in a process without torchvision, timm and transformers."""
    with tempfile.TemporaryDirectory() as folder:
        here = ol.infer(model, feed_of(given))
        here = here if isinstance(here, dict) else {"output": here}
        ol.save_model(model, f"{folder}/model.safetensors")
        numpy.savez(f"{folder}/inputs.npz", **feed_of(given))
        package = str(Path(ol.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": package}
        command = [sys.executable, "-c", _RELOADED, package, folder]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            fault.add(f"reloaded: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}")
            return
        there = numpy.load(f"{folder}/outputs.npz")
        for name, value in here.items():
            if name not in there or there[name].tobytes() != value.tobytes():
                fault.add(f"reloaded: {name} has other bits")


class _Training:
    """A program with the gradients of a model for all parameters and floating inputs, for fed gradients of its outputs."""

    def __init__(self, model: ImportedModule):
        self.model = model
        self.parameters = {var.name: var for var in model.program.main.vars.values() if var.parameter and var.trainable}
        self.floats = {name: var for name, var in model.inputs.items() if var.dtype.is_floating}
        with model.program:
            self.outputs = {label: var for label, var in model.outputs.items() if var.dtype.is_floating}
            self.weights = [data(f"weight.{label}", var.shape, var.dtype, batch=None) for label, var in self.outputs.items()]
            wanted = [*self.parameters.values(), *self.floats.values()]
            self.found = ol.gradients(list(self.outputs.values()), wanted, self.weights)

    def compare(self, module: nn.Module, given: dict[str, torch.Tensor], fault: _Faults, dtype: torch.dtype) -> None:
        module.train(fault.outcome.training)
        inputs, outputs = _run_with_gradients(module, given)
        weights = draw_weights(outputs)
        own = dict(module.named_parameters())
        names = [name for name in self.parameters if name in own]
        for name in self.parameters.keys() - own.keys():
            fault.add(f'gradient: PyTorch has no parameter "{name}"')
        floats = [name for name in self.floats if inputs[name].requires_grad]
        wanted = [own[name] for name in names] + [inputs[name] for name in floats]
        linked = [(value, weight) for value, weight in zip(outputs, weights, strict=True) if value.requires_grad]
        theirs = torch.autograd.grad([v for v, _ in linked], wanted, [w for _, w in linked], allow_unused=True)
        feed = {**feed_of(given), **{var.name: weight.numpy() for var, weight in zip(self.weights, weights, strict=True)}}
        scope = ol.init(self.model.program, ol.Scope(), limits=ol.Limits(parameter_bytes=2**34))  # the largest in float64
        present = [var for var in self.found if var is not None]
        made = self.model.executor.run(self.model.program, feed, [*self.outputs.values(), *present], scope=scope, training=True)
        self._compare_losses(made[: len(outputs)], outputs, weights, fault)
        values = iter(made[len(self.outputs) :])
        ours = [None if var is None else next(values) for var in self.found]
        if dtype is torch.float64:
            found = dict(zip([*self.parameters, *self.floats], ours, strict=True))
            self._compare_gradients([*names, *floats], theirs, [found[name] for name in [*names, *floats]], fault)
        self._compare_buffers(module, scope, fault, dtype)

    def _compare_losses(self, made: list[Any], outputs: list[torch.Tensor], weights: list[torch.Tensor], fault: _Faults) -> None:
        """Compare the mean squared distance of the outputs from random targets; in float64 also a sum with random signs.

        Such a sum cancels, so in float32 it depends on rounding: PyTorch's own for resnet101, contiguous and channels last, differ by 7e-4.
        """
        ours = [torch.as_tensor(value).double() for value in made]
        theirs = [value.detach().double() for value in outputs]
        losses = losses_beside(ours, theirs, weights)
        fault.measure("loss", abs(losses[0] - losses[1]), LOSS * max(losses[1], 1e-300), "the loss")
        if losses[1] == 0.0:
            fault.add("vacuous: the loss is 0")
        if outputs and outputs[0].dtype is torch.float64:
            allowed = _GRADIENT_WITH_CASTS if _has_casts(self.model) else _WEIGHTED_SUM
            off = sum(float(((one - other) * weight).sum()) for one, other, weight in zip(ours, theirs, weights, strict=True))
            scale = math.sqrt(sum(float((other * weight).square().sum()) for other, weight in zip(theirs, weights, strict=True)))
            fault.measure("weighted sum", abs(off), allowed * max(scale, 1e-300), "the weighted sum of the outputs")

    def _compare_gradients(self, names: list[str], theirs: Any, ours: list[Any], fault: _Faults) -> None:
        largest = max((float(g.abs().max()) for g in theirs if g is not None and g.numel()), default=0.0)
        share = _GRADIENT_WITH_CASTS if _has_casts(self.model) else _GRADIENT
        alive: list[int] = []
        reached: list[int] = []
        for name, wanted, one in zip(names, theirs, ours, strict=True):
            there = numpy.zeros(()) if wanted is None else wanted.numpy()
            here = numpy.zeros(()) if one is None else one
            if wanted is None and numpy.any(here):
                fault.add(f'gradient: "{name}" is moved, where PyTorch leaves it')
                continue
            size = float(numpy.abs(there).max()) if there.size else 0.0
            alive += [there.size] * bool(size > 1e-12 * largest)
            reached += [there.size] * (wanted is not None)
            off = float(numpy.abs(here - there).max()) if there.size else 0.0
            fault.measure("gradient", off, share * max(size, _SMALLEST * largest, 1e-300), f'"{name}"')
        shares = len(alive) / max(len(reached), 1), sum(alive) / max(sum(reached), 1)
        if max(shares) < _ALIVE:  # a key's bias, which has none by meaning, is one gradient of few numbers
            fault.add(f"vacuous: {len(alive)} of {len(reached)} gradients are not zero")

    def _compare_buffers(self, module: nn.Module, scope: ol.Scope, fault: _Faults, dtype: torch.dtype) -> None:
        """Compare buffers: counters exactly, statistics in float64, because in float32 PyTorch's own vary for few values."""
        state: dict[str, torch.Tensor] = module.state_dict()
        for name, value in module.named_buffers():
            if name not in state or name not in scope or (dtype is torch.float32 and value.is_floating_point()):
                continue
            held = torch.as_tensor(scope[name])
            off = float((held.double() - value.double()).abs().max()) if value.numel() else 0.0
            size = max(1.0, float(value.double().abs().max())) if value.numel() else 1.0
            fault.measure("buffer", off, _BUFFER * size, f'"{name}"')


def losses_beside(ours: list[torch.Tensor], theirs: list[torch.Tensor], weights: list[torch.Tensor]) -> tuple[float, float]:
    """Return our and PyTorch's mean squared distance from targets of the outputs' size, the criterion for a step in float32."""
    targets = [value.double().square().mean().sqrt() * weight.double() for value, weight in zip(theirs, weights, strict=True)]
    distances = [
        sum(float((value.double() - target).square().mean()) for value, target in zip(values, targets, strict=True) if value.numel())
        for values in (ours, theirs)
    ]
    return distances[0], distances[1]


def draw_weights(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return a random number for each element of the outputs."""
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(value.shape, generator=generator, dtype=torch.float64).to(value.dtype) for value in outputs]


def _run_with_gradients(module: nn.Module, given: dict[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], list[torch.Tensor]]:
    """Return the inputs, with gradients enabled for floats, and the floating outputs.

    A module that computes gradients with respect to its own inputs gets inputs without gradients.
    """
    for wanted in (True, False):
        inputs = {name: value.clone().requires_grad_(wanted and value.is_floating_point()) for name, value in given.items()}
        try:
            return inputs, [value for value in tensors_of(module(**inputs)) if value.is_floating_point()]
        except RuntimeError as error:
            if not wanted or "requires_grad" not in str(error):
                raise
    raise AssertionError("the second time is the last")


def suppress_output(action: Callable[[], Outcome], name: str) -> Outcome:
    """Return the result of `action`, or a failure for any exception: a crash is not a refusal."""
    try:
        return action()
    except Exception as error:
        last = (str(error).strip().splitlines() or [""])[0]
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(name, status="failed", faults=[f"{type(error).__name__}: {last[:400]}, at {place.filename}:{place.lineno}"])
