"""`oarlock evaluate`: measure a model on data without training it."""

from pathlib import Path
from typing import Annotated

import numpy
import typer

from oarlock.cli.options import Columns, Imports, checkpoint_option, require_no_checkpoint
from oarlock.cli.output_file import is_child
from oarlock.cli.run_checkpoint import choose_checkpoint
from oarlock.cli.untrusted_run import Untrusted
from oarlock.datasets.by_name import open_source
from oarlock.errors import ArgumentError
from oarlock.io.model import Model, load_model
from oarlock.runtime.process import configure_process
from oarlock.training.configuration import read_configuration
from oarlock.training.evaluation import evaluate as measure
from oarlock.training.invocation import Invocation, TrainOptions
from oarlock.training.progress import format_metrics

__all__ = ["evaluate"]

_ABOUT_DATA = ("train.validate", "train.columns", "train.seed")


def evaluate(
    path: Annotated[Path, typer.Argument(metavar="RUN | MODEL.safetensors", help="Run folder or model file.")],
    data: Annotated[
        str | None,
        typer.Option(help="Data to measure on: digits:test, table.csv, table.csv:test. Default: the validation data of the run."),
    ] = None,
    columns: Columns = [],  # noqa: B006  typer copies it
    batch_size: Annotated[int, typer.Option(help="Rows per batch.")] = 256,
    seed: Annotated[int | None, typer.Option(help="Seed that splits the data. Default: the seed of the program.")] = None,
    checkpoint: Annotated[str | None, checkpoint_option("newest")] = None,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Measure a model on data: loss and metrics over all rows, computed in inference mode. Nothing is trained or changed.

    `oarlock evaluate runs/one` measures the newest checkpoint of a run, `--checkpoint best` the best one. --data and --columns default to
    those of the run.
    """
    configure_process(keep_memory=not is_child())
    of_run = _options(path)
    require_no_checkpoint(path, checkpoint)
    chosen = choose_checkpoint(path, checkpoint or "newest", untrusted=untrusted) if path.is_dir() else None
    model = load_model(path, untrusted=untrusted) if chosen is None else chosen.model
    name = data if data is not None else of_run.validate
    if name is None:
        raise ArgumentError("no data to measure on", hint="--data table.csv:test")
    _require_measured(model, path)
    given = seed if seed is not None else of_run.seed
    source = open_source(name, seed=model.program.seed if given is None else given, columns=columns or of_run.columns, known=model.columns)
    found = measure(model, source, batch_size=batch_size)
    if chosen is not None and checkpoint is not None:
        typer.echo(chosen.description)
    typer.echo(f"{name}  " + format_metrics({label: value for label, value in found.items() if isinstance(value, float)}))
    for label, value in found.items():
        if isinstance(value, numpy.ndarray):
            typer.echo(f"{label}\n{value}")


def _options(path: Path) -> TrainOptions:
    """Return the data options of a run from its settings; defaults for a model file."""
    settings = path / "config.toml"
    given = read_configuration(settings) if settings.is_file() else {}
    try:
        return Invocation(given={name: given[name] for name in _ABOUT_DATA if name in given}).options()
    except ArgumentError:  # a script's own settings of the same names
        return TrainOptions()


def _require_measured(model: Model, path: Path) -> None:
    """Raise ArgumentError if a model has neither a loss nor a metric."""
    if not any(var.shape == () for var in model.program.targets.values()):
        raise ArgumentError(
            f'"{path.name}" has no loss or metric: it computes {", ".join(model.program.targets)}',
            hint="predict with oarlock infer; measure its run folder, or a file saved by ol.save_model([cost, accuracy], parameters, path)",
        )
