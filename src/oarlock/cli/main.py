"""The command `oarlock` and its verbs."""

import importlib
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Annotated

import typer
from rich.console import Console

from oarlock.cli.verbs import Verb, group_of
from oarlock.errors import OarlockError
from oarlock.out_of_memory import out_of_memory

__all__ = ["IMPORTS", "VERBS", "app", "import_verb", "run"]

VERBS = {
    "train": Verb("train", opens_program=True, places=("save", "path"), takes_words=True),
    "infer": Verb("infer", opens_program=True, places=("output",)),
    "evaluate": Verb("evaluate", opens_program=True),
    "profile": Verb("profile", opens_program=True, places=("output",), takes_words=True),
    "serve": Verb("serve"),
    "resume": Verb("resume"),
    "runs": Verb("runs"),
    "plot": Verb("runs", "plot"),
    "report": Verb("report", opens_program=True, places=("out",)),
    "show": Verb("inspection", "show", opens_program=True, places=("out",)),
    "summary": Verb("inspection", "summary", opens_program=True),
    "check": Verb("inspection", "check", opens_program=True),
    "diff": Verb("inspection", "diff", opens_program=True),
    "plan": Verb("inspection", "plan", opens_program=True),
    "opt": Verb("inspection", "opt", opens_program=True),
    "prune": Verb("conversion", "prune", opens_program=True, places=("output",)),
    "recompute": Verb("conversion", "recompute", opens_program=True, places=("output",)),
    "quantize": Verb("conversion", "quantize", opens_program=True, places=("output",)),
    "export": Verb("conversion", "export", opens_program=True, places=("onnx",)),
    "ops": Verb("reference", "ops"),
    "explain": Verb("reference", "explain"),
    "datasets": Verb("reference", "datasets"),
    "hash": Verb("inspection", "hash_", opens_program=True),
}
IMPORTS = {
    "onnx": Verb("conversion", "import_onnx", opens_program=True, places=("output",)),
    "torch": Verb("conversion", "import_torch", opens_program=True, places=("output",)),
}

app = typer.Typer(
    name="oarlock",
    cls=group_of(VERBS),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Train, inspect and run models that are programs.\n\n"
    "A model file holds the program and its values; running it does not need the Python code that wrote it.",
)
app.add_typer(typer.Typer(cls=group_of(IMPORTS), no_args_is_help=True, help="Import a model from another framework."), name="import")


def import_verb(words: Sequence[str]) -> None:
    """Import the verb that `words` begin with, if there is one."""
    verbs, name = (IMPORTS, words[1:2]) if words[:1] == ["import"] else (VERBS, words[:1])
    if name and name[0] in verbs:
        verbs[name[0]].load(name[0])


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"oarlock {importlib.import_module('oarlock').__version__}")
        raise typer.Exit


@app.callback()
def main(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False) -> None:
    """Train, inspect and run models that are programs."""


def run() -> None:
    """Run the command line.

    An `OarlockError` is printed without a traceback and sets the exit status 1. An error in a user's script is printed with the lines of
    the script, without those of this command.
    """
    try:
        app()
    except OarlockError as error:
        _show(error)
        sys.exit(1)
    except MemoryError:
        _show(out_of_memory(" ".join(sys.argv[1:2])))
        sys.exit(1)
    except Exception as error:
        begun = _script_in(error.__traceback__)
        if begun is None:
            raise
        traceback.print_exception(type(error), error, begun)
        sys.exit(1)


def _show(error: OarlockError) -> None:
    """Print an error and its notes."""
    console = Console(stderr=True, soft_wrap=True)
    console.print(f"[bold red]{type(error).__name__}[/]:", end=" ")
    console.print(str(error), markup=False, highlight=False)
    for note in getattr(error, "__notes__", ()):  # the run folder, and how to resume
        console.print(note, markup=False, highlight=False)


def _script_in(trace: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback that begins at the first line of a user's script, or None if no script was running."""
    in_command = False
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__")
        if in_command and name == "__main__":
            return trace
        in_command = in_command or name == __name__
        trace = trace.tb_next
    return None
