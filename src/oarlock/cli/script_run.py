"""Running a script, and training the model that it defines if data is given."""

import runpy
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import typer

from oarlock.cli.train_call import exit_interrupted, refuse_arguments, require_folder_of, require_program_file, resume_command, train_model
from oarlock.errors import ArgumentError
from oarlock.io.model import program_of, save_model
from oarlock.ir.var import Var
from oarlock.optimizer.by_name import optimizer_from
from oarlock.optimizer.optimizer import Optimizer
from oarlock.optimizer.sgd import SGD
from oarlock.registry.creator import describe_value
from oarlock.training.interruption import Interrupted, Stopping
from oarlock.training.invocation import PASSED, Invocation, TrainOptions
from oarlock.training.new_run import new_run
from oarlock.training.records import TrainingResult
from oarlock.training.sent_model import Sending

__all__ = ["run_script"]


@dataclass(frozen=True)
class _ScriptModel:
    """The model of a script: `cost` is minimized, `show` is reported, `predict` is saved."""

    cost: Var
    show: dict[str, Var] = field(default_factory=dict)
    predict: "Var | Mapping[str, Var] | None" = None
    optimizer: Optimizer | None = None


def _model_in(names: Mapping[str, object], file: str) -> _ScriptModel:
    """Return the model among the global names of the script `file`. Raises ArgumentError for a missing or invalid name."""
    cost, predict = names.get("cost"), names.get("predict")
    if not isinstance(cost, Var):
        variables = [name for name, value in names.items() if isinstance(value, Var)]
        raise ArgumentError(
            f'"{file}" defines no variable "cost" to minimize' if cost is None else f'"cost" of "{file}" is {describe_value(cost)}',
            given=[f"its variables: {', '.join(variables)}"] if variables else [],
            hint="cost = ol.layer.cross_entropy(logits, label)",
        )
    show = names.get("show") or {}
    if not isinstance(show, Mapping) or not all(isinstance(var, Var) for var in show.values()):
        raise ArgumentError(f'"show" of "{file}" must be a dict of labels and variables, such as {{"accuracy": accuracy}}')
    if predict is not None and not isinstance(predict, Var | Mapping):
        raise ArgumentError(f'"predict" of "{file}" must be a variable or a dict of variables, not {describe_value(predict)}')
    optimizer = names.get("optimizer")
    return _ScriptModel(cost, dict(show), predict, optimizer if isinstance(optimizer, Optimizer) else None)


def run_script(path: Path, arguments: list[str], invocation: Invocation, sending: Sending | None = None) -> None:
    """Run a script as `python SCRIPT.py ARGUMENTS` would, then train the model that it defines, if data is given.

    Options that a script may also define (`PASSED`) are passed on to it. The first of several workers is `sending` the model to the
    others; if the script reads `data` from its settings and trains by itself, the other workers run the script too.
    """
    require_program_file(path)
    before, folder = sys.argv, str(path.resolve().parent)
    passed = [text for name in PASSED if name in invocation.given_options for text in (f"--{name}", str(invocation.given_options[name]))]
    sys.argv = [str(path), *passed, *arguments]
    sys.path.insert(0, folder)
    invocation.is_script = True
    if sending is not None:
        invocation.on_declared = lambda: None if invocation.has("data") else sending.send_script()
    try:
        names = runpy.run_path(str(path), run_name="__main__")
    except Interrupted as interrupt:
        if invocation.folder is not None:
            exit_interrupted(interrupt.result, resume_command(invocation.folder))
        saved = Path(f"{path.stem}.interrupted.safetensors")
        save_model(interrupt.result, saved)
        how = "--data DATA, where DATA is a .npz file of the training data, or digits:train"
        exit_interrupted(interrupt.result, f"oarlock train {shlex.quote(str(saved))} {how}", saved)
    finally:
        invocation.is_script = False
        sys.argv = before
        sys.path.remove(folder)
    if invocation.trains:
        return
    options = invocation.options()
    cost = names.get("cost")
    if options.data is not None:
        refuse_arguments(arguments)
        _train_model(path, _model_in(names, path.name), options, invocation, sending or Sending())
    elif options.given.keys() - set(PASSED) or (isinstance(cost, Var) and not cost.block.program.is_training):
        raise ArgumentError(
            f'"{path.name}" does not train by itself, and no --data is given to train its model on',
            hint='--data table.csv:train --columns label=kind --columns "x=*"',
        )


def _train_model(path: Path, model: _ScriptModel, options: TrainOptions, invocation: Invocation, sending: Sending) -> None:
    """Train the model that a script defines, in a run folder."""
    program, predict = model.cost.block.program, model.predict
    if options.save is not None and predict is None:
        raise ArgumentError(
            f'--save needs a prediction, but "{path.name}" defines no variable "predict"', hint="predict = ol.layer.softmax(logits)"
        )
    require_folder_of(options.save)
    if options.seed is not None:
        program.seed = options.seed
    run = options.run or _free_folder(Path("runs"), path.stem)
    options = replace(options, run=run)
    made = new_run(
        model.cost, optimizer=_optimizer(options, model.optimizer), show=model.show,
        batch_size=options.batch_size, epochs=options.epochs, backend=options.backend
    )  # fmt: skip
    made.prediction = None if predict is None else program_of(predict).to_bytes()  # for checkpoints: the cost may not compute it

    def save(result: TrainingResult) -> None:
        if options.save is not None and predict is not None:
            save_model(predict, result.parameters, options.save, columns=made.columns)
            if invocation.progress != "quiet":
                typer.echo(f"saved {options.save} for prediction")

    invocation.on_result = save
    try:
        with Stopping(patience=0.0):
            sending.send(made, options.given)
            train_model(made, options)
    except Interrupted as interrupt:
        exit_interrupted(interrupt.result, resume_command(run))


def _optimizer(options: TrainOptions, own: Optimizer | None) -> Optimizer | None:
    if options.optimizer is not None:
        return optimizer_from(options.optimizer, options.lr)
    if options.lr is not None and own is not None:
        raise ArgumentError("the script sets the learning rate of its optimizer", hint="--optimizer adam --lr 1e-3 replaces the optimizer")
    return own if options.lr is None else SGD(options.lr)


def _free_folder(above: Path, name: str) -> Path:
    """Return the first of NAME-1, NAME-2, ... that does not exist."""
    number = 1
    while (above / f"{name}-{number}").exists():
        number += 1
    return above / f"{name}-{number}"
