"""Catalogues: the operators that a program may use, by name."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from oarlock.errors import DeclarationError, UnknownOperatorError
from oarlock.suggestions import did_you_mean

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator
    from oarlock.registry.fused_operator import FusedBackward

__all__ = ["Catalogue", "standard"]


class Catalogue:
    """Operators by name. Gradient operators are separate, so that a catalogue may omit them, and so are fused ones, which passes create.

    `forward_only()` returns a view for inference-only processes: requesting a gradient operator raises.
    """

    def __init__(self, *, gradients: bool = True):
        self.operators: dict[str, Operator] = {}
        self.gradient_operators: dict[str, Operator] = {}
        self.fused_operators: dict[str, FusedBackward] = {}
        self._gradients = gradients

    @property
    def is_forward_only(self) -> bool:
        """Whether the catalogue was created with `gradients=False`."""
        return not self._gradients

    def __iter__(self) -> "Iterator[Operator]":
        """Iterate over the forward operators, sorted by name."""
        return iter(sorted(self.operators.values(), key=lambda operator: operator.type))

    def add(self, operator: "Operator") -> None:
        """Register `operator`. Raises DeclarationError for a duplicate name."""
        if any(operator.type in known for known in (self.operators, self.gradient_operators, self.fused_operators)):
            raise DeclarationError(f'an operator called "{operator.type}" is already registered')
        kind = self.fused_operators if operator.parts else self.operators if operator.forward is None else self.gradient_operators
        kind[operator.type] = operator  # type: ignore[assignment]

    def find(self, type: str) -> "Operator | None":
        """Return the operator `type`, or None."""
        found = self.operators.get(type)
        return found or (self.gradient_operators.get(type) or self.fused_operators.get(type) if self._gradients else None)

    def get(self, type: str) -> "Operator":
        """Return the operator `type`. Raises UnknownOperatorError with the nearest name."""
        found = self.find(type)
        if found is not None:
            return found
        if type in self.gradient_operators or type in self.fused_operators:
            raise UnknownOperatorError(f'"{type}" is a gradient operator, which is unavailable in an inference-only process', op=type)
        hint = did_you_mean(type, self.operators)
        raise UnknownOperatorError(f'no operator "{type}"' + (f"; {hint}" if hint else ""), op=type)

    def forward_only(self) -> "Catalogue":
        """Return a view of this catalogue without gradient operators. Operators registered later are visible in it."""
        view = Catalogue(gradients=False)
        view.operators = self.operators
        view.gradient_operators = self.gradient_operators
        view.fused_operators = self.fused_operators
        return view


standard = Catalogue()
"""The default catalogue of `@operator`."""
