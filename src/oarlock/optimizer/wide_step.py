"""Updates of parameters in half precision, computed in float32: in float16, an epsilon of 1e-8 is 0, and 0 / 0 is NaN."""

from collections.abc import Callable
from dataclasses import dataclass, field

from oarlock.ir.dtype import DType
from oarlock.ir.size import Shape
from oarlock.ir.var import Var
from oarlock.op.dtype_conversion import cast
from oarlock.optimizer.step import Step

__all__ = ["WideStep", "is_half"]


def is_half(var: Var) -> bool:
    """Return whether a variable is float16 or bfloat16."""
    return var.dtype in (DType.FLOAT16, DType.BFLOAT16)


@dataclass(frozen=True, kw_only=True)
class WideStep(Step):
    """The step `narrow` of a parameter in half precision, computed in float32; commits are rounded to the stored dtype."""

    narrow: Step
    kept: dict[Var, Var] = field(default_factory=dict)
    """The parameter and its states as stored, by their float32 copies."""

    @classmethod
    def of(cls, step: Step) -> "WideStep":
        """Return `step` in float32."""
        return cls(
            main=step.main,
            learning_rate=step.learning_rate,
            count=step.count,
            weight_decay=step.weight_decay,
            written=step.written,
            shared=step.shared,
            narrow=step,
        )

    def widened(self, var: Var) -> Var:
        """Return a parameter, its gradient or its state in float32, if it is in half precision."""
        if not is_half(var):
            return var
        wide = cast(var, dtype=DType.FLOAT32)
        self.kept[wide] = var
        return wide

    def state(self, parameter: Var, suffix: str, *, initial: float = 0.0, shape: Shape | None = None, dtype: DType | None = None) -> Var:
        kept = self.kept.get(parameter, parameter)
        return self.widened(self.narrow.state(kept, suffix, initial=initial, shape=shape, dtype=dtype))

    def commit(self, var: Var, value: Var) -> None:
        kept = self.kept.get(var, var)
        self.narrow.commit(kept, value if value.dtype is kept.dtype else cast(value, dtype=kept.dtype))

    def shared_state(self, name: str, initial: float, following: Callable[[Var], Var]) -> Var:
        return self.narrow.shared_state(name, initial, following)
