"""The model that the first of several workers sends to the others, which need neither its file nor its Python code."""

import io
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from oarlock.errors import ArgumentError, OarlockError, WorkerError
from oarlock.io.model import Model, read_model, save_model
from oarlock.ir.program import Program
from oarlock.ir.traversal import walk
from oarlock.registry.catalogue import standard
from oarlock.runtime.workers import Workers, connect
from oarlock.training.together import broadcast

__all__ = ["REFUSED", "Received", "Sending", "receive"]

REFUSED = "OARLOCK_REFUSED"
"""The environment variable with the path of a file that exists after the first worker has ended without sending anything."""


class Sending:
    """The first worker, from its start until it has sent the model to the others: a context manager.

    It connects only to send, so the other workers wait for it as for its start. If it ends without sending anything, they end too. A
    single worker sends nothing.
    """

    def __init__(self) -> None:
        self._is_done = False
        self._known = set(standard.operators)

    def __enter__(self) -> "Sending":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._is_done or (kind is not None and issubclass(kind, KeyboardInterrupt)):  # the others are interrupted too
            return
        if REFUSED in os.environ:
            Path(os.environ[REFUSED]).touch()
        with suppress(OarlockError):
            self._tell({"status": "ended"})

    def send(self, model: Model, options: Mapping[str, object]) -> None:
        """Send a training program with its values, and the options for training it.

        Raises ArgumentError if it uses operators that the other workers do not know.
        """
        workers = connect()
        if workers.count == 1:
            self._is_done = True
            return
        self._require_known(model.program)
        written = io.BytesIO()
        save_model(model, written)
        texts = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
        self._tell({"status": "model", "options": texts})
        broadcast(workers, written.getvalue())

    def send_script(self) -> None:
        """Make the other workers run the script too; only the first call has an effect."""
        if not self._is_done:
            self._tell({"status": "script"})

    def _tell(self, about: Mapping[str, object]) -> None:
        self._is_done = True
        workers = connect()
        if workers.count > 1:
            broadcast(workers, json.dumps(about).encode())

    def _require_known(self, program: Program) -> None:
        for op in walk(program.main):
            operator = None if op.type in self._known else standard.operators.get(op.type)
            if operator is not None and not operator.kernel.__module__.startswith("oarlock."):
                raise ArgumentError(
                    f'the script declares the operator "{op.type}", which other workers do not know: they receive only the program',
                    location=op.location,
                    hint="declare it in a file, and import that on all workers with --import my_operators.py",
                )


@dataclass(frozen=True)
class Received:
    """The model and options that the first worker sent; no model if each worker runs the script."""

    model: Model | None = None
    options: dict[str, object] = field(default_factory=dict)


def receive() -> Received | None:
    """Receive the model of the first worker, or None if it ended without sending anything, after it has printed the reason.

    Raises WorkerError if nothing arrives, and the errors of `ol.load_model`.
    """
    import oarlock.op.update  # noqa: F401  registers the operators of training programs

    workers = connect()
    about = json.loads(broadcast(workers))
    if about["status"] == "ended":
        _wait_for_end(workers)
        return None
    if about["status"] == "script":
        return Received()
    return Received(read_model(broadcast(workers), standard), about["options"])


def _wait_for_end(workers: Workers) -> None:
    """Wait until the first worker has ended: torchrun ends all workers when one ends, and its message may not be printed yet."""
    with suppress(WorkerError):
        broadcast(workers)
