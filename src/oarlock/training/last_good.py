"""The last good state of a run, and rolling back to it: a copy of the state, and the batches since then, which are run again."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy
import torch

from oarlock.errors import NotFiniteError
from oarlock.ir.names import COUNTER
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.runtime.executor import Executor
from oarlock.runtime.not_finite import Kind, Origin, describe_range, find_origin, kind_of
from oarlock.runtime.ragged import Ragged
from oarlock.runtime.scope import Scope
from oarlock.training.batches import Batch
from oarlock.training.metrics import Means
from oarlock.training.state_copy import StateCopy

__all__ = ["LastGood", "Rollback"]

_STEPS = 50  # the least between two checks of the parameters, which read all of them
_SHARE = 0.01  # the largest share of time for checks and copies: large sparse tables are checked less often
_MOST_BYTES = 2**26  # the largest size of the batches that are kept between checks


@dataclass(frozen=True)
class Rollback:
    """The outcome of a rollback: the error to raise, the sums of the current epoch, and whether the run is within an epoch."""

    error: NotFiniteError
    means: Means
    in_middle: bool


class LastGood:
    """Protection of a run from NaN and infinity: the state is copied now and then, and restored if a later step is bad.

    A step is bad if its loss is not finite, or if a parameter is no longer finite after it. The loss is checked after each step, the
    parameters after fifty or more, before a checkpoint and at the end of an epoch, so the cost per step is negligible. A bad step may be
    found late: the steps since the copy are then run again, bit-identically, to find the first bad one and restore the state before it.
    """

    def __init__(self, program: Program, scope: Scope, executor: Executor):
        self._program, self._scope, self._executor = program, scope, executor
        self._loss = "loss" if "loss" in program.targets else next(iter(program.targets), "")
        written = [op.writes[0] for op in program.main.tail]
        self._watched = [var.name for var in written if var.parameter and self._is_finite(var.name)]
        self._copy = StateCopy(program, scope)
        self._means: Means | None = None  # None while there is no valid copy
        self._workers = executor.workers
        self._since: list[tuple[Batch, dict[str, float]]] = []
        self._due = self._most = 0  # the number of steps until the next check; the largest number of batches to keep
        self._spent = self._begun = 0.0  # seconds of the last check and copy; the start time of the steps since

    def remember(self, means: Means) -> None:
        """Copy the state before a step, unless there is a valid copy."""
        if self._means is None:
            started = time.perf_counter()
            self._means = means.copy()
            self._copy.take()
            self._begun = time.perf_counter()
            self._spent += self._begun - started

    def accepts(self, batch: Batch, numbers: dict[str, float]) -> bool:
        """Record a step on `batch` with the targets `numbers`; return whether it may be good."""
        if not self._since:
            self._most = self._workers.least(max(1, _MOST_BYTES // (_bytes_of(batch.feed) + 1000)))
            self._due = min(_STEPS, self._most)
        self._since.append((batch, numbers))
        if not math.isfinite(numbers.get(self._loss, 0.0)):
            return False
        if len(self._since) < self._due:
            return True
        is_time = (time.perf_counter() - self._begun) * _SHARE >= self._spent
        if len(self._since) < self._most and not self._workers.any_says(is_time):  # all workers check after the same step
            self._due = min(self._due + _STEPS, self._most)
            return True
        return self.is_sound()

    def is_sound(self) -> bool:
        """Return whether the losses since the copy and the current parameters are finite.

        If so, the state is copied before the next step.
        """
        if not self._since:
            return True
        started = time.perf_counter()
        if not math.isfinite(self._since[-1][1].get(self._loss, 0.0)) or not all(map(self._is_finite, self._watched)):
            return False
        self._spent = time.perf_counter() - started
        self._means = None
        self._since.clear()
        return True

    def roll_back(self, run: Callable[[Batch], Sequence[object]]) -> Rollback:
        """Restore the state before the first bad step. `run` computes the targets of a step."""
        since, self._since = self._since, []
        found = self._replay(since, run)
        if found is None:  # results differ: a callback has changed the state, or kernels are not deterministic
            self._copy.restore()
            return self._rollback(self._unrepeated(*since[-1], steps=len(since)), self._start.copy(), self._start.rows > 0)
        bad, parameters = found
        self._copy.restore()
        means = self._start.copy()
        for batch, _ in since[:bad]:
            self._count(means, batch, run(batch))
        batch, numbers = since[bad]
        return self._rollback(self._error(batch, numbers, parameters), means, batch.number > 0)

    def _replay(
        self, since: Sequence[tuple[Batch, dict[str, float]]], run: Callable[[Batch], Sequence[object]]
    ) -> tuple[int, list[str]] | None:
        """Return the index of the first bad step and the parameters that it made non-finite, or None if a step gives different results."""
        self._copy.restore()
        means = self._start.copy()
        for number, (batch, numbers) in enumerate(since):
            again = self._count(means, batch, run(batch))
            if repr(again) != repr(numbers):  # NaN is not equal to itself
                return None
            if not math.isfinite(again.get(self._loss, 0.0)):
                return number, []
            bad_names = [name for name in self._watched if not self._is_finite(name)]
            if bad_names:
                return number, bad_names
        return None

    def _count(self, means: Means, batch: Batch, values: Sequence[object]) -> dict[str, float]:
        if batch.number == 0:
            means.begin()
        return means.add(self._program.targets, values, batch.rows)

    @property
    def _start(self) -> Means:
        assert self._means is not None
        return self._means

    def _rollback(self, error: NotFiniteError, means: Means, in_middle: bool) -> Rollback:
        self._means = None
        return Rollback(error, means, in_middle)

    def _unrepeated(self, batch: Batch, numbers: Mapping[str, float], *, steps: int) -> NotFiniteError:
        step = int(self._scope[COUNTER])  # type: ignore[call-overload]
        return NotFiniteError(
            f"{self._symptom(numbers, [], step + steps, batch.epoch)}. The {steps} steps since step {step} gave different results when "
            "repeated, so the cause is unknown. The state is that after that step",
            hint=_HINT,
        )

    def _symptom(self, numbers: Mapping[str, float], bad_names: Sequence[str], step: int, epoch: int) -> str:
        value, where = numbers.get(self._loss, 0.0), f"step {step}, in epoch {epoch + 1}"
        name = f'"{bad_names[0]}"' if bad_names else "a parameter"
        if math.isfinite(value):
            return f"{name} would not be finite after {where}"
        return f'"{self._loss}" is {value} at {where}'

    def _error(self, batch: Batch, numbers: Mapping[str, float], bad_names: Sequence[str]) -> NotFiniteError:
        """Return the error for the step on `batch`; the scope has the state before it."""
        message = self._symptom(numbers, bad_names, int(self._scope[COUNTER]) + 1, batch.epoch)  # type: ignore[call-overload]
        updates = {op.writes[0].name: op.reads[0] for op in self._program.main.tail}
        wanted = [updates[name] for name in bad_names] or [self._program.targets[self._loss]]
        catalogue = self._executor.interpreter.catalogue
        origin = find_origin(self._program, batch.feed, self._scope, self._executor.places, wanted, catalogue=catalogue)
        return self._made_by_nothing(batch.feed, wanted, message) if origin is None else _made_by(origin, message)

    def _made_by_nothing(self, feed: Mapping[str, object], wanted: Sequence[Var], message: str) -> NotFiniteError:
        fed = [name for name, value in feed.items() if kind_of(_tensor(value)) is not Kind.FINITE]
        if fed:
            given = [f'"{name}" {describe_range(_tensor(feed[name]))}' for name in fed]
            return NotFiniteError(
                f'{message}: the input "{fed[0]}" contains NaN or infinity',
                location=wanted[0].op and wanted[0].op.location,
                given=given,
                hint="remove such rows. " + _KEPT,
            )
        return NotFiniteError(f"{message}; the interpreter, which rounds differently, computes finite numbers in this step", hint=_HINT)

    def _is_finite(self, name: str) -> bool:
        found = self._scope.find_var(name)
        return found is None or not found.is_set or kind_of(found.held) is Kind.FINITE


_KEPT = "The state before this step is the `result` of this error"
_HINT = f'a smaller learning rate or clip=ol.optimizer.ClipByGlobalNorm(1.0); not_finite="warn" continues training. {_KEPT}'


def _made_by(origin: Origin, message: str) -> NotFiniteError:
    op, block = origin.op, origin.op.block
    made = [*origin.given, *(f"gave {line}" for line in origin.made)]
    if origin.followed_by is not None:
        later = origin.followed_by
        made.append(f"{later.text} of it, at {later.op.location}" if later.op.location else f"{later.text} of it")
        made += [f"  {line}" for line in later.given]
    return NotFiniteError(
        f"{message}: {origin.text}",
        location=op.location,
        running=f"{block.path}, op {block.ops.index(op)} of {len(block.ops)}" + (f", scope {origin.path}" if origin.path else ""),
        given=made,
        hint=_HINT,
        op=op.type,
    )


def _tensor(value: object) -> torch.Tensor:
    return torch.as_tensor(
        value.values if isinstance(value, Ragged) else numpy.asarray(value) if not isinstance(value, torch.Tensor) else value
    )


def _bytes_of(feed: Mapping[str, object]) -> int:
    return sum(getattr(value.values if isinstance(value, Ragged) else value, "nbytes", 0) for value in feed.values())
