"""Where a training program predicts, and what it predicts for the rows that a run kept."""

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
_REDUCTIONS = ("valid_mean",)  # of losses, by labels that the losses read too
_COLUMNS = 100  # of a sample, where a file has more
_LIMITS = Limits(file_bytes=16 * 2**20, tensor_bytes=16 * 2**20)


@dataclass(frozen=True)
class Compared:
    """A loss compares these: what is `predicted` with what is `true`. `scores` says what predictions of classes are: "logits",
    "log_p" or "p", of which the last axis has the classes; it is empty where they are what they are to be.
    """

    predicted: Var
    true: Var
    scores: str


@dataclass(frozen=True)
class Sample:
    """The rows that a run kept, of a `part` of its data, by the names of the inputs; and what is predicted for them after `step`.

    `classes` is int64[n ...], `certainty` float[n ...] from 0 to 1, where classes are predicted; else `values` are.
    `fault` says why nothing is predicted.
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
    """The two sides that the loss of a training program compares; None where it does not tell.

    They are read off the operator with a label that is next to the loss, or else off the place where a value that takes parameters
    meets one of the same shape that takes none.
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
    """The rows that the folder of a run keeps, and what its best checkpoint, or the newest, predicts for them; None without rows."""
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
    except (RuntimeError, ValueError, TypeError, LookupError, MemoryError) as error:  # of a program that does not fit these rows
        return Sample(part, columns, fault=f"{type(error).__name__}: {error}")


def _predict(part: str, columns: dict[str, numpy.ndarray], checkpoint: CheckpointRecord, untrusted: bool) -> Sample:
    model = load_checkpoint(checkpoint.path, untrusted=untrusted)
    compared = find_compared(model.program)
    if compared is None:
        return Sample(part, columns, checkpoint.step, fault="its loss does not say what is predicted")
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
    """The likeliest classes, and how likely each is."""
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
    """The ops that a variable comes from, those next to it first."""
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
    """The names of what takes parameters, and of what takes inputs."""
    learned = {var.name for var in program.parameters()}
    fed = {var.name for var in program.main.inputs}
    for op in program.main.ops:
        if op.role == Role.FORWARD:
            reads = {var.name for var in op.reads} | {var.name for block in op.blocks for inner in block.ops for var in inner.reads}
            for names in (learned, fed):
                if reads & names:
                    names.update(var.name for var in op.writes)
    return learned, fed
