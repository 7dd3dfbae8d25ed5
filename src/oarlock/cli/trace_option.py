"""The options that write a trace of some steps."""

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

WARM_UP = 5  # steps: the first makes the plan

ProfilePath = Annotated[
    Path | None,
    typer.Option("--profile", metavar="FILE", help="Write a trace of some steps, JSON that ui.perfetto.dev opens, and what they wait for."),
]
ProfileSteps = Annotated[int, typer.Option(min=1, help=f"How many steps the trace has, after the first {WARM_UP}.")]


@contextmanager
def traced(path: Path | None, steps: int) -> Iterator[None]:
    """Write a trace of what runs in this context to `path`, where there is one, and print its summary, however it ends."""
    if path is None:
        yield
        return
    if is_child():
        raise ArgumentError("--profile writes a file, which --untrusted does not allow", hint="leave out --untrusted")
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
            typer.echo(f"no trace: there were no more than {WARM_UP} steps")
