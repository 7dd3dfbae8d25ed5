"""UpdateSettings: what is particular to one parameter when an optimizer updates it, as data of the program."""

import math
import sys
from dataclasses import dataclass, fields

from oarlock.errors import ArgumentError
from oarlock.ir.location import here

__all__ = ["AS_OTHERS", "UpdateSettings"]

_ABOVE_ZERO = ("clip_value", "clip_norm")


@dataclass(frozen=True)
class UpdateSettings:
    """The settings of one parameter, in place of those that its optimizer has for all, or beside them.

    The gradient is clipped first, each element to `clip_value` at most, then as a whole to the norm `clip_norm`; the clipping of the
    optimizer follows. Then ``l1 sign(w) + l2 w`` is added to it, the slope of the penalty ``l1 sum |w| + l2 / 2 sum w**2``. The learning
    rate is the optimizer's times `rate_factor`. `weight_decay` stands in place of the optimizer's, and works as that does; None leaves the
    optimizer's, 0.0 turns it off. Numbers are finite and not below 0; those that clip are above it. Raises ArgumentError for others.
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
                least = "above 0" if field.name in _ABOVE_ZERO else "not below 0"
                raise ArgumentError(f"update settings: {field.name} is a finite number {least}, not {value!r:.60}", location=here())
            object.__setattr__(self, field.name, float(number))

    @property
    def stated(self) -> dict[str, float]:
        """The settings that say something, by name."""
        found = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, default) in found.items() if value != default}


AS_OTHERS = UpdateSettings()
"""The settings that mean nothing: the parameter is updated as the optimizer updates all."""
