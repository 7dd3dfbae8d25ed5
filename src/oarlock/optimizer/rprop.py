"""Rprop."""

from typing import Unpack

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.elementwise import clip
from oarlock.op.magnitude import sign
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_number

__all__ = ["Rprop"]


class Rprop(Optimizer):
    """The Rprop optimizer for full batches: an adaptive step per element, by the sign of the gradient: ``w' = w - sign(dw) s'``.

    ``s'`` is ``s`` times `growth` if the gradient kept its sign, or times `shrinkage` if it changed it, clipped to `least` and `most`.
    After a sign change, the element is not moved, and the next step ignores the sign (Riedmiller and Braun, 1993; Igel and Huesken, 2000,
    algorithm 4, "iRprop-"). `learning_rate`, a number, is only the initial ``s``. Raises ArgumentError for a learning rate that is not a
    number, and for an argument out of range.
    """

    widens_halves = False

    def __init__(
        self,
        learning_rate: float = 0.01,
        *,
        growth: float = 1.2,
        shrinkage: float = 0.5,
        least: float = 1e-6,
        most: float = 50.0,
        **options: Unpack[Options],
    ):
        super().__init__(learning_rate, **options)
        if not isinstance(self.learning_rate, float):
            raise ArgumentError("Rprop: the learning rate must be a number, the size of the first steps", location=here())
        self.growth = require_number("Rprop: growth", growth, above=1.0)
        self.shrinkage = require_number("Rprop: shrinkage", shrinkage, above=0.0, below=1.0)
        self.least = require_number("Rprop: least", least, above=0.0)
        self.most = require_number("Rprop: most", most, least=self.least)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        assert isinstance(self.learning_rate, float)
        previous = step.state(parameter, "PREVIOUS")
        sizes = step.state(parameter, "SIZES", initial=self.learning_rate * parameter.update_settings.rate_factor)
        agreement = sign(gradient * previous)
        zero, one = (constant_like(value, gradient) for value in (0.0, 1.0))
        growth, shrinkage = (constant_like(value, gradient) for value in (self.growth, self.shrinkage))
        factor = where(agreement > zero, growth, where(agreement < zero, shrinkage, one))
        next_sizes = clip(sizes * factor, lower=self.least, upper=self.most)
        kept = where(agreement < zero, zero, gradient)
        step.commit(parameter, parameter - sign(kept) * next_sizes)
        step.commit(previous, kept)
        step.commit(sizes, next_sizes)
