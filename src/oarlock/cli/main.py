"""`oarlock`: its verbs, each in a file of its own."""

import importlib
import sys
import traceback
from types import TracebackType
from typing import Annotated

import typer
from rich.console import Console

from oarlock.cli import (
    check,
    datasets,
    diff,
    evaluate,
    explain,
    export,
    hash,
    import_onnx,
    import_torch,
    infer,
    ops,
    opt,
    plan,
    plot,
    profile,
    prune,
    quantize,
    recompute,
    report,
    resume,
    runs,
    serve,
    show,
    summary,
    train,
)
from oarlock.cli.untrusted_run import opens_program
from oarlock.errors import OarlockError

__all__ = ["app", "run"]

app = typer.Typer(
    name="oarlock",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Train, inspect and run models that are programs.\n\n"
    "A model file holds the program and its values; running it needs none of the Python that wrote it.",
)
app.command(cls=opens_program("save", "path"), context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(train.train)
app.command(cls=opens_program("output"))(infer.infer)
app.command(cls=opens_program())(evaluate.evaluate)
app.command(cls=opens_program("output"), context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(profile.profile)
app.command()(serve.serve)
app.command()(resume.resume)
app.command()(runs.runs)
app.command()(plot.plot)
app.command(cls=opens_program("out"))(report.report)
app.command(cls=opens_program("out"))(show.show)
for command in (summary.summary, check.check, diff.diff, plan.plan, opt.opt):
    app.command(cls=opens_program())(command)
app.command(cls=opens_program("output"))(prune.prune)
app.command(cls=opens_program("output"))(recompute.recompute)
app.command(cls=opens_program("output"))(quantize.quantize)
app.command(cls=opens_program("onnx"))(export.export)
for command in (ops.ops, explain.explain, datasets.datasets):
    app.command()(command)
app.command("hash", cls=opens_program())(hash.hash_)
imports = typer.Typer(no_args_is_help=True, help="Bring in a model of another framework.")
imports.command("onnx", cls=opens_program("output"))(import_onnx.import_onnx)
imports.command("torch", cls=opens_program("output"))(import_torch.import_torch)
app.add_typer(imports, name="import")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"oarlock {importlib.import_module('oarlock').__version__}")
        raise typer.Exit


@app.callback()
def main(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False) -> None:
    """Train, inspect and run models that are programs."""


def run() -> None:
    """Run the command line; one of our errors ends it with status 1 and the message, without a traceback, and an error of a script with
    the lines of the script, without those of the command around it.
    """
    try:
        app()
    except OarlockError as error:
        console = Console(stderr=True, soft_wrap=True)
        console.print(f"[bold red]{type(error).__name__}[/]:", end=" ")
        console.print(str(error), markup=False, highlight=False)
        for note in getattr(error, "__notes__", ()):  # of a run that is kept
            console.print(note, markup=False, highlight=False)
        sys.exit(1)
    except Exception as error:
        begun = _script_in(error.__traceback__)
        if begun is None:
            raise
        traceback.print_exception(type(error), error, begun)
        sys.exit(1)


def _script_in(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback from the first line of a script that a verb runs; None where it ran none."""
    in_command = False
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__")
        if in_command and name == "__main__":
            return trace
        in_command = in_command or name == __name__
        trace = trace.tb_next
    return None
