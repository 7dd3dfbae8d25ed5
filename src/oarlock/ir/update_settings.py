"""UpdateSettings: per-parameter optimizer settings, recorded in the program."""

import math
import sys
from dataclasses import dataclass, fields

from oarlock.errors import ArgumentError
from oarlock.ir.location import here

__all__ = ["AS_OTHERS", "UpdateSettings"]

_ABOVE_ZERO = ("clip_value", "clip_norm")


@dataclass(frozen=True)
class UpdateSettings:
    """The optimizer settings of one parameter, which override or extend those of its optimizer.

    The gradient is clipped first: each element to at most `clip_value`, then its norm to `clip_norm`; the optimizer's own clipping follows.
    Then ``l1 sign(w) + l2 w`` is added, the gradient of the penalty ``l1 sum |w| + l2 / 2 sum w**2``. The learning rate is multiplied by
    `rate_factor`. `weight_decay` replaces that of the optimizer, in the same manner; None keeps it, 0.0 turns it off. Numbers must be
    finite and >= 0, clipping limits > 0. Raises ArgumentError otherwise.
    """

    rate_factor: float = 1.0
    weight_decay: float | None = None
    l1: float = 0.0
    l2: float = 0.0
    clip_value: float | None = None
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.default is None:
                continue
            number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
            if not 0 <= number <= sys.float_info.max or (field.name in _ABOVE_ZERO and not number):
                least = "> 0" if field.name in _ABOVE_ZERO else ">= 0"
                raise ArgumentError(f"update settings: {field.name} must be a finite number {least}, not {value!r:.60}", location=here())
            object.__setattr__(self, field.name, float(number))

    @property
    def stated(self) -> dict[str, float]:
        """The settings that differ from their defaults, by name."""
        found = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, default) in found.items() if value != default}


AS_OTHERS = UpdateSettings()
"""The default settings: the parameter is updated like all others."""
