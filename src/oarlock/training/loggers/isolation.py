"""The loggers of a run, isolated so that their errors do not end it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from oarlock.ir.location import warn_here
from oarlock.training.loggers.protocol import Logger

__all__ = ["Loggers"]


class Loggers:
    """A group of loggers. A logger that raises is removed, with a warning."""

    def __init__(self, loggers: Sequence[Logger]):
        self._active = list(loggers)

    def __bool__(self) -> bool:
        return bool(self._active)

    def running(self, settings: Mapping[str, object], step: int, summary: Callable[[str], Mapping[str, object]]) -> "Running":
        """Return a context for a run that starts after `step`. `summary(status)` makes the final report."""
        return Running(self, settings, step, summary)

    def begin(self, settings: Mapping[str, object], step: int) -> None:
        self._tell(lambda logger: logger.begin(settings, step))

    def end(self, summary: Mapping[str, object]) -> None:
        self._tell(lambda logger: logger.end(summary))

    def log(self, step: int, part: str, values: Mapping[str, float]) -> None:
        """Log `values` under labels that begin with the `part` of the run."""
        named = {f"{part}/{label}": value for label, value in values.items()}
        self._tell(lambda logger: logger.log(step, named))

    def epoch(self, step: int, number: int, training: Mapping[str, float]) -> None:
        named = {"epoch": float(number)} | {f"epoch/{label}": value for label, value in training.items()}
        self._tell(lambda logger: logger.log(step, named))

    def flush(self) -> None:
        self._tell(lambda logger: getattr(logger, "flush", _nothing)())

    def _tell(self, call: Callable[[Logger], object]) -> None:
        for logger in list(self._active):
            try:
                call(logger)
            except Exception as error:
                self._active.remove(logger)
                reason = (str(error).strip().splitlines() or [""])[0]
                warn_here(
                    f"the logger {type(logger).__name__} raised {type(error).__name__}{f': {reason}' if reason else ''}. "
                    "It is not called again; training continues",
                    RuntimeWarning,
                )


@dataclass(frozen=True)
class Running:
    """A context that reports the start and end of a run to loggers."""

    loggers: Loggers
    settings: Mapping[str, object]
    step: int
    summary: Callable[[str], Mapping[str, object]]

    def __enter__(self) -> None:
        if self.loggers:
            self.loggers.begin(self.settings, self.step)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        status = "finished" if kind is None else "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"
        self.loggers.end(self.summary(status))


def _nothing() -> None: ...
