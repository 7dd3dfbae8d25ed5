"""The gradients of running products, ``y[k] = x[0] ... x[k]`` along an axis, without a division: an element may be 0."""

import torch

__all__ = ["product_slopes", "product_tangent", "slopes_tangent"]


class _Steps:
    """Inputs and outputs of running products, as steps from the first on, whichever end that is; `exclusive` ones give a step later."""

    def __init__(self, axis: int, exclusive: bool, reverse: bool):
        self.axis = axis
        self.exclusive = exclusive
        self.reverse = reverse

    def read(self, x: torch.Tensor) -> list[torch.Tensor]:
        """The steps of what lies as the elements do."""
        steps = list(x.unbind(self.axis))
        return steps[::-1] if self.reverse else steps

    def read_given(self, y: torch.Tensor) -> list[torch.Tensor]:
        """The steps of what lies as the products do, each beside the last element of its product."""
        steps = self.read(y)
        return [*steps[1:], torch.zeros_like(steps[0])] if self.exclusive and steps else steps

    def write(self, steps: list[torch.Tensor], like: torch.Tensor) -> torch.Tensor:
        """The tensor of such steps that lies as the elements do."""
        return torch.stack(steps[::-1] if self.reverse else steps, self.axis) if steps else torch.empty_like(like)

    def write_given(self, steps: list[torch.Tensor], first: float, like: torch.Tensor) -> torch.Tensor:
        """The tensor of such steps that lies as the products do; the `first` of exclusive ones is of no element."""
        later = [torch.full_like(steps[0], first), *steps[:-1]] if self.exclusive and steps else steps
        return self.write(later, like)


def _before(x: list[torch.Tensor]) -> list[torch.Tensor]:
    """The product of all before each step."""
    found = [torch.ones_like(step) for step in x[:1]]
    for step in x[:-1]:
        found.append(found[-1] * step)
    return found


def _behind(x: list[torch.Tensor], dy: list[torch.Tensor]) -> list[torch.Tensor]:
    """The gradient of the product before each step's element: ``s[j] = dy[j] + x[j + 1] s[j + 1]``, from the last on."""
    found = list(dy[-1:])
    for factor, step in zip(x[:0:-1], dy[-2::-1], strict=True):
        found.append(step + factor * found[-1])
    return found[::-1]


def _change(x: list[torch.Tensor], dx: list[torch.Tensor], before: list[torch.Tensor]) -> list[torch.Tensor]:
    """How the products up to each step change where the elements change by `dx`."""
    found: list[torch.Tensor] = []
    for step, change, product in zip(x, dx, before, strict=True):
        found.append(product * change + (found[-1] * step if found else 0.0))
    return found


def product_slopes(x, dy, axis: int, exclusive: bool, reverse: bool):
    """The gradient of the running product: ``dx[j] = (x[0] ... x[j - 1]) s[j]``."""
    steps = _Steps(axis, exclusive, reverse)
    elements = steps.read(x)
    pairs = zip(_before(elements), _behind(elements, steps.read_given(dy)), strict=True)
    return steps.write([before * behind for before, behind in pairs], x)


def product_tangent(x, change, axis: int, exclusive: bool, reverse: bool):
    """How the running product changes where x changes: the transpose of the map from `dy` to its gradient."""
    steps = _Steps(axis, exclusive, reverse)
    elements = steps.read(x)
    return steps.write_given(_change(elements, steps.read(change), _before(elements)), 0.0, x)


def slopes_tangent(x, dy, change, axis: int, exclusive: bool, reverse: bool):
    """How the gradient changes where x changes, which is the gradient of the gradient: a second derivative is symmetric."""
    steps = _Steps(axis, exclusive, reverse)
    elements, changes = steps.read(x), steps.read(change)
    before, behind = _before(elements), _behind(elements, steps.read_given(dy))
    moved_before = [torch.zeros_like(step) for step in elements[:1]] + _change(elements, changes, before)[:-1]
    moved_behind = [torch.zeros_like(step) for step in elements[:1]]
    for number in range(len(elements) - 1, 0, -1):
        moved_behind.append(changes[number] * behind[number] + elements[number] * moved_behind[-1])
    parts = zip(before, behind, moved_before, moved_behind[::-1], strict=True)
    return steps.write([moved * tail + head * turned for head, tail, moved, turned in parts], x)
