"""`--untrusted`: a verb on a stranger's file, run in a child process with limits of the system's own. Linux alone."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from oarlock import errors
from oarlock.cli.answer import Answer, read_answer
from oarlock.cli.confinement import ProcessLimits
from oarlock.cli.imported_operators import import_operators
from oarlock.cli.output_file import is_child
from oarlock.cli.process_group import ProcessGroup
from oarlock.cli.verbs import VerbCommand
from oarlock.errors import ArgumentError, KernelError, LimitError, OarlockError, visible
from oarlock.io.atomic_write import write_file
from oarlock.training.interruption import Stopping

__all__ = ["Ended", "Interrupted", "ProcessLimits", "Untrusted", "opens_program", "run_untrusted"]

Untrusted = Annotated[bool, typer.Option("--untrusted", help="The file is a stranger's: open no link, and run in a process with limits.")]

_PACKAGES = str(Path(__file__).resolve().parents[2])
_KEPT = (
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "MKL_NUM_THREADS",
    "OARLOCK_DATA",
    "OMP_NUM_THREADS",
    "PYTHONHOME",
    "XDG_CACHE_HOME",
)  # no tokens, no addresses
_PATIENCE = 2.0  # seconds that a child has to hand over what it has, once it was interrupted
_REPORT = "nothing was written; SECURITY.md says where to report a file that does this"


@dataclass(frozen=True)
class Ended:
    """How a verb ended.

    Its exit `status`, from 0 to 255; the `text` it printed; `output`, the bytes of the file that it writes, empty where it writes none;
    and whether the child had this process's `network`, because the system does not give it one of its own.
    """

    status: int
    text: str
    output: bytes
    network: bool


class Interrupted(KeyboardInterrupt):
    """A verb was interrupted from the keyboard; `ended` is what its child handed back all the same, None where it did not in time."""

    def __init__(self, ended: Ended | None):
        super().__init__("interrupted, and the child process handed back " + ("nothing" if ended is None else "what is here as `ended`"))
        self.ended = ended


def run_untrusted(*arguments: str | os.PathLike[str], limits: ProcessLimits | None = None) -> Ended:
    """Run a verb of the command line on a stranger's file, in a child process.

        ended = ol.run_untrusted("infer", "model.safetensors", "--data", "rows.npz", "--output", "predicted.npy")
        predicted = numpy.load(io.BytesIO(ended.output), allow_pickle=False)

    The child opens the file where it is no link, writes no file, has no network where the system allows that, no privileges,
    and bounds on memory, CPU time and open files (`limits`); no process that it starts outlives it. What it runs
    is counted (`RunLimits`). It knows the operators of Oarlock alone, and no GPU. Where the verb would write a file, its bytes are
    returned; writing them is the caller's.

    Ctrl-C interrupts the child too, which has two seconds to hand back what it trained so far; a second Ctrl-C ends it at once.

    Raises what the verb raises; LimitError for a child that took too much, KernelError for one that broke, ArgumentError
    elsewhere than on Linux; KeyboardInterrupt where it was interrupted, with an `ended` that is what was handed back, or None.
    """
    if sys.platform != "linux":
        raise ArgumentError("untrusted files are run on Linux alone: other systems do not have these limits")
    limits = limits or ProcessLimits()
    given = [os.fspath(argument) for argument in arguments]
    words = 2 if given[:1] == ["import"] else 1  # `import torch`: what a verb has verbs of its own for
    verb, rest = " ".join(given[:words]), given[words:]
    if "--untrusted" not in rest:
        rest.insert(0, "--untrusted")
    command = [sys.executable, "-P", "-B", "-m", "oarlock.cli.child", json.dumps(asdict(limits)), *given[:words], *rest]
    stopping, answer = Stopping(patience=_PATIENCE + 1.0), None  # who reads is not interrupted: what was read would be lost
    group = partial(ProcessGroup, command, _environment(), seconds=limits.seconds, stops=lambda: stopping.asked, patience=_PATIENCE)
    try:
        with stopping, group() as running:
            answer = _take_answer(verb, running, limits)  # whatever it goes on to do is of no interest
    except (KeyboardInterrupt, OarlockError, TimeoutError) as raised:
        if stopping.asked:
            raise Interrupted(None if answer is None or answer.error is not None else _ended(answer)) from None
        if isinstance(raised, TimeoutError):
            raise _took(f"{verb}: more than {limits.seconds:g} seconds in the child process", "seconds") from None
        raise
    if answer.error is None:
        return _ended(answer)
    raise _error(verb, answer.error)


def _ended(answer: Answer) -> Ended:
    return Ended(answer.status, visible(answer.text, lines=True), answer.output, answer.network)


def _take_answer(verb: str, group: ProcessGroup, limits: ProcessLimits) -> Answer:
    """The child's answer. The child may be a stranger's by now: nothing in it is more than text and bytes, of a size that was allowed."""

    def allow(name: str, length: int) -> None:
        most = getattr(limits, f"{name}_bytes")
        if length > most:
            what = "prints" if name == "text" else "hands back"
            raise _took(f"{verb}: the child process {what} more than {most:,} bytes", f"{name}_bytes")

    try:
        return read_answer(group.read_line, group.read, allow=allow)
    except EOFError:
        status = group.wait()
        raise (_died(verb, status, limits) if status else _unreadable(verb)) from None
    except LimitError:  # a ValueError too
        raise
    except (ValueError, RecursionError):
        raise _unreadable(verb) from None


def _environment() -> dict[str, str]:
    """The environment of the child: where packages are, and how wide the terminal is."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    packages = os.pathsep.join(filter(None, [_PACKAGES, os.environ.get("PYTHONPATH")]))
    # An arena of memory for each thread would take address space that nothing uses.
    return kept | {
        "PYTHONPATH": packages,
        "COLUMNS": str(shutil.get_terminal_size().columns),
        "CUDA_VISIBLE_DEVICES": "",
        "MALLOC_ARENA_MAX": "2",
    }


def _took(message: str, name: str) -> LimitError:
    return LimitError(message, hint=f"limits=ProcessLimits({name}=...)")


def _died(verb: str, status: int, limits: ProcessLimits) -> OarlockError:
    """The error for a child that ended without an answer."""
    if status == -signal.SIGXCPU:
        return _took(f"{verb}: more than {limits.cpu_seconds} seconds of CPU time in the child process", "cpu_seconds")
    if status == -signal.SIGKILL:
        return LimitError(f"{verb}: the system killed the child process, as it does where memory or CPU time runs out", hint=_REPORT)
    how = signal.Signals(-status).name if status < 0 else f"status {status}"
    return KernelError(f"{verb}: the child process ended with {how}, and without an answer", hint=_REPORT)


def _unreadable(verb: str) -> OarlockError:
    return KernelError(f"{verb}: what the child process answered cannot be read", hint=_REPORT)


def _error(verb: str, fields: Mapping[str, object]) -> OarlockError:
    """The error that the child describes. No class but ours is made, and of nothing but text."""
    kinds = {name: getattr(errors, name) for name in errors.__all__}
    kind, given = fields.get("kind"), fields.get("given", [])
    texts = {name: fields[name] for name in ("message", "location", "contract", "running", "hint", "op") if fields.get(name) is not None}
    lines = [*texts.values(), *given] if isinstance(given, list) else [None]
    if not isinstance(kind, str) or kind not in kinds or "message" not in texts or not all(isinstance(line, str) for line in lines):
        return _unreadable(verb)
    return kinds[kind](**texts, given=given)  # which makes visible what it is given


class _Verb(VerbCommand):
    """A verb that opens a program file, and imports operators for it first.

    With `--untrusted`, all that it does happens in the child process, which runs it again.
    """

    places: ClassVar[tuple[str, ...]] = ()

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        ctx.meta["oarlock.arguments"] = [*_words(ctx), *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> object:
        imports = ctx.params["imports"] or ()
        if imports and ctx.params["untrusted"]:
            raise ArgumentError("--import runs Python of yours, so it is not for --untrusted, which knows the operators of Oarlock alone")
        for name in imports:
            import_operators(name)
        if is_child() or not ctx.params["untrusted"]:
            return super().invoke(ctx)
        try:
            ended = run_untrusted(*ctx.meta["oarlock.arguments"])
        except Interrupted as interrupt:
            if interrupt.ended is None:
                typer.echo("\ninterrupted; the child process handed nothing back, so nothing was written", err=True)
                raise
            ended = interrupt.ended
        place = next((ctx.params[name] for name in self.places if ctx.params[name] is not None), None)
        if place is not None and ended.output:
            write_file(place, ended.output)
        typer.echo(ended.text, nl=False)
        if ended.network:
            typer.echo("note: this system gives no network of its own to a process, so the child had this one's", err=True)
        raise typer.Exit(ended.status)


def _words(context: Any) -> list[str]:
    """The verb as it is called: `check`, or `import` and `torch`."""
    above = context.parent
    return [] if above is None else [*_words(above), str(context.info_name)]


def opens_program(*places: str) -> type[VerbCommand]:
    """The class of such a verb, whose file goes to the path in the first of these parameters that is given."""
    return type("Verb", (_Verb,), {"places": places})
