"""The model that the first of several workers sends to the others, which need neither its file nor the Python that made it."""

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
from oarlock.training.together import tell

__all__ = ["REFUSED", "Received", "Sending", "receive"]

REFUSED = "OARLOCK_REFUSED"
"""The variable of the environment with the path of a file that is there once the first worker has ended before it sent anything."""


class Sending:
    """The first worker, from its start until it has sent the others what they train: a context manager.

    It connects only when it has something to say, so others wait for it as they wait for its start. Where it ends before it has sent
    anything, they end too. Of a worker alone nobody hears.
    """

    def __init__(self) -> None:
        self._is_done = False
        self._known = set(standard.operators)

    def __enter__(self) -> "Sending":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._is_done or (kind is not None and issubclass(kind, KeyboardInterrupt)):  # which the others have too
            return
        if REFUSED in os.environ:
            Path(os.environ[REFUSED]).touch()
        with suppress(OarlockError):
            self._tell({"status": "ended"})

    def send(self, model: Model, options: Mapping[str, object]) -> None:
        """Send a training program with its values, and the options that it is trained by.

        Raises ArgumentError where it has operators that the other workers do not know.
        """
        workers = connect()
        if workers.count == 1:
            self._is_done = True
            return
        self._require_known(model.program)
        written = io.BytesIO()
        save_model(model, written)
        told = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
        self._tell({"status": "model", "options": told})
        tell(workers, written.getvalue())

    def send_script(self) -> None:
        """Let the others run the script too, once."""
        if not self._is_done:
            self._tell({"status": "script"})

    def _tell(self, about: Mapping[str, object]) -> None:
        self._is_done = True
        workers = connect()
        if workers.count > 1:
            tell(workers, json.dumps(about).encode())

    def _require_known(self, program: Program) -> None:
        for op in walk(program.main):
            operator = None if op.type in self._known else standard.operators.get(op.type)
            if operator is not None and not operator.kernel.__module__.startswith("oarlock."):
                raise ArgumentError(
                    f'the script declares the operator "{op.type}", which other workers do not know: they get the program, and no Python',
                    location=op.location,
                    hint="--import my_operators.py, a file that declares it, makes all workers know it",
                )


@dataclass(frozen=True)
class Received:
    """A model and the options that it is trained by, as the first worker has sent them; no model where each worker runs the script."""

    model: Model | None = None
    options: dict[str, object] = field(default_factory=dict)


def receive() -> Received | None:
    """Get what the first worker sends; None where it ended before it sent anything, as soon as it has said why.

    Raises WorkerError where it does not come, and what `ol.load_model` does.
    """
    import oarlock.op.update  # noqa: F401  training programs use its operators

    workers = connect()
    about = json.loads(tell(workers))
    if about["status"] == "ended":
        _wait_for_end(workers)
        return None
    if about["status"] == "script":
        return Received()
    return Received(read_model(tell(workers), standard), about["options"])


def _wait_for_end(workers: Workers) -> None:
    """Wait until the first worker has gone: who watches them ends all when one has, and its message may not be out."""
    with suppress(WorkerError):
        tell(workers)
