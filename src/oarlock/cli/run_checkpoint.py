"""Choosing a checkpoint of a run, and the model that predicts with it."""

import io
from pathlib import Path
from typing import NamedTuple

import oarlock.op  # noqa: F401  registers the operators
from oarlock.errors import ArgumentError, MissingFileError
from oarlock.io.model import Model, read_model, save_model
from oarlock.ir.serialization import read_program
from oarlock.registry.catalogue import standard
from oarlock.report.prediction import find_compared
from oarlock.training.checkpoint import find_checkpoints, find_latest, read_checkpoint
from oarlock.training.run_record import RunRecord
from oarlock.training.shares import load_checkpoint

__all__ = ["Chosen", "choose_checkpoint", "prediction_model"]


class Chosen(NamedTuple):
    """A checkpoint of a run: its training program with values, and a line that describes it."""

    model: Model
    description: str


def choose_checkpoint(run: Path, which: str, *, untrusted: bool = False) -> Chosen:
    """Load a checkpoint of a run: "best", "newest" or a step number.

    "best" falls back to the newest if no epoch was measured yet or the best checkpoint was not kept. Raises ArgumentError for an invalid
    word, MissingFileError if there is no such checkpoint, FormatError if it is damaged.
    """
    if untrusted:
        raise ArgumentError("--untrusted needs a model file, not a run folder")
    if which not in ("best", "newest") and not (which.isascii() and which.isdecimal()):
        raise ArgumentError(f"--checkpoint takes best, newest or a step number, not {which!r:.60}")
    record = RunRecord.read(run)  # raises an error that describes the folder if it is not a run
    best, kept = record.best_checkpoint, {checkpoint.step: checkpoint.path for checkpoint in record.checkpoints}
    if which == "newest" or best is None:
        found = find_latest(run / "checkpoints")  # skips damaged ones
        if found is None:
            raise MissingFileError(f'"{run}" has no intact checkpoint', hint=f"oarlock resume {run} continues the run")
        return Chosen(load_checkpoint(find_checkpoints(run / "checkpoints")[found[0]]), _describe(record, found[0]))
    step = best.step if which == "best" else int(which)
    if step not in kept:
        raise MissingFileError(
            f'"{run}" has no checkpoint of step {step}',
            given=[f"steps with a checkpoint: {', '.join(map(str, kept))}"],
            hint="--checkpoint best, or newest",
        )
    read_checkpoint(kept[step])  # raises an error if it is damaged
    return Chosen(load_checkpoint(kept[step]), _describe(record, step))


def _describe(record: RunRecord, step: int) -> str:
    """Return a line that describes a checkpoint of a run."""
    best = None if record.judged_by is None else record.best(record.judged_by)
    newest = max((kept.step for kept in record.checkpoints), default=step)
    word = "best" if best is not None and best.step == step else "newest" if step >= newest else ""
    return f"step {step} of {record.path}" + (f", the {word} checkpoint" if word else "")


def prediction_model(model: Model, path: Path) -> Model:
    """Return the inference model of a training program from a checkpoint at `path`, as `--save` would write it.

    Raises ArgumentError if the checkpoint has no prediction program, and the errors of `ol.load_model`.
    """
    if model.prediction is None:
        compared = find_compared(model.program)
        name = "NAME" if compared is None else compared.predicted.name
        raise ArgumentError(
            f'"{path}" has no prediction program: `oarlock train` stores one if the script defines `predict`',
            hint=f"oarlock prune {path} {name} --output predict.safetensors saves the part that computes a variable",
        )
    written = io.BytesIO()
    save_model(read_program(model.prediction), model, written, columns=model.columns)
    return read_model(written.getvalue(), standard.forward_only())
