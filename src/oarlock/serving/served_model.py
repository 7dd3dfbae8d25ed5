"""A model as a server runs it: checks of requests, and batching of requests if rows are independent."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from oarlock.errors import ArgumentError, LimitError, OarlockError
from oarlock.io.model import Model
from oarlock.ir.location import here
from oarlock.runtime.budget import RunLimits
from oarlock.runtime.executor import Executor
from oarlock.runtime.feed import check_feed
from oarlock.runtime.place import CPUPlace
from oarlock.serving.limits import ServingLimits
from oarlock.serving.refusal import LESS_MEMORY, Refusal, too_much
from oarlock.serving.rows import Rows, find_rows
from oarlock.serving.run_size import RunSize, RunSizes, computes_sizes

__all__ = ["Feed", "ServedModel", "Values", "run_by_onnxruntime"]

_MOST_SECONDS = 600.0  # of a run that is interpreted; a request is answered by then

Feed = Mapping[str, torch.Tensor]
Values = dict[str, torch.Tensor]


@dataclass(frozen=True)
class _Joinable:
    """The rows of a feed, and a key shared by the feeds it may be batched with."""

    rows: int
    kind: Hashable


class ServedModel:
    """A named model. It may be called from several threads at the same time.

    `run` computes the targets of one feed; by default this is a prepared plan of the model. If the memory of a run depends on computed
    values, the run is interpreted instead, and raises Refusal before its values exceed `run_bytes`.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        run: Callable[[Feed], Sequence[torch.Tensor]] | None = None,
        *,
        run_bytes: int = ServingLimits.run_bytes,
    ):
        if not model.program.targets:
            raise ArgumentError(
                "the model has no targets, so it cannot be served",
                location=here(),
                hint="use ol.save_model(predict, parameters, path) to save a program with a target",
            )
        odd = next((var for var in (*model.program.main.inputs, *model.program.targets.values()) if var.dtype.is_complex), None)
        if odd is not None:
            raise ArgumentError(
                f'"{odd.name}" is {odd.type_text}, but the protocol does not support complex numbers',
                location=here(),
                given=[odd.describe()],
                hint="feed real and imaginary parts to ol.op.view_as_complex, and return them by ol.op.view_as_real",
            )
        self.name = name
        self.program = model.program
        self.labels = tuple(model.program.targets)
        self.rows: Rows = find_rows(model.program, model.catalogue)
        self._sizes = RunSizes(model.program, model.catalogue)
        self._run = run or _prepare(model, self.labels, run_bytes)
        self._needed = set(self.rows.inputs)

    def check(self, feed: Feed) -> Feed:
        """Check `feed` against the declarations of the program. Raises FeedError, or ShapeError for inconsistent sizes."""
        return check_feed(self.program, feed, self._needed, CPUPlace())

    def size_of(self, feed: Feed) -> RunSize:
        """Return the size of a run with this feed, before running it."""
        return self._sizes.of(feed)

    def joinable(self, feed: Feed) -> _Joinable | None:
        """Return how `feed` may be batched with others, or None."""
        inputs = self.rows.inputs
        if self.rows.symbol is None or feed.keys() != {var.name for var in inputs}:
            return None
        rows = feed[inputs[0].name].shape[0]
        return _Joinable(rows, tuple(feed[var.name].shape[1:] for var in inputs)) if rows else None

    def run(self, feeds: Sequence[Feed]) -> list[Values | Exception]:
        """Return the target values for each feed, or the exception it raised. The feeds may be batched.

        If a batch raises, each feed is run separately, so that an invalid one does not affect the others.
        """
        if len(feeds) > 1:
            try:
                return [*self._run_joined(feeds)]
            except (OarlockError, Refusal):
                pass
        return [self._run_alone(feed) for feed in feeds]

    def _run_alone(self, feed: Feed) -> Values | Exception:
        try:
            return dict(zip(self.labels, self._run(feed), strict=True))
        except Exception as error:
            return error

    def _run_joined(self, feeds: Sequence[Feed]) -> list[Values]:
        first = self.rows.inputs[0].name
        counts = [feed[first].shape[0] for feed in feeds]
        joined = {var.name: torch.cat([feed[var.name] for feed in feeds]) for var in self.rows.inputs}
        parts = [value.split(counts) for value in self._run(joined)]
        return [dict(zip(self.labels, values, strict=True)) for values in zip(*parts, strict=True)]


def _prepare(model: Model, labels: Sequence[str], run_bytes: int) -> Callable[[Feed], Sequence[torch.Tensor]]:
    """Return a prepared step of the model, within limits if computed values decide how much memory it takes."""
    limits = RunLimits(live_bytes=run_bytes, seconds=_MOST_SECONDS) if computes_sizes(model.program, model.catalogue) else None
    executor = Executor(catalogue=model.catalogue, limits=limits) if limits else model.executor
    step: Any = executor.prepare(model.program, labels, scope=model.scope, training=False, measure=False, return_numpy=False)
    return _within_limits(step) if limits else step


def _within_limits(step: Callable[[Feed], Sequence[torch.Tensor]]) -> Callable[[Feed], Sequence[torch.Tensor]]:
    """Return `step`, whose LimitError becomes a Refusal."""

    def run(feed: Feed) -> Sequence[torch.Tensor]:
        try:
            return step(feed)
        except LimitError as error:
            raise too_much("run_bytes", error.message, hint=LESS_MEMORY) from None

    return run


def run_by_onnxruntime(model: Model, *, threads: int | None = None) -> Callable[[Feed], Sequence[torch.Tensor]]:
    """Return a `run` function for `ServedModel` that uses ONNX Runtime. Raises the same as `Model.to_onnxruntime`."""
    session = model.to_onnxruntime(threads=threads)
    return lambda feed: [torch.from_numpy(value) for value in session.run(feed)]
