"""`oarlock opt`: apply passes to a program."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.imported_operators import Imports
from oarlock.cli.program_file import read_program_file
from oarlock.cli.untrusted_run import Untrusted
from oarlock.ir.diff import diff_programs
from oarlock.ir.printer import format_program
from oarlock.ir.program import Program
from oarlock.passes.parallel.rewrite import data_parallel, tensor_parallel
from oarlock.passes.parallel.sharded_optimizer import shard_optimizer
from oarlock.passes.pipeline import apply, require_passes
from oarlock.registry.catalogue import standard

__all__ = ["opt"]

_FOR_WORKERS: dict[str, Callable[[Program, int], int]] = {
    "data_parallel": lambda program, workers: data_parallel(program),
    "shard_optimizer": lambda program, workers: len(shard_optimizer(program, workers=workers)),
    "tensor_parallel": lambda program, workers: tensor_parallel(program, workers=workers),
}


def opt(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Model file, serialized program or program text.")],
    passes: Annotated[
        list[str],
        typer.Option("--pass", metavar="NAME", help="Pass to apply. Repeatable; passes are applied in the given order."),
    ],
    workers: Annotated[int, typer.Option(min=1, help="Number of workers, for passes that distribute a program.")] = 2,
    diff: Annotated[bool, typer.Option("--diff", help="Print the differences from the original instead of the program.")] = False,
    source: Annotated[bool, typer.Option(help="Show source lines above the ops that they created.")] = True,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print a program after optimization passes, or after passes that distribute it over several workers.

    [bold]oarlock opt run.safetensors --pass data_parallel --pass shard_optimizer --workers 4[/]

    The number of rewrites of each pass goes to standard error, so the program can be redirected to a file and read again.
    """
    names = require_passes(passes, _FOR_WORKERS)
    program = read_program_file(path, untrusted=untrusted)
    before = program.clone()
    for name in names:
        count = _FOR_WORKERS[name](program, workers) if name in _FOR_WORKERS else apply(name, program, standard)
        typer.echo(f"{name}: {count}", err=True)
    if diff:
        for difference in diff_programs(before, program):
            typer.echo(str(difference))
    else:
        typer.echo(format_program(program, source=source), nl=False)
