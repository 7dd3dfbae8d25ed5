"""Updates of complex parameters, computed on their real and imaginary parts, as in PyTorch."""

from collections.abc import Callable
from dataclasses import dataclass, field

from oarlock.ir.dtype import DType
from oarlock.ir.size import Shape
from oarlock.ir.var import Var
from oarlock.op.complex_parts import view_as_complex, view_as_real
from oarlock.optimizer.step import Step

__all__ = ["PartStep"]


@dataclass(frozen=True, kw_only=True)
class PartStep(Step):
    """The step `whole` of a complex parameter, in real and imaginary parts; commits combine them.

    State of the parameter is stored as parts, in a last axis of 2.
    """

    whole: Step
    kept: dict[Var, Var] = field(default_factory=dict)
    """The parameter, by its parts."""

    @classmethod
    def of(cls, step: Step) -> "PartStep":
        """Return `step` on real and imaginary parts."""
        return cls(
            main=step.main,
            learning_rate=step.learning_rate,
            count=step.count,
            weight_decay=step.weight_decay,
            written=step.written,
            shared=step.shared,
            whole=step,
        )

    def parts(self, var: Var) -> Var:
        """Return the parts of a complex parameter, or of its gradient."""
        found = view_as_real(var)
        self.kept[found] = var
        return found

    def state(self, parameter: Var, suffix: str, *, initial: float = 0.0, shape: Shape | None = None, dtype: DType | None = None) -> Var:
        kept = self.kept.get(parameter, parameter)
        taken, kind = (parameter.shape if shape is None else shape), (parameter.dtype if dtype is None else dtype)
        return self.whole.state(kept, suffix, initial=initial, shape=taken, dtype=kind)

    def commit(self, var: Var, value: Var) -> None:
        kept = self.kept.get(var)
        self.whole.commit(var if kept is None else kept, value if kept is None else view_as_complex(value))

    def shared_state(self, name: str, initial: float, following: Callable[[Var], Var]) -> Var:
        return self.whole.shared_state(name, initial, following)
