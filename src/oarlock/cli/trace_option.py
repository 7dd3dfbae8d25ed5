"""The options `--profile` and `--profile-steps` of `oarlock train`, which write a trace of some steps."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.output_file import is_child
from oarlock.cli.train_call import require_folder_of
from oarlock.errors import ArgumentError
from oarlock.profiling import profile

__all__ = ["WARM_UP", "ProfilePath", "ProfileSteps", "traced"]

WARM_UP = 5  # steps: the first compiles the plan

ProfilePath = Annotated[
    Path | None,
    typer.Option("--profile", metavar="FILE", help="Profile some steps: print a summary, and write a JSON trace for ui.perfetto.dev."),
]
ProfileSteps = Annotated[int, typer.Option(min=1, help=f"Number of steps to trace, after a warm-up of {WARM_UP}.")]


@contextmanager
def traced(path: Path | None, steps: int) -> Iterator[None]:
    """Write a trace of the steps run in this context to `path`, unless it is None, and print its summary, even after an error."""
    if path is None:
        yield
        return
    if is_child():
        raise ArgumentError("--profile cannot write its file with --untrusted", hint="leave out --untrusted")
    require_folder_of(path)
    found = None
    try:
        with profile(steps=steps, warm_up=WARM_UP) as found:
            yield
    finally:
        if found is not None and found.steps:
            found.save(path)
            typer.echo(f"{found.summary()}\n\ntrace of {found.steps} steps in {path}, for ui.perfetto.dev or chrome://tracing")
        elif found is not None:
            typer.echo(f"no trace: all steps were part of the warm-up of {WARM_UP}")
