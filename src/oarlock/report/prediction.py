"""Finding the prediction in a training program, and computing it for the sample rows of a run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy

from oarlock.errors import OarlockError
from oarlock.io.tensor_file import TensorFile
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.proto.limits import Limits
from oarlock.runtime.executor import Executor
from oarlock.training.run_record import CheckpointRecord, RunRecord
from oarlock.training.shares import load_checkpoint

__all__ = ["Compared", "Sample", "find_compared", "read_sample"]

_TRUE = ("label", "target")  # slots of losses
_REDUCTIONS = ("valid_mean",)  # reductions of losses, which also read the labels
_COLUMNS = 100  # columns of a sample to read at most
_LIMITS = Limits(file_bytes=16 * 2**20, tensor_bytes=16 * 2**20)


@dataclass(frozen=True)
class Compared:
    """The two inputs of a loss: the `predicted` and the `true` variable.

    `scores` is "logits", "log_p" or "p" for class scores, with the classes on the last axis, or "" for a regression.
    """

    predicted: Var
    true: Var
    scores: str


@dataclass(frozen=True)
class Sample:
    """The sample rows of a run by input name, from a `part` of its data, with the predictions after `step`.

    For classes, `classes` is int64[n ...] and `certainty` float[n ...] from 0 to 1; for other predictions, `values` is set. `fault` is the
    reason if there are no predictions.
    """

    part: str
    columns: dict[str, numpy.ndarray]
    step: int | None = None
    true: numpy.ndarray | None = None
    classes: numpy.ndarray | None = None
    certainty: numpy.ndarray | None = None
    values: numpy.ndarray | None = None
    true_name: str | None = None
    fault: str | None = None


def find_compared(program: Program) -> Compared | None:
    """Find the two variables that the loss of a training program compares, or return None.

    They are the inputs of the operator nearest to the loss that takes labels; otherwise of the nearest operator that combines a value
    depending on parameters with a value of the same shape that does not.
    """
    targets = program.targets
    if not targets:
        return None
    loss = targets["loss"] if "loss" in targets else next(iter(targets.values()))
    learned, fed = _reached(program)
    met = None
    for op in _behind(program, loss):
        true = next((op.inputs[slot][0] for slot in _TRUE if op.inputs.get(slot) and op.type not in _REDUCTIONS), None)
        if true is not None and true.name not in learned:
            slot, (predicted, *_) = next(iter(op.inputs.items()))
            if predicted.name in learned and predicted is not true:
                scores = slot if slot in ("logits", "log_p") else "p" if predicted.shape != true.shape else ""
                return Compared(predicted, true, scores if predicted.shape != true.shape else "")
        if met is None and len(op.reads) == 2 and op.reads[0].shape == op.reads[1].shape:
            guessed, given = sorted(op.reads, key=lambda var: var.name not in learned)
            if guessed.name in learned and guessed.name in fed and given.name in fed and given.name not in learned:
                met = Compared(guessed, given, "")
    return met


def read_sample(run: RunRecord, *, untrusted: bool = False) -> Sample | None:
    """Read the sample rows in a run folder, and predict them with its best or newest checkpoint. Returns None without rows."""
    path = next((path for part in ("validation", "training") if (path := run.path / f"sample.{part}.safetensors").exists()), None)
    if path is None:
        return None
    part = path.name.split(".")[1]
    columns: dict[str, numpy.ndarray] = {}
    try:
        columns = _read_columns(path, untrusted)
        chosen = run.best_checkpoint
        if chosen is None:
            return Sample(part, columns, fault="the run has no checkpoint yet")
        return _predict(part, columns, chosen, untrusted)
    except OarlockError as error:
        return Sample(part, columns, fault=error.message)
    except (RuntimeError, ValueError, TypeError, LookupError, MemoryError) as error:  # the program may not fit these rows
        return Sample(part, columns, fault=f"{type(error).__name__}: {error}")


def _predict(part: str, columns: dict[str, numpy.ndarray], checkpoint: CheckpointRecord, untrusted: bool) -> Sample:
    model = load_checkpoint(checkpoint.path, untrusted=untrusted)
    compared = find_compared(model.program)
    if compared is None:
        return Sample(part, columns, checkpoint.step, fault="the prediction cannot be inferred from the loss")
    inputs = {var.name for var in model.program.main.inputs}
    feed = {name: column for name, column in columns.items() if name in inputs}
    fetched = [compared.predicted, compared.true]
    predicted, true = Executor().run(model.program, feed, fetched, scope=model.scope, training=False, measure=False)
    predicted, true = numpy.asarray(predicted), numpy.asarray(true)
    name = compared.true.name if compared.true.name in columns else None
    if not compared.scores and _are_one_hot(true) and predicted.shape == true.shape:
        return Sample(part, columns, checkpoint.step, true.argmax(-1), *_classes(predicted, "p"), true_name=name)
    if compared.scores:
        return Sample(part, columns, checkpoint.step, true, *_classes(predicted, compared.scores), true_name=name)
    return Sample(part, columns, checkpoint.step, true, values=predicted, true_name=name)


def _classes(scores: numpy.ndarray, kind: str) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return the most likely classes, and their probabilities."""
    with numpy.errstate(all="ignore"):
        if kind in ("logits", "log_p"):
            shares = numpy.exp(scores.astype("float64") - scores.max(-1, keepdims=True))
            shares = shares / shares.sum(-1, keepdims=True)
        else:
            shares = scores
    return shares.argmax(-1), shares.max(-1)


def _are_one_hot(values: numpy.ndarray) -> bool:
    return values.ndim > 1 and values.shape[-1] > 1 and bool((values.sum(-1) == 1).all() and ((values == 0) | (values == 1)).all())


def _read_columns(path: Path, untrusted: bool) -> dict[str, numpy.ndarray]:
    with TensorFile.open(path, limits=_LIMITS, untrusted=untrusted) as file:
        return {name: file.read(name).numpy() for name in list(file.entries)[:_COLUMNS]}


def _behind(program: Program, var: Var) -> Iterator[Op]:
    """Yield the ops that a variable depends on, nearest first."""
    makers = {made.name: op for op in program.main.ops if op.role in (Role.FORWARD, Role.MEASURE) for made in op.writes}
    waiting, seen = [var.name], {var.name}
    while waiting:
        op = makers.get(waiting.pop(0))
        if op is not None:
            yield op
            for read in op.reads:
                if read.name not in seen:
                    seen.add(read.name)
                    waiting.append(read.name)


def _reached(program: Program) -> tuple[set[str], set[str]]:
    """Return the names of the variables that depend on parameters, and of those that depend on inputs."""
    learned = {var.name for var in program.parameters()}
    fed = {var.name for var in program.main.inputs}
    for op in program.main.ops:
        if op.role == Role.FORWARD:
            reads = {var.name for var in op.reads} | {var.name for block in op.blocks for inner in block.ops for var in inner.reads}
            for names in (learned, fed):
                if reads & names:
                    names.update(var.name for var in op.writes)
    return learned, fed
