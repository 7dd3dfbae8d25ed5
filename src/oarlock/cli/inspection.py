"""The verbs that show or verify a program: `check`, `diff`, `hash`, `opt`, `plan`, `show` and `summary`."""

from collections.abc import Callable
from inspect import getmodule
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.syntax import Syntax

import oarlock.op.update  # noqa: F401  registers the operators of training programs, for their text
from oarlock.cli.options import Imports, parse_sizes
from oarlock.cli.output_file import write
from oarlock.cli.untrusted_run import Untrusted
from oarlock.drawing import draw
from oarlock.errors import ArgumentError, FormatError
from oarlock.io.container import read_container
from oarlock.io.files import read_file
from oarlock.io.model import read_model
from oarlock.ir.content_hash import content_hash
from oarlock.ir.diff import diff_programs
from oarlock.ir.printer import format_program
from oarlock.ir.program import Program
from oarlock.ir.serialization import read_program
from oarlock.layer.program_summary import summary as summarize
from oarlock.passes.parallel.rewrite import data_parallel, tensor_parallel
from oarlock.passes.parallel.sharded_optimizer import shard_optimizer
from oarlock.passes.pipeline import PASSES, apply, require_passes
from oarlock.proto.limits import Limits
from oarlock.registry.catalogue import standard
from oarlock.registry.text import parse_program
from oarlock.registry.type_check import typecheck
from oarlock.runtime.executor import Executor, require_backend
from oarlock.runtime.plan import Plan
from oarlock.training.run_folder import load_run

__all__ = ["check", "diff", "hash_", "opt", "plan", "show", "summary"]


def _read_program_file(path: Path, *, untrusted: bool = False) -> Program:
    """Read the program of a model file, a serialized program, a program text, or the newest checkpoint of a run, and verify its structure.

    An `untrusted` path must not be a link or a folder. Raises MissingFileError, ReadError, FormatError, LimitError or VerifyError.
    """
    if path.is_dir() and not untrusted:
        return load_run(path).program
    if path.suffix == ".safetensors":
        return read_program(read_container(path, untrusted=untrusted)[0])
    data = read_file(path, largest=Limits().program_bytes, limit="program_bytes", untrusted=untrusted)
    if not data.startswith(b"program "):
        return read_program(data)
    try:
        return parse_program(data.decode())
    except UnicodeDecodeError as error:
        raise FormatError(f'"{path.name}" is not a valid program text', given=[str(error)]) from error


def check(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Model file or serialized program.")],
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Verify a program: names, blocks, definitions and the types of every op. Nothing is run.

    Exits with status 1 and an error message at the first violation.
    """
    if path.suffix == ".safetensors":
        program = read_model(path, standard, untrusted=untrusted).program
    else:
        program = _read_program_file(path, untrusted=untrusted)
        typecheck(program, standard)
    kind = "a training program" if program.is_training else "a program"
    ops = sum(len(block.ops) for block in program.blocks)
    values = sum(_count(var.shape) for var in program.parameters())
    counts = f"{_plural(len(program.blocks), 'block')}, {_plural(ops, 'op')} and {_plural(values, 'trainable value')}"
    typer.echo(f"{path.name}: {kind} of {counts}; no errors")


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _count(shape: tuple[int | str, ...] | None) -> int:
    """Return the number of elements of a shape; symbolic sizes count as 0."""
    total = 1
    for size in shape or ():
        total *= size if isinstance(size, int) else 0
    return total


def diff(
    before: Annotated[Path, typer.Argument(help="Model file, serialized program or program text.")],
    after: Annotated[Path, typer.Argument(help="File to compare with.")],
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with status 2 if the programs differ.")] = False,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print the semantic differences between two programs, block by block: + added, - removed, > moved, ~ changed.

    Names of local values and source locations are ignored.
    """
    differences = diff_programs(*(_read_program_file(path, untrusted=untrusted) for path in (before, after)))
    for difference in differences:
        typer.echo(str(difference))
    if not differences:
        typer.echo("the programs are the same")
    elif exit_code:
        raise typer.Exit(2)


def hash_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Model file, serialized program or program text.")],
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print the SHA-256 of a program's structure, ignoring values, file format and source locations."""
    typer.echo(content_hash(_read_program_file(path, untrusted=untrusted)))


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
    program = _read_program_file(path, untrusted=untrusted)
    before = program.clone()
    for name in names:
        count = _FOR_WORKERS[name](program, workers) if name in _FOR_WORKERS else apply(name, program, standard)
        typer.echo(f"{name}: {count}", err=True)
    if diff:
        for difference in diff_programs(before, program):
            typer.echo(str(difference))
    else:
        typer.echo(format_program(program, source=source), nl=False)


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
    program = _read_program_file(path, untrusted=untrusted)
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


def show(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Model file, serialized program or run folder.")],
    out: Annotated[
        Path | None,
        typer.Argument(metavar="[OUT]", help="Path of the drawing, .html or .svg. Without it, --html and --svg print the drawing."),
    ] = None,
    svg: Annotated[bool, typer.Option("--svg", help="Draw the program as an SVG image.")] = False,
    html: Annotated[bool, typer.Option("--html", help="Draw the program as a self-contained HTML page with collapsible blocks.")] = False,
    depth: Annotated[int | None, typer.Option(min=0, help="Nesting depth of layers and blocks that a drawing opens at first.")] = None,
    source: Annotated[bool, typer.Option(help="Show source lines above the ops that they created; in a drawing, on hover.")] = True,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print a program: its nested blocks, with types, parameters and source lines.

    Or draw it: `oarlock show model.safetensors model.html`, or `model.svg`.
    """
    if svg and html:
        raise ArgumentError("show: --svg and --html exclude each other: give one of them")
    if not (svg or html) and out is not None:
        svg, html = out.suffix == ".svg", out.suffix in (".html", ".htm")
    if not (svg or html) and (out is not None or depth is not None):
        given = "--depth" if out is None else f'"{out}"'
        raise ArgumentError(f"show: {given} needs a drawing", hint="--svg draws a picture, --html a page")
    program = _read_program_file(path, untrusted=untrusted)
    if svg or html:
        drawing = draw(program, depth=depth, source=source)
        text = drawing.svg if svg else drawing.page
        if out is None:
            typer.echo(text, nl=False)
        else:
            write(out, text.encode())
            typer.echo(f"saved {out}")
        return
    text = format_program(program, source=source)
    console = Console()
    if console.is_terminal:
        console.print(Syntax(text, "python", background_color="default", word_wrap=True))
    else:
        typer.echo(text, nl=False)


def summary(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Model file, serialized program, program text or run folder.")],
    depth: Annotated[
        int | None,
        typer.Option(min=1, help="Group layers by this many parts of their names: encoder.0.attention has three. Default: all parts."),
    ] = None,
    size: Annotated[
        list[str] | None, typer.Option(metavar="NAME=NUMBER", help="Value for a symbolic size, for example n=32. Repeatable.")
    ] = None,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print the layers of a program: output types, parameters and multiply-adds."""
    typer.echo(str(summarize(_read_program_file(path, untrusted=untrusted), depth=depth, sizes=parse_sizes(size) or None)))
