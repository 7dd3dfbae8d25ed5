"""The child process of `--untrusted`: `python -m oarlock.cli.child LIMITS VERB ...`.

It writes an answer (`answer.py`) to standard output: how the verb ended, its printed text, and the bytes of its output file. Nothing heavy
is imported before the process is isolated. An interrupt, which the parent forwards, ends the process immediately until there is a result
to return; it is ignored while the answer is written.
"""

import contextlib
import io
import json
import os
import signal
import sys

from oarlock.cli.answer import write_answer
from oarlock.cli.confinement import ProcessLimits, isolate, limit

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a KeyboardInterrupt can get lost in an import
    limits = ProcessLimits(**json.loads(arguments[0]))
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # text that libraries print must not mix with the answer
    network = not isolate()

    from oarlock.cli.main import app, import_verb
    from oarlock.cli.output_file import hand_over

    import_verb(arguments[1:])  # before the limits apply
    if arguments[1:3] == ["import", "torch"]:
        from oarlock.interop.torch.export import load_exporter

        load_exporter()

    handed = hand_over()
    limit(limits)
    status, failed = 0, None
    with contextlib.redirect_stdout(io.StringIO()) as text:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            status = app(arguments[1:], standalone_mode=False) or 0
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        except Exception as error:
            failed = _describe(error, limits)
    if failed is None:
        write_answer(answer, status=status, network=network, text=text.getvalue(), output=handed.getbuffer())
    else:
        write_answer(answer, network=network, error=failed)
    os._exit(0)  # without waiting for other threads


def _describe(error: Exception, limits: ProcessLimits) -> dict[str, object]:
    """Return an exception as fields for the parent: its class name and its texts."""
    from oarlock.errors import ArgumentError, KernelError, LimitError, OarlockError
    from oarlock.out_of_memory import is_out_of_memory

    if is_out_of_memory(error):
        message = f"the child process needs more than its limit of {limits.memory_bytes:,} bytes of memory"
        error = LimitError(message, hint="limits=ProcessLimits(memory_bytes=...)")
    elif hasattr(error, "format_message"):  # a usage error of the command line
        error = ArgumentError(error.format_message())  # type: ignore[attr-defined]
    elif not isinstance(error, OarlockError):
        error = KernelError(f"the child process failed: {type(error).__name__}: {error}")
    fields = {name: getattr(error, name) for name in ("message", "contract", "running", "hint", "op")}
    location = None if error.location is None else str(error.location)
    return fields | {"kind": type(error).__name__, "location": location, "given": list(error.given)}


if __name__ == "__main__":
    main(sys.argv[1:])
