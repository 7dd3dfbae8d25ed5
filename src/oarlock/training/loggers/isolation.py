"""The loggers of a run: what one of them raises does not end it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from oarlock.ir.location import warn_here
from oarlock.training.loggers.protocol import Logger

__all__ = ["Loggers"]


class Loggers:
    """Tells several loggers, each until it raises: that is warned of, and the logger is told nothing more."""

    def __init__(self, loggers: Sequence[Logger]):
        self._told = list(loggers)

    def __bool__(self) -> bool:
        return bool(self._told)

    def running(self, settings: Mapping[str, object], step: int, summary: Callable[[str], Mapping[str, object]]) -> "Running":
        """A `with` block in which a run goes on after `step`; `summary` makes what they are told at the end of how it ended."""
        return Running(self, settings, step, summary)

    def begin(self, settings: Mapping[str, object], step: int) -> None:
        self._tell(lambda logger: logger.begin(settings, step))

    def end(self, summary: Mapping[str, object]) -> None:
        self._tell(lambda logger: logger.end(summary))

    def log(self, step: int, part: str, values: Mapping[str, float]) -> None:
        """Tell `values` by their labels, after the `part` of a run that they are of."""
        named = {f"{part}/{label}": value for label, value in values.items()}
        self._tell(lambda logger: logger.log(step, named))

    def epoch(self, step: int, number: int, training: Mapping[str, float]) -> None:
        named = {"epoch": float(number)} | {f"epoch/{label}": value for label, value in training.items()}
        self._tell(lambda logger: logger.log(step, named))

    def flush(self) -> None:
        self._tell(lambda logger: getattr(logger, "flush", _nothing)())

    def _tell(self, call: Callable[[Logger], object]) -> None:
        for logger in list(self._told):
            try:
                call(logger)
            except Exception as error:
                self._told.remove(logger)
                reason = (str(error).strip().splitlines() or [""])[0]
                warn_here(
                    f"the logger {type(logger).__name__} raised {type(error).__name__}{f': {reason}' if reason else ''}. "
                    "It is told nothing more; the run goes on",
                    RuntimeWarning,
                )


@dataclass(frozen=True)
class Running:
    """A run of which loggers are told that it begins, and how it ended."""

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
