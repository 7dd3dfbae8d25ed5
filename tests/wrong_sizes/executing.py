"""The runs of one trial: by each executor, on sizes that fit and on those that do not."""

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch

import oarlock as ol
from wrong_sizes.trial import Written

__all__ = ["EXECUTORS", "Outcome", "Values", "run_by"]

LIMITS = ol.RunLimits(trips=200, ops=5_000, live_bytes=2**28, seconds=20.0)
Values = list[torch.Tensor]


@dataclass
class Outcome:
    """The values of the results and gradients, or the error; and the shapes that the parameters have in the scope after the run."""

    values: Values = field(default_factory=list)
    state: dict[str, torch.Tensor] = field(default_factory=dict)
    error: str = ""
    message: str = ""
    op: str | None = None
    ours: bool = True

    @property
    def ran(self) -> bool:
        return not self.error

    def squeezed(self) -> "Outcome":
        """Return this outcome with values without dimensions of size 1."""
        return replace(self, values=[value.squeeze() for value in self.values])

    def digest(self) -> str:
        """A text that two runs share if all their bits are equal, NaNs aside."""
        if self.error:
            return self.error
        found = hashlib.sha256()
        for tensor in (*self.values, *self.state.values()):
            found.update(f"{tensor.dtype}{list(tensor.shape)}".encode())
            found.update(_without_signs_of_nan(tensor).contiguous().numpy().tobytes())
        return found.hexdigest()[:16]


def _without_signs_of_nan(tensor: torch.Tensor) -> torch.Tensor:
    tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.float()
    return torch.where(tensor.isnan(), torch.full_like(tensor, float("nan")), tensor) if tensor.is_floating_point() else tensor


def _executors(byte: int) -> dict[str, ol.Executor]:
    """The executors, those by plans with memory that is filled with a byte where nothing is to be read."""
    return {
        "interpreter": ol.Executor(interpret=True),
        "plan": ol.Executor(poison=byte),
        "plan without passes": ol.Executor(passes=(), poison=byte),
        "limits": ol.Executor(limits=LIMITS),
        "prepared step": ol.Executor(),
    }


EXECUTORS = tuple(_executors(0))


def run_by(name: str, written: Written, *, training: bool, byte: int, fits: bool = False) -> Outcome:
    """Run a program by the executor `name`; if it `fits`, on the feed that fits. A prepared step runs on that feed first."""
    executor = _executors(byte)[name]
    scope = ol.Scope()
    fetch = [*written.results, *written.gradients]
    try:
        for each, value in written.state.items():
            scope.set(each, value.clone())
        others = [var for var in written.program.persistables() if var.name not in written.state]
        ol.init(written.program, scope, only=others)
        feed = written.before if fits else written.feed
        if name == "prepared step":
            step = executor.prepare(written.program, fetch, scope=scope, training=training, return_numpy=False)
            first = {var.name: scope[var.name].clone() for var in written.program.persistables()}  # type: ignore[union-attr]
            if not written.state:
                _ignoring_errors(lambda: step(written.before))
                for each, value in first.items():
                    scope.set(each, value)
            values = step(feed)
        else:
            values = executor.run(written.program, feed, fetch, scope=scope, training=training, return_numpy=False)
    except ol.OarlockError as error:
        return Outcome(error=type(error).__name__, message=str(error.message), op=error.op)
    except Exception as error:
        return Outcome(error=type(error).__name__, message=str(error), ours=False)
    held = {var.name: scope[var.name] for var in written.program.persistables()}
    return Outcome(list(values), {each: value for each, value in held.items() if isinstance(value, torch.Tensor)})  # type: ignore[arg-type]


def _ignoring_errors(function: Callable[[], object]) -> None:
    with contextlib.suppress(ol.OarlockError):
        function()
