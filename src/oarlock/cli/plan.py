"""`oarlock plan`: print the execution plan of a program."""

from inspect import getmodule
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.syntax import Syntax

from oarlock.cli.imported_operators import Imports
from oarlock.cli.program_file import read_program_file
from oarlock.cli.untrusted_run import Untrusted
from oarlock.errors import ArgumentError
from oarlock.passes.pipeline import PASSES, require_passes
from oarlock.runtime.executor import Executor, require_backend
from oarlock.runtime.plan import Plan

__all__ = ["plan"]


def plan(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Model file, serialized program or program text.")],
    without: Annotated[list[str] | None, typer.Option(metavar="PASS", help="Skip a pass. Repeatable.")] = None,
    backend: Annotated[str | None, typer.Option(help="inductor: show the regions that torch.compile would compile.")] = None,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print the Python code that runs a program, with its targets and updates, after a summary of the passes applied."""
    try:
        left_out = require_passes(without or ())
    except ArgumentError as error:
        raise typer.BadParameter(f"{error.message}; {error.given[0]}", param_hint="--without") from error
    program = read_program_file(path, untrusted=untrusted)
    kept = [name for name in PASSES if name not in left_out]
    made = Executor(passes=kept, backend=require_backend(backend)).plan(program, list(program.targets))
    text = f"{_table(made)}{made.text}"
    console = Console()
    if console.is_terminal:
        console.print(Syntax(text, "python", background_color="default", word_wrap=True))
    else:
        typer.echo(text, nl=False)


def _table(plan: Plan) -> str:
    """Return comment lines for the passes (name, rewrites, purpose), the input size checks and the constants of a plan."""
    passes = [
        f"# {name:<22}{count:>4}   {(getmodule(PASSES[name]).__doc__ or '').splitlines()[0]}"  # type: ignore[union-attr]
        for name, count in plan.applied.items()
    ]
    held = [f"# {name:<25} {op.writes[0].type_text}" for name, op in plan.constants.items()]
    lines = ["# Passes and their number of rewrites:", *passes] if passes else ["# No passes."]
    checked = [f"# {check}" for check in plan.fed_checks]
    lines += ["# Sizes checked when inputs are fed:", *checked] if checked else []
    return "\n".join([*lines, *(["# Constants kept between runs:", *held] if held else [])]) + "\n\n"
