"""`oarlock profile`: what the steps of a script or of a model take their time for."""

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.column_option import Columns
from oarlock.cli.imported_operators import Imports
from oarlock.cli.output_file import is_child, write
from oarlock.cli.script_run import run_script
from oarlock.cli.trace_option import WARM_UP
from oarlock.cli.train_call import require_folder_of
from oarlock.cli.untrusted_run import Untrusted
from oarlock.datasets.by_name import open_source
from oarlock.errors import ArgumentError, MissingFileError
from oarlock.io.model import load_model
from oarlock.profiling import Profile
from oarlock.profiling import profile as record
from oarlock.profiling.model_run import profile_model
from oarlock.runtime.process import configure_process
from oarlock.training.invocation import Invocation

__all__ = ["profile"]


def profile(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="SCRIPT.py | MODEL.safetensors", help="A script that runs steps, or a saved model.")],
    data: Annotated[
        str | None, typer.Option(help="What a step is fed: digits:train, table.csv. Of a saved model, numbers made up, unless given.")
    ] = None,
    columns: Columns = [],  # noqa: B006  typer copies it
    steps: Annotated[int, typer.Option(min=1, help="How many steps are recorded.")] = 10,
    warm_up: Annotated[int, typer.Option(min=0, help="How many steps before them are not.")] = WARM_UP,
    top: Annotated[int, typer.Option(min=1, help="How many operators and lines are shown.")] = 12,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Rows in a step; 32 or, of a training program, its own.")] = None,
    size: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="How large a size is, such as t=100, in what is made up. Can be repeated."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the trace too: JSON that ui.perfetto.dev opens.")] = None,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Show what steps take their time for: operators, lines of the script, reading data, checkpoints, and how much of it is arithmetic.

    [bold]oarlock profile examples/digits.py[/] runs a script until enough steps were recorded, and ends it there; what follows its name is
    the script's own. What it saves until then, it saves.

    [bold]oarlock profile run.safetensors --data digits:train[/] runs steps of a saved training program, or of a model, and saves nothing.
    """
    if not path.exists():
        raise MissingFileError(f'there is no file "{path}"')
    configure_process(keep_memory=not is_child())
    require_folder_of(output)
    if path.suffix == ".py":
        if untrusted:
            raise ArgumentError("--untrusted is for saved programs; a script is Python, which can do anything")
        found = _of_script(path, context.args, data, columns, batch_size, steps, warm_up)
    else:
        if context.args:
            raise ArgumentError(f"unknown argument {context.args[0]!r}", hint="oarlock profile --help")
        model = load_model(path, untrusted=untrusted)
        source = None if data is None else open_source(data, seed=model.program.seed, columns=columns)
        sizes = dict(_size(text) for text in size or ())
        found = profile_model(model, source, steps=steps, warm_up=warm_up, batch_size=batch_size, sizes=sizes)
    if not found.steps:
        raise ArgumentError(f"no step was recorded: there were no more than {warm_up}, the warm-up", hint="--warm-up 0")
    typer.echo(found.report(top))
    if output is not None:
        write(output, found.trace())
        typer.echo(f"\ntrace of {found.steps} steps in {output}, for ui.perfetto.dev or chrome://tracing")


def _of_script(
    path: Path, arguments: list[str], data: str | None, columns: list[str], batch_size: int | None, steps: int, warm_up: int
) -> Profile:
    """The profile of a script, or of the model that it makes, whose run is kept nowhere."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        asked = {"data": data, "columns": columns, "batch_size": batch_size}
        if data is not None:
            asked |= {"run": Path(folder) / "run", "epochs": 2**31}
        with Invocation(sys.argv, {}, asked, "quiet") as invocation, record(steps=steps, warm_up=warm_up, ends=True) as found:
            run_script(path, arguments, invocation)
    return found


def _size(text: str) -> tuple[str, int]:
    name, equals, number = text.partition("=")
    if not equals or not number.isdecimal():
        raise typer.BadParameter(f"{text!r:.60} is no size; NAME=NUMBER is", param_hint="--size")
    return name, int(number)
