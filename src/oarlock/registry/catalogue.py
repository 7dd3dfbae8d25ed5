"""A catalogue: the operators that a program may use, by name."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from oarlock.errors import DeclarationError, UnknownOperatorError
from oarlock.suggestions import did_you_mean

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator
    from oarlock.registry.fused_operator import FusedBackward

__all__ = ["Catalogue", "standard"]


class Catalogue:
    """Operators by name; gradient operators apart, so that a catalogue without them can be had, and fused ones, which passes form.

    `forward_only()` is what an inference-only process uses: asking it for a gradient operator raises.
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
        """The forward operators, by name."""
        return iter(sorted(self.operators.values(), key=lambda operator: operator.type))

    def add(self, operator: "Operator") -> None:
        """Register `operator`. Raises DeclarationError where its name is taken."""
        if any(operator.type in known for known in (self.operators, self.gradient_operators, self.fused_operators)):
            raise DeclarationError(f'an operator called "{operator.type}" is registered already')
        kind = self.fused_operators if operator.parts else self.operators if operator.forward is None else self.gradient_operators
        kind[operator.type] = operator  # type: ignore[assignment]

    def find(self, type: str) -> "Operator | None":
        """The operator called `type`, None where there is none."""
        found = self.operators.get(type)
        return found or (self.gradient_operators.get(type) or self.fused_operators.get(type) if self._gradients else None)

    def get(self, type: str) -> "Operator":
        """The operator called `type`. Raises UnknownOperatorError, with the nearest name."""
        found = self.find(type)
        if found is not None:
            return found
        if type in self.gradient_operators or type in self.fused_operators:
            raise UnknownOperatorError(f'"{type}" is a gradient operator; this process only infers', op=type)
        hint = did_you_mean(type, self.operators)
        raise UnknownOperatorError(f'no operator "{type}"' + (f"; {hint}" if hint else ""), op=type)

    def forward_only(self) -> "Catalogue":
        """A view of this catalogue without gradient operators; what is registered later is seen too."""
        view = Catalogue(gradients=False)
        view.operators = self.operators
        view.gradient_operators = self.gradient_operators
        view.fused_operators = self.fused_operators
        return view


standard = Catalogue()
"""Where `@operator` registers."""
