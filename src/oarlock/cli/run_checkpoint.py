"""A checkpoint of a run, chosen by a word or a step, and the model that predicts by it."""

import io
from pathlib import Path
from typing import NamedTuple

import oarlock.op  # noqa: F401  the operators that programs name
from oarlock.errors import ArgumentError, MissingFileError
from oarlock.io.model import Model, read_model, save_model
from oarlock.ir.serialization import read_program
from oarlock.registry.catalogue import standard
from oarlock.report.prediction import find_compared
from oarlock.training.checkpoint import find_checkpoints, find_latest, read_checkpoint
from oarlock.training.run_record import RunRecord
from oarlock.training.shares import load_checkpoint

__all__ = ["Chosen", "choose_checkpoint", "predicting"]


class Chosen(NamedTuple):
    """A checkpoint of a run: the training program and values in it, and a line that says which it is."""

    model: Model
    said: str


def choose_checkpoint(run: Path, which: str, *, untrusted: bool = False) -> Chosen:
    """The checkpoint of a run that is called best, newest, or by its step. The best is the newest where no epoch was measured yet, or
    its checkpoint is not kept.

    Raises ArgumentError for another word, MissingFileError where there is none, FormatError for one that is spoilt.
    """
    if untrusted:
        raise ArgumentError("--untrusted is for a model file, not for a folder")
    if which not in ("best", "newest") and not (which.isascii() and which.isdecimal()):
        raise ArgumentError(f"--checkpoint is best, newest or a step, not {which!r:.60}")
    record = RunRecord.read(run)  # which says what is there instead of a run
    best, kept = record.best_checkpoint, {checkpoint.step: checkpoint.path for checkpoint in record.checkpoints}
    if which == "newest" or best is None:
        found = find_latest(run / "checkpoints")  # which passes over those that are spoilt
        if found is None:
            raise MissingFileError(f'"{run}" keeps no checkpoint that is whole', hint=f"oarlock resume {run} goes on with the run")
        return Chosen(load_checkpoint(find_checkpoints(run / "checkpoints")[found[0]]), _said(record, found[0]))
    step = best.step if which == "best" else int(which)
    if step not in kept:
        raise MissingFileError(
            f'"{run}" keeps no checkpoint of step {step}',
            given=[f"it has those of {', '.join(map(str, kept))}"],
            hint="--checkpoint best, or newest",
        )
    read_checkpoint(kept[step])  # which refuses one that is spoilt
    return Chosen(load_checkpoint(kept[step]), _said(record, step))


def _said(record: RunRecord, step: int) -> str:
    """A line that says which checkpoint is taken."""
    best = None if record.judged_by is None else record.best(record.judged_by)
    newest = max((kept.step for kept in record.checkpoints), default=step)
    word = "best" if best is not None and best.step == step else "newest" if step >= newest else ""
    return f"step {step} of {record.path}" + (f", the {word} checkpoint" if word else "")


def predicting(model: Model, path: Path) -> Model:
    """The model that predicts, of a training program in a checkpoint at `path`: what is read of the file that --save writes.

    Raises ArgumentError where it has none, and what `ol.load_model` does.
    """
    if model.prediction is None:
        compared = find_compared(model.program)
        name = "NAME" if compared is None else compared.predicted.name
        raise ArgumentError(
            f'"{path}" keeps no program that predicts: `oarlock train` keeps the `predict` of a script that makes a model',
            hint=f"oarlock prune {path} {name} --output predict.safetensors keeps what a variable of its program needs",
        )
    written = io.BytesIO()
    save_model(read_program(model.prediction), model, written, columns=model.columns)
    return read_model(written.getvalue(), standard.forward_only())
