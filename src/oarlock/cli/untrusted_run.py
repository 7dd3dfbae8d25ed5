"""`--untrusted`: run a verb on an untrusted file in a child process with operating-system limits. Linux only."""

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
from oarlock.cli.options import import_operators
from oarlock.cli.output_file import is_child
from oarlock.cli.process_group import ProcessGroup
from oarlock.cli.verbs import VerbCommand
from oarlock.errors import ArgumentError, KernelError, LimitError, OarlockError, visible
from oarlock.io.atomic_write import write_file
from oarlock.training.interruption import Stopping

__all__ = ["Ended", "Interrupted", "ProcessLimits", "Untrusted", "opens_program", "run_untrusted"]

Untrusted = Annotated[bool, typer.Option("--untrusted", help="Do not trust the file: follow no links, and run in a confined process.")]

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
)  # no secrets and no URLs
_PATIENCE = 2.0  # seconds that an interrupted child has to return its result
_REPORT = "nothing was written; report such a file as SECURITY.md describes"


@dataclass(frozen=True)
class Ended:
    """The result of a verb.

    `status`: its exit status, 0 to 255. `text`: its printed text. `output`: the bytes of its output file, empty if it writes none.
    `network`: whether the child shared this process's network, because the system could not isolate it.
    """

    status: int
    text: str
    output: bytes
    network: bool


class Interrupted(KeyboardInterrupt):
    """An interrupt (Ctrl-C) during `run_untrusted`. `ended` is the result that the child returned in time, or None."""

    def __init__(self, ended: Ended | None):
        super().__init__("interrupted; the child process returned " + ("no result" if ended is None else "a result, `ended`"))
        self.ended = ended


def run_untrusted(*arguments: str | os.PathLike[str], limits: ProcessLimits | None = None) -> Ended:
    """Run a verb of the command line on an untrusted file, in a confined child process, and return its result.

        ended = ol.run_untrusted("infer", "model.safetensors", "--data", "rows.npz", "--output", "predicted.npy")
        predicted = numpy.load(io.BytesIO(ended.output), allow_pickle=False)

    The child follows no links, writes no files, has no privileges, no GPU and, if the system allows it, no network. `limits` bounds its
    memory, CPU time and open files, and `RunLimits` the program that it runs. It knows only built-in operators, and none of its descendants
    outlives it. If the verb would write a file, its bytes are returned, and the caller may write them.

    Ctrl-C interrupts the child, which has two seconds to return its result; a second Ctrl-C kills it at once.

    Raises the errors of the verb; LimitError if the child exceeds a limit, KernelError if it crashes, ArgumentError on systems other than
    Linux; `Interrupted`, a KeyboardInterrupt, on Ctrl-C, with the returned result or None as its `ended`.
    """
    if sys.platform != "linux":
        raise ArgumentError("untrusted files can only be run on Linux: other systems do not have these limits")
    limits = limits or ProcessLimits()
    given = [os.fspath(argument) for argument in arguments]
    words = 2 if given[:1] == ["import"] else 1  # `import torch` is a verb of two words
    verb, rest = " ".join(given[:words]), given[words:]
    if "--untrusted" not in rest:
        rest.insert(0, "--untrusted")
    command = [sys.executable, "-P", "-B", "-m", "oarlock.cli.child", json.dumps(asdict(limits)), *given[:words], *rest]
    stopping, answer = Stopping(patience=_PATIENCE + 1.0), None  # an interrupted read would lose data
    group = partial(ProcessGroup, command, _environment(), seconds=limits.seconds, stops=lambda: stopping.asked, patience=_PATIENCE)
    try:
        with stopping, group() as running:
            answer = _take_answer(verb, running, limits)  # the child is killed after its answer
    except (KeyboardInterrupt, OarlockError, TimeoutError) as raised:
        if stopping.asked:
            raise Interrupted(None if answer is None or answer.error is not None else _ended(answer)) from None
        if isinstance(raised, TimeoutError):
            raise _limit_error(f"{verb}: the child process ran longer than {limits.seconds:g} seconds", "seconds") from None
        raise
    if answer.error is None:
        return _ended(answer)
    raise _error(verb, answer.error)


def _ended(answer: Answer) -> Ended:
    return Ended(answer.status, visible(answer.text, lines=True), answer.output, answer.network)


def _take_answer(verb: str, group: ProcessGroup, limits: ProcessLimits) -> Answer:
    """Read the answer of the child, which may be compromised: its parts are only text and bytes, of checked sizes."""

    def allow(name: str, length: int) -> None:
        most = getattr(limits, f"{name}_bytes")
        if length > most:
            what = "printed" if name == "text" else "returned"
            raise _limit_error(f"{verb}: the child process {what} more than {most:,} bytes", f"{name}_bytes")

    try:
        return read_answer(group.read_line, group.read, allow=allow)
    except EOFError:
        status = group.wait()
        raise (_exit_error(verb, status, limits) if status else _answer_error(verb)) from None
    except LimitError:  # also a ValueError
        raise
    except (ValueError, RecursionError):
        raise _answer_error(verb) from None


def _environment() -> dict[str, str]:
    """Return the environment of the child: package paths, locale and the width of the terminal."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    packages = os.pathsep.join(filter(None, [_PACKAGES, os.environ.get("PYTHONPATH")]))
    # One malloc arena per thread would waste address space.
    return kept | {
        "PYTHONPATH": packages,
        "COLUMNS": str(shutil.get_terminal_size().columns),
        "CUDA_VISIBLE_DEVICES": "",
        "MALLOC_ARENA_MAX": "2",
    }


def _limit_error(message: str, name: str) -> LimitError:
    return LimitError(message, hint=f"limits=ProcessLimits({name}=...)")


def _exit_error(verb: str, status: int, limits: ProcessLimits) -> OarlockError:
    """Return the error for a child that ended without an answer."""
    if status == -signal.SIGXCPU:
        return _limit_error(f"{verb}: the child process used more than {limits.cpu_seconds} seconds of CPU time", "cpu_seconds")
    if status == -signal.SIGKILL:
        return LimitError(f"{verb}: the system killed the child process, which usually means that memory or CPU time ran out", hint=_REPORT)
    how = signal.Signals(-status).name if status < 0 else f"status {status}"
    return KernelError(f"{verb}: the child process ended with {how} and without an answer", hint=_REPORT)


def _answer_error(verb: str) -> OarlockError:
    return KernelError(f"{verb}: the answer of the child process cannot be read", hint=_REPORT)


def _error(verb: str, fields: Mapping[str, object]) -> OarlockError:
    """Build the error that the child describes. Only classes of `oarlock.errors` are created, and only from text."""
    kinds = {name: getattr(errors, name) for name in errors.__all__}
    kind, given = fields.get("kind"), fields.get("given", [])
    texts = {name: fields[name] for name in ("message", "location", "contract", "running", "hint", "op") if fields.get(name) is not None}
    lines = [*texts.values(), *given] if isinstance(given, list) else [None]
    if not isinstance(kind, str) or kind not in kinds or "message" not in texts or not all(isinstance(line, str) for line in lines):
        return _answer_error(verb)
    return kinds[kind](**texts, given=given)  # it escapes control characters


class _Verb(VerbCommand):
    """A verb that opens a program file, and imports custom operators first.

    With `--untrusted`, the whole verb runs in the child process.
    """

    places: ClassVar[tuple[str, ...]] = ()

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        ctx.meta["oarlock.arguments"] = [*_words(ctx), *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> object:
        imports = ctx.params["imports"] or ()
        if imports and ctx.params["untrusted"]:
            raise ArgumentError(
                "--import runs custom Python code, so it cannot be combined with --untrusted; only built-in operators are allowed"
            )
        for name in imports:
            import_operators(name)
        if is_child() or not ctx.params["untrusted"]:
            return super().invoke(ctx)
        try:
            ended = run_untrusted(*ctx.meta["oarlock.arguments"])
        except Interrupted as interrupt:
            if interrupt.ended is None:
                typer.echo("\ninterrupted; the child process returned no result, so nothing was written", err=True)
                raise
            ended = interrupt.ended
        place = next((ctx.params[name] for name in self.places if ctx.params[name] is not None), None)
        if place is not None and ended.output:
            write_file(place, ended.output)
        typer.echo(ended.text, nl=False)
        if ended.network:
            typer.echo("note: this system cannot isolate the network of a process, so the child process had network access", err=True)
        raise typer.Exit(ended.status)


def _words(context: Any) -> list[str]:
    """Return the words of the verb: `check`, or `import` and `torch`."""
    above = context.parent
    return [] if above is None else [*_words(above), str(context.info_name)]


def opens_program(*places: str) -> type[VerbCommand]:
    """Return the command class of a verb that opens a program and writes its file to the first given parameter of `places`."""
    return type("Verb", (_Verb,), {"places": places})
