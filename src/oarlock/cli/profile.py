"""`oarlock profile` profiles the steps of a script or a model; `oarlock train --profile` writes a trace."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.options import Columns, Imports, parse_sizes
from oarlock.cli.output_file import is_child, write
from oarlock.cli.script_run import run_script
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

__all__ = ["WARM_UP", "ProfilePath", "ProfileSteps", "profile", "write_trace"]

WARM_UP = 5  # steps: the first compiles the plan

ProfilePath = Annotated[
    Path | None,
    typer.Option("--profile", metavar="FILE", help="Profile some steps: print a summary, and write a JSON trace for ui.perfetto.dev."),
]
ProfileSteps = Annotated[int, typer.Option(min=1, help=f"Number of steps to trace, after a warm-up of {WARM_UP}.")]


@contextmanager
def write_trace(path: Path | None, steps: int) -> Iterator[None]:
    """Write a trace of the steps run in this context to `path`, unless it is None, and print its summary, even after an error."""
    if path is None:
        yield
        return
    if is_child():
        raise ArgumentError("--profile cannot write its file with --untrusted", hint="leave out --untrusted")
    require_folder_of(path)
    found = None
    try:
        with record(steps=steps, warm_up=WARM_UP) as found:
            yield
    finally:
        if found is not None and found.steps:
            found.save(path)
            typer.echo(f"{found.summary()}\n\ntrace of {found.steps} steps in {path}, for ui.perfetto.dev or chrome://tracing")
        elif found is not None:
            typer.echo(f"no trace: all steps were part of the warm-up of {WARM_UP}")


def profile(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="SCRIPT.py | MODEL.safetensors", help="Script or saved model to profile.")],
    data: Annotated[
        str | None, typer.Option(help="Data for the steps: digits:train, table.csv. Default for a saved model: synthetic input.")
    ] = None,
    columns: Columns = [],  # noqa: B006  typer copies it
    steps: Annotated[int, typer.Option(min=1, help="Number of steps to record.")] = 10,
    warm_up: Annotated[int, typer.Option(min=0, help="Number of warm-up steps to skip first.")] = WARM_UP,
    top: Annotated[int, typer.Option(min=1, help="Number of operators and lines to show.")] = 12,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Rows per step. Default: that of the training program, or 32.")] = None,
    size: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="Value for a symbolic size in the synthetic input, for example t=100. Repeatable."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write a JSON trace for ui.perfetto.dev.")] = None,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Show how steps spend their time: operators, source lines, data loading, checkpoints, and the share of arithmetic.

    [bold]oarlock profile examples/digits.py[/] runs a script until enough steps are recorded, then stops it. Further arguments go to the
    script. Files that it writes before that remain.

    [bold]oarlock profile run.safetensors --data digits:train[/] runs steps of a saved training program or model, and saves nothing.
    """
    if not path.exists():
        raise MissingFileError(f'there is no file "{path}"')
    configure_process(keep_memory=not is_child())
    require_folder_of(output)
    if path.suffix == ".py":
        if untrusted:
            raise ArgumentError("--untrusted needs a saved program: a script is arbitrary Python code")
        found = _of_script(path, context.args, data, columns, batch_size, steps, warm_up)
    else:
        if context.args:
            raise ArgumentError(f"unknown argument {context.args[0]!r}", hint="oarlock profile --help")
        model = load_model(path, untrusted=untrusted)
        source = None if data is None else open_source(data, seed=model.program.seed, columns=columns)
        found = profile_model(model, source, steps=steps, warm_up=warm_up, batch_size=batch_size, sizes=parse_sizes(size))
    if not found.steps:
        raise ArgumentError(f"no steps were recorded: all steps were part of the warm-up of {warm_up}", hint="--warm-up 0")
    typer.echo(found.report(top))
    if output is not None:
        write(output, found.trace())
        typer.echo(f"\ntrace of {found.steps} steps in {output}, for ui.perfetto.dev or chrome://tracing")


def _of_script(
    path: Path, arguments: list[str], data: str | None, columns: list[str], batch_size: int | None, steps: int, warm_up: int
) -> Profile:
    """Profile a script, or the training of the model that it defines, without keeping the run."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        given_options = {"data": data, "columns": columns, "batch_size": batch_size}
        if data is not None:
            given_options |= {"run": Path(folder) / "run", "epochs": 2**31}
        with Invocation(sys.argv, {}, given_options, "quiet") as invocation, record(steps=steps, warm_up=warm_up, ends=True) as found:
            run_script(path, arguments, invocation)
    return found
