"""The metrics of a pass over data.

Means over rows are saved if a run stops within an epoch. A loss that is not finite causes a warning.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy
import torch

from oarlock.ir.dtype import DType
from oarlock.ir.location import warn_here
from oarlock.ir.program import Program
from oarlock.ir.var import Initializer
from oarlock.metric.state import counted_by
from oarlock.runtime.ragged import Ragged
from oarlock.runtime.scope import Scope
from oarlock.runtime.value import to_numpy

__all__ = ["LossWatch", "Means", "metrics_in", "store_means", "take_means", "without_means"]

_SUMS = "@EPOCH"  # a run stopped within an epoch: the step, the rows of the epoch so far, and the sum of each target over them


def metrics_in(program: Program) -> frozenset[str]:
    """Return the labels of the targets that accumulate over batches themselves."""
    return frozenset(label for label, var in program.targets.items() if counted_by(program, [var]))


class Means:
    """Means over rows, accumulated batch by batch; for the labels in `metrics`, the values after the last batch."""

    def __init__(self, metrics: Collection[str] = ()) -> None:
        self.rows = 0
        self.metrics = metrics
        self.totals: dict[str, float] = {}

    def begin(self) -> None:
        """Reset all counts for a new pass."""
        self.rows, self.totals = 0, {}

    def copy(self) -> "Means":
        copied = Means(self.metrics)
        copied.rows, copied.totals = self.rows, dict(self.totals)
        return copied

    def add(self, labels: Mapping[str, object], values: Sequence[object], rows: int) -> dict[str, float]:
        """Add the means `values` over `rows` rows, and return them by label."""
        self.rows += rows
        totals, metrics, means = self.totals, self.metrics, dict[str, float]()
        for label, value in zip(labels, values, strict=True):
            # Inlined for scalars, the usual case: a call after large kernels costs a microsecond.
            mean = value.item() if isinstance(value, torch.Tensor) and not value.ndim else _mean(value)
            means[label] = mean = mean if type(mean) is float else float(mean)
            totals[label] = mean if label in metrics else totals.get(label, 0.0) + mean * rows
        return means

    @property
    def values(self) -> dict[str, float]:
        totals = self.totals.items()
        return {label: total if label in self.metrics else total / self.rows if self.rows else math.nan for label, total in totals}

    @property
    def are_finite(self) -> bool:
        """Whether all means are finite. Metrics are ignored: a metric that has counted nothing yet is NaN."""
        if math.isfinite(sum(self.totals.values())):
            return True
        return all(math.isfinite(total) for label, total in self.totals.items() if label not in self.metrics)


def _mean(value: object) -> float:
    """Return the mean of an array, a tensor or a number."""
    return float(numpy.mean(to_numpy(value) if isinstance(value, torch.Tensor) else value))  # type: ignore[call-overload]


def store_means(means: Means, program: Program, scope: Scope, steps: int) -> None:
    """Store the means of an unfinished epoch in `program` and `scope`, after `steps`, so that a resumed run can continue them."""
    sums = torch.tensor([steps, means.rows, *means.totals.values()], dtype=torch.float64)
    found = program.main.find_var(_SUMS)
    if found is None:
        shape, zeros = tuple(sums.shape), Initializer("constant", {"value": 0.0})
        found = program.main.new_var(_SUMS, DType.FLOAT64, shape, persistable=True, stop_gradient=True, initializer=zeros)
    scope.set(_SUMS, sums)


def without_means(program: Program) -> Program:
    """Return a copy of `program` without the variable that stores the means of an unfinished epoch."""
    copied = program.clone()
    copied.main.vars.pop(_SUMS, None)
    return copied


def take_means(program: Program, scope: Scope, steps: int) -> Means:
    """Return the means that a run stored after `steps` steps, and remove them from program and scope. Empty if there are none."""
    means = Means(metrics_in(program))
    found = scope.find_local_var(_SUMS)
    sums = found.value if found is not None and found.is_set else None
    if isinstance(sums, torch.Tensor) and len(sums) == 2 + len(program.targets) and int(sums[0]) == steps:
        _, rows, *totals = sums.tolist()
        means.rows, means.totals = int(rows), dict(zip(program.targets, totals, strict=True))
    if found is not None:
        scope.erase(_SUMS)
    if program.main.vars.pop(_SUMS, None) is not None:
        program.changed()
    return means


_NOT_FINITE = "contains NaN or infinity"


class LossWatch:
    """Warns about a target that is not finite, with its cause: once for training, and once for validation."""

    def __init__(self, program: Program, scope: Scope):
        self.program = program
        self.scope = scope
        self.warned = {"training": False, "validation": False}

    def warn(self, values: Sequence[object], feed: Mapping[str, object], *, step: int, epoch: int, validation: bool = False) -> None:
        """Warn about the first of `values`, the targets of a step or of a batch of `validation`, that is not finite.

        After a warning about training, validation is not finite either, and gives no further warning.
        """
        kind = "validation" if validation else "training"
        if self.warned[kind] or self.warned["training"]:
            return
        self.warned[kind] = True
        metrics, targets = metrics_in(self.program), zip(self.program.targets, values, strict=True)
        means = {label: _mean(value) for label, value in targets if label not in metrics}
        label, value = next(((label, mean) for label, mean in means.items() if not math.isfinite(mean)), ("loss", math.nan))
        found = next(self._causes(feed), "the inputs and the parameters after the step are finite")
        where = f"in the validation after step {step}, of epoch {epoch}" if validation else f"at step {step}, in epoch {epoch}"
        fed_is_wrong = found.endswith(_NOT_FINITE)
        advice = "remove such rows" if fed_is_wrong else "try a smaller learning rate, or an earlier checkpoint"
        warn_here(f'"{label}" is {value} {where}: {found}. Training continues; {advice}', RuntimeWarning)

    def _causes(self, feed: Mapping[str, object]) -> Iterator[str]:
        for name, value in feed.items():
            array = torch.as_tensor(value.values if isinstance(value, Ragged) else value)
            if not bool(torch.isfinite(array).all()):
                yield f'the input "{name}" {_NOT_FINITE}'
        for var in self.program.parameters():
            held = self.scope.get(var.name)
            if isinstance(held, torch.Tensor) and not bool(torch.isfinite(held).all()):
                yield f'the parameter "{var.name}" is not finite after it'
