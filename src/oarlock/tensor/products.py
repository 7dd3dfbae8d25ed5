"""Long inner products, and the gradients of cumulative products."""

import torch

__all__ = ["dot_by_parts", "product_slopes", "product_tangent", "slopes_tangent"]

# Inner products


_PART = 4096  # elements that each of some tens of SIMD lanes may add sequentially and still round like pairwise summation


def dot_by_parts(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the sum of ``x * y`` over all elements, which must have at least four bytes and be on a CPU."""
    x, y = x.reshape(-1), y.reshape(-1)
    return torch.dot(x, y) if x.numel() < 32 * _PART else _sum_of_parts(x, y)


def _sum_of_parts(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    whole = x.numel() // _PART * _PART
    parts = torch.bmm(x[:whole].view(-1, 1, _PART), y[:whole].view(-1, 1, _PART).mT)  # a column view would be slow in PyTorch
    total = torch.sum(parts)
    return total if whole == x.numel() else total + torch.sum(x[whole:] * y[whole:])


# Cumulative products


class _Steps:
    """Converts tensors to lists of steps in order, and back; exclusive products are shifted by one step."""

    def __init__(self, axis: int, exclusive: bool, reverse: bool):
        self.axis = axis
        self.exclusive = exclusive
        self.reverse = reverse

    def read(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Return the steps of a tensor indexed like the elements."""
        steps = list(x.unbind(self.axis))
        return steps[::-1] if self.reverse else steps

    def read_given(self, y: torch.Tensor) -> list[torch.Tensor]:
        """Return the steps of a tensor indexed like the products, each aligned with the last element of its product."""
        steps = self.read(y)
        return [*steps[1:], torch.zeros_like(steps[0])] if self.exclusive and steps else steps

    def write(self, steps: list[torch.Tensor], like: torch.Tensor) -> torch.Tensor:
        """Return the tensor, indexed like the elements, of a list of steps."""
        return torch.stack(steps[::-1] if self.reverse else steps, self.axis) if steps else torch.empty_like(like)

    def write_given(self, steps: list[torch.Tensor], first: float, like: torch.Tensor) -> torch.Tensor:
        """Return the tensor, indexed like the products, of a list of steps. `first` is the empty product of exclusive ones."""
        later = [torch.full_like(steps[0], first), *steps[:-1]] if self.exclusive and steps else steps
        return self.write(later, like)


def _before(x: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the product of all elements before each step."""
    found = [torch.ones_like(step) for step in x[:1]]
    for step in x[:-1]:
        found.append(found[-1] * step)
    return found


def _behind(x: list[torch.Tensor], dy: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the gradient of the product of earlier elements for each step: ``s[j] = dy[j] + x[j + 1] s[j + 1]``, computed backwards."""
    found = list(dy[-1:])
    for factor, step in zip(x[:0:-1], dy[-2::-1], strict=True):
        found.append(step + factor * found[-1])
    return found[::-1]


def _change(x: list[torch.Tensor], dx: list[torch.Tensor], before: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the change of the products up to each step when the elements change by `dx`."""
    found: list[torch.Tensor] = []
    for step, change, product in zip(x, dx, before, strict=True):
        found.append(product * change + (found[-1] * step if found else 0.0))
    return found


def product_slopes(x, dy, axis: int, exclusive: bool, reverse: bool):
    """Return the gradient of the cumulative product: ``dx[j] = (x[0] ... x[j - 1]) s[j]``."""
    steps = _Steps(axis, exclusive, reverse)
    elements = steps.read(x)
    pairs = zip(_before(elements), _behind(elements, steps.read_given(dy)), strict=True)
    return steps.write([before * behind for before, behind in pairs], x)


def product_tangent(x, change, axis: int, exclusive: bool, reverse: bool):
    """Return the change of the cumulative product when x changes: the transpose of the map from `dy` to its gradient."""
    steps = _Steps(axis, exclusive, reverse)
    elements = steps.read(x)
    return steps.write_given(_change(elements, steps.read(change), _before(elements)), 0.0, x)


def slopes_tangent(x, dy, change, axis: int, exclusive: bool, reverse: bool):
    """Return the change of the gradient when x changes, which equals its gradient, as second derivatives are symmetric."""
    steps = _Steps(axis, exclusive, reverse)
    elements, changes = steps.read(x), steps.read(change)
    before, behind = _before(elements), _behind(elements, steps.read_given(dy))
    moved_before = [torch.zeros_like(step) for step in elements[:1]] + _change(elements, changes, before)[:-1]
    moved_behind = [torch.zeros_like(step) for step in elements[:1]]
    for number in range(len(elements) - 1, 0, -1):
        moved_behind.append(changes[number] * behind[number] + elements[number] * moved_behind[-1])
    parts = zip(before, behind, moved_before, moved_behind[::-1], strict=True)
    return steps.write([moved * tail + head * turned for head, tail, moved, turned in parts], x)
