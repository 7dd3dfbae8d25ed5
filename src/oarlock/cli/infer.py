"""`oarlock infer`: run a model on data."""

import io
from pathlib import Path
from typing import Annotated, Any

import numpy
import typer
from rich.console import Console
from rich.markup import escape

from oarlock import inference
from oarlock.cli.options import Columns, Imports, checkpoint_option, require_no_checkpoint
from oarlock.cli.output_file import is_child, write
from oarlock.cli.prediction_text import draw_predictions, format_rows
from oarlock.cli.untrusted_run import Untrusted
from oarlock.data.csv_file import format_csv
from oarlock.data.program_inputs import ProgramInputs
from oarlock.data.table import Table
from oarlock.datasets.by_name import open_source
from oarlock.errors import MissingFileError
from oarlock.runtime.process import configure_process

__all__ = ["infer"]


def infer(
    path: Annotated[Path, typer.Argument(metavar="RUN | MODEL.safetensors", help="Run folder or model file.")],
    data: Annotated[
        str,
        typer.Option(help="Data to predict: digits:test, another name of `oarlock datasets`, an array file, a table, an image folder."),
    ],
    columns: Columns = [],  # noqa: B006  typer copies it
    seed: Annotated[int | None, typer.Option(help="Seed that splits a bundled data set. Default: the seed of the model.")] = None,
    checkpoint: Annotated[str | None, checkpoint_option("best")] = None,
    output: Annotated[Path | None, typer.Option(help="Save the predictions to a .csv or .npy file.")] = None,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Run a model on data, without the Python that trained it.

    A model saved by `oarlock train` stores the columns of its table and finds them by name, in any order. If the data has a
    [bold]label[/], the accuracy is printed. Images are drawn with their predicted labels; otherwise, up to 20 rows are printed.

    [bold]oarlock infer runs/one[/] uses the best checkpoint of a run; [bold]oarlock prune runs/one -o model.safetensors[/] saves it as a
    model file.
    """
    require_no_checkpoint(path, checkpoint)
    if output is not None and not output.absolute().parent.is_dir():
        raise MissingFileError(f'there is no folder "{output.parent}"')
    configure_process(keep_memory=not is_child())
    if path.is_dir():
        from oarlock.cli.run_checkpoint import choose_checkpoint, prediction_model

        trained, description = choose_checkpoint(path, checkpoint or "best", untrusted=untrusted)
        model = prediction_model(trained, path)
    else:
        model, description = inference.load_model(path, untrusted=untrusted), None
    table = open_source(data, seed=model.program.seed if seed is None else seed, columns=columns, known=model.columns).rows
    assert isinstance(table, Table)
    arrays: dict[str, Any] = table.whole()
    feed = ProgramInputs.of(model.program).feed(arrays, table.numbers, rounds=table.rounds)
    predicted = inference.infer(model, feed)
    console = Console(highlight=False, soft_wrap=True)
    if description is not None:
        console.print(description, markup=False)
    if output is not None:
        write(output, _written(predicted, model, as_csv=output.suffix.lower() == ".csv"))
        console.print(f"saved {output}", markup=False)
    if isinstance(predicted, dict):
        for label, value in predicted.items():
            console.print(f"{label}  {value.dtype}{list(value.shape)}", markup=False)
        return
    labels = arrays.get("label")
    is_drawn = labels is not None and predicted.ndim == 2 and "image" in arrays
    rows = None if output is not None or is_drawn else format_rows(next(iter(model.program.targets)), predicted, labels)
    if rows is not None:
        console.print(rows, markup=False)
    if labels is None or predicted.ndim != 2:
        if rows is None:
            console.print(f"predicted {predicted.dtype}{list(predicted.shape)}", markup=False)
        return
    read = predicted.argmax(1)
    part = data.partition(":")[2] or "data"
    console.print(f"{part} accuracy {(read == labels).mean() * 100:.1f} %")
    if is_drawn:
        console.print()
        draw_predictions(console, arrays["image"], labels, read, predicted.max(1))
    name = escape(str(path))
    console.print(
        f"Next: [bold]oarlock show {name}[/] prints the program, [bold]oarlock check {name}[/] verifies it,"
        f" [bold]oarlock ops {model.program.main.ops[0].type}[/] explains an operator."
    )


def _written(predicted: numpy.ndarray | dict[str, numpy.ndarray], model: inference.Model, *, as_csv: bool) -> bytes:
    """Return the contents of the output file: all targets as CSV, or the first target as a NumPy file."""
    found = predicted if isinstance(predicted, dict) else {next(iter(model.program.targets)): predicted}
    if as_csv:
        return format_csv(found).encode()
    written = io.BytesIO()
    numpy.save(written, next(iter(found.values())), allow_pickle=False)
    return written.getvalue()
