"""A schedule that reduces the rate when the cost stops improving."""

import math
from dataclasses import dataclass

from oarlock.errors import ArgumentError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.choice import maximum, where
from oarlock.op.dtype_conversion import cast
from oarlock.op.logical import logical_and
from oarlock.optimizer.schedule.schedule import Progress, Schedule
from oarlock.registry.creator import describe_value
from oarlock.registry.range_check import require_choice, require_count, require_number

__all__ = ["ReduceOnPlateau"]


@dataclass(frozen=True)
class ReduceOnPlateau(Schedule):
    """A rate that is multiplied by `factor` after more than `patience` consecutive measurements without improvement.

    A measurement is the mean over `every` steps, such as an epoch, of the cost or of `measure`, another variable of the program, float[].
    An improvement is a value below ``best (1 - threshold)``, or with `threshold_mode` "abs" below ``best - threshold``; with `mode` "max"
    it is a value above the bound. After a reduction, `cooldown` measurements are not counted as bad. The rate is at least `least`, and
    reductions smaller than `epsilon` are skipped. Everything is state of the program, such as `sgd_0.best`. Like
    `torch.optim.lr_scheduler.ReduceLROnPlateau`. Raises ArgumentError for an argument out of range, and if there is nothing to measure.
    """

    rate: float
    factor: float = 0.1
    patience: int = 10
    every: int = 1
    threshold: float = 1e-4
    threshold_mode: str = "rel"
    cooldown: int = 0
    least: float = 0.0
    epsilon: float = 1e-8
    mode: str = "min"
    measure: Var | None = None

    def __post_init__(self) -> None:
        require_number("ReduceOnPlateau: rate", self.rate, above=0.0)
        require_number("ReduceOnPlateau: factor", self.factor, above=0.0, below=1.0)
        require_count("ReduceOnPlateau: patience", self.patience, least=0)
        require_count("ReduceOnPlateau: every", self.every)
        require_number("ReduceOnPlateau: threshold", self.threshold, least=0.0)
        require_choice("ReduceOnPlateau: threshold_mode", self.threshold_mode, ("rel", "abs"))
        require_count("ReduceOnPlateau: cooldown", self.cooldown, least=0)
        require_number("ReduceOnPlateau: least", self.least, least=0.0)
        require_number("ReduceOnPlateau: epsilon", self.epsilon, least=0.0)
        require_choice("ReduceOnPlateau: mode", self.mode, ("min", "max"))
        if self.measure is not None and not isinstance(self.measure, Var):
            raise ArgumentError(f"ReduceOnPlateau: measure must be a variable, not {describe_value(self.measure)}", location=here())

    def __call__(self, progress: Progress) -> Var:
        measured, is_due = self._measurement(progress)
        zero, one = progress.number(0.0), progress.number(1.0)
        rate, best = progress.state("reduced_rate", self.rate), progress.state("best", math.inf if self.mode == "min" else -math.inf)
        bad, cooling = progress.state("bad", 0.0), progress.state("cooling", 0.0)
        is_better = self._is_better(measured, best)
        worse = where(is_better, zero, bad + one)
        is_cooling = cooling > zero
        left = where(is_cooling, cooling - one, cooling)
        worse = where(is_cooling, zero, worse)
        is_stuck = worse > float(self.patience)
        reduced = maximum(rate * float(self.factor), progress.number(float(self.least)))
        next_rate = where(logical_and(is_stuck, rate - reduced > float(self.epsilon)), reduced, rate)
        following = {
            rate: next_rate,
            best: where(is_better, measured, best),
            bad: where(is_stuck, zero, worse),
            cooling: where(is_stuck, progress.number(float(self.cooldown)), left),
        }
        for state, value in following.items():
            progress.commit(state, value if is_due is None else where(is_due, value, state))
        return rate

    def _measurement(self, progress: Progress) -> tuple[Var, Var | None]:
        """Return the measurement, float64[], and whether it is complete in this step, bool[], or None if every step is one."""
        measure = progress.cost if self.measure is None else progress.main.find_var(self.measure.name)
        if measure is None:
            raise ArgumentError("ReduceOnPlateau: there is no cost to measure", location=here(), hint="pass it: apply(pairs, cost)")
        if measure.shape != () or not measure.dtype.is_floating:
            raise ArgumentError(
                f"ReduceOnPlateau: measure must be one float, not {measure.type_text}", location=here(), given=[measure.describe()]
            )
        value = measure if measure.dtype is DType.FLOAT64 else cast(measure, dtype=DType.FLOAT64)
        if self.every == 1:
            return value, None
        total, seen = progress.state("measured", 0.0), progress.state("seen", 0.0)
        next_total, next_seen, zero = total + value, seen + 1.0, progress.number(0.0)
        is_due = next_seen >= float(self.every)
        progress.commit(total, where(is_due, zero, next_total))
        progress.commit(seen, where(is_due, zero, next_seen))
        return next_total / float(self.every), is_due

    def _is_better(self, measured: Var, best: Var) -> Var:
        sign = 1.0 if self.mode == "min" else -1.0
        threshold = sign * float(self.threshold)
        bound = best * (1.0 - threshold) if self.threshold_mode == "rel" else best - threshold
        return measured < bound if self.mode == "min" else measured > bound
