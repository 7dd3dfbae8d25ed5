"""Updates of complex parameters, computed on real and imaginary parts, and of parameters in half precision, computed in float32."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from oarlock.ir.dtype import DType
from oarlock.ir.size import Shape
from oarlock.ir.var import Var
from oarlock.op.complex_parts import view_as_complex, view_as_real
from oarlock.op.dtype_conversion import cast
from oarlock.optimizer.step import Step

__all__ = ["PartStep", "WideStep", "is_half"]


@dataclass(frozen=True, kw_only=True)
class ConvertedStep(Step):
    """The step `whole` of a parameter, in another representation; commits convert back."""

    whole: Step
    kept: dict[Var, Var] = field(default_factory=dict)
    """The variables as stored, by their converted copies."""

    @classmethod
    def of(cls, step: Step) -> Self:
        """Return `step` in this representation."""
        return cls(
            main=step.main,
            learning_rate=step.learning_rate,
            count=step.count,
            weight_decay=step.weight_decay,
            written=step.written,
            shared=step.shared,
            whole=step,
        )

    def shared_state(self, name: str, initial: float, following: Callable[[Var], Var]) -> Var:
        return self.whole.shared_state(name, initial, following)


@dataclass(frozen=True, kw_only=True)
class PartStep(ConvertedStep):
    """The step `whole` of a complex parameter, in real and imaginary parts, as in PyTorch; commits combine them.

    State of the parameter is stored as parts, in a last axis of 2.
    """

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


def is_half(var: Var) -> bool:
    """Return whether a variable is float16 or bfloat16."""
    return var.dtype in (DType.FLOAT16, DType.BFLOAT16)


@dataclass(frozen=True, kw_only=True)
class WideStep(ConvertedStep):
    """The step `whole` of a parameter in half precision, computed in float32; commits are rounded to the stored dtype.

    In float16, an epsilon of 1e-8 is 0, and 0 / 0 is NaN.
    """

    def widened(self, var: Var) -> Var:
        """Return a parameter, its gradient or its state in float32, if it is in half precision."""
        if not is_half(var):
            return var
        wide = cast(var, dtype=DType.FLOAT32)
        self.kept[wide] = var
        return wide

    def state(self, parameter: Var, suffix: str, *, initial: float = 0.0, shape: Shape | None = None, dtype: DType | None = None) -> Var:
        kept = self.kept.get(parameter, parameter)
        return self.widened(self.whole.state(kept, suffix, initial=initial, shape=shape, dtype=dtype))

    def commit(self, var: Var, value: Var) -> None:
        kept = self.kept.get(var, var)
        self.whole.commit(kept, value if value.dtype is kept.dtype else cast(value, dtype=kept.dtype))
