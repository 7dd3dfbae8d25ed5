"""Groups: several optimizers for the parameters of one program."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.block import Block
from oarlock.ir.location import here
from oarlock.ir.var import Var, is_among
from oarlock.optimizer.clipping import Clip, clipped
from oarlock.optimizer.optimizer import Optimizer
from oarlock.optimizer.row_step import Gradients
from oarlock.optimizer.step import Step
from oarlock.registry.creator import describe_value

__all__ = ["Groups", "Selection"]

Selection: TypeAlias = str | Var | Callable[[Var], bool] | Sequence[str | Var]
"""A selection of parameters: a name pattern such as `"*.b"`, a variable, a sequence of both, or a predicate."""


class Groups(Optimizer):
    """An optimizer that updates each parameter by the first of `groups` that selects it, and the others by `otherwise`.

        optimizer = ol.optimizer.Groups(
            [("*.b", ol.optimizer.SGD(0.1)), (lambda w: w.ndim == 2, ol.optimizer.Muon(0.02))], otherwise=ol.optimizer.AdamW(3e-4)
        )

    Patterns match whole names as for files: `*` is any text, `?` one character. `clip` applies to all gradients together, before the
    clipping of each optimizer. Raises ArgumentError for an invalid pair; when parameters are updated, ProgramError if a parameter is not
    covered by any group, or a group matches no parameter.
    """

    def __init__(self, groups: Sequence[tuple[Selection, Optimizer]], otherwise: Optimizer | None = None, *, clip: Clip | None = None):
        super().__init__(1.0, clip=clip)
        for group in groups:
            if not isinstance(group, tuple) or len(group) != 2 or not isinstance(group[1], Optimizer):
                raise ArgumentError(
                    f"a group must be a pair (selection, optimizer), not {describe_value(group)}",
                    location=here(),
                    hint='("*.b", ol.optimizer.SGD(0.1))',
                )
        if otherwise is not None and not isinstance(otherwise, Optimizer):
            raise ArgumentError(f"otherwise must be an optimizer, not {describe_value(otherwise)}", location=here())
        self.groups = list(groups)
        self.otherwise = otherwise

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        raise NotImplementedError  # the optimizers of the groups update

    def _require_usable(self, main: Block, parameters: Sequence[Var]) -> None:
        for optimizer, chosen in self._divided(parameters):
            optimizer._require_usable(main, chosen)

    def _append(self, main: Block, pairs: Gradients, cost: Var | None) -> None:
        if self.clip is not None:
            pairs = clipped(self.clip, pairs)
        gradients = dict(pairs)
        for optimizer, chosen in self._divided(list(gradients)):
            optimizer._append(main, [(parameter, gradients[parameter]) for parameter in chosen], cost)

    def _divided(self, parameters: Sequence[Var]) -> list[tuple[Optimizer, list[Var]]]:
        """Return the optimizers with parameters to update, each with its parameters."""
        left = list(parameters)
        divided: list[tuple[Optimizer, list[Var]]] = []
        for selection, optimizer in self.groups:
            chosen = [parameter for parameter in left if _is_in(parameter, selection)]
            if not chosen:
                raise ProgramError(
                    f"the group {_described(selection)} matches no remaining parameter",
                    location=here(),
                    given=[parameter.describe() for parameter in parameters[:8]],
                )
            left = [parameter for parameter in left if not is_among(parameter, chosen)]
            divided.append((optimizer, chosen))
        if left and self.otherwise is None:
            raise ProgramError(
                f'"{left[0].name}" is in no group',
                location=here(),
                given=[parameter.describe() for parameter in left[:8]],
                hint="add otherwise=ol.optimizer.AdamW() for the remaining parameters",
            )
        return [*divided, (self.otherwise, left)] if left and self.otherwise is not None else divided


def _is_in(parameter: Var, selection: Selection) -> bool:
    if isinstance(selection, str):
        return fnmatchcase(parameter.name, selection)
    if isinstance(selection, Var):
        return parameter.name == selection.name  # training works on a copy of the program
    if callable(selection):
        return bool(selection(parameter))
    return any(_is_in(parameter, item) for item in selection)


def _described(selection: Selection) -> str:
    return f'"{selection.name}"' if isinstance(selection, Var) else describe_value(selection)
