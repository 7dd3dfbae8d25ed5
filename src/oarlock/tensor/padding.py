"""Padding and cropping of axes, with constants or with elements of the axis."""

from collections.abc import Iterator, Sequence

import torch

__all__ = ["PAD_MODES", "padded_by_places", "padded_with_value", "require_room", "summed_at_places"]

PAD_MODES = ("constant", "reflect", "replicate", "circular")


def require_room(shape: Sequence[object], before: Sequence[int], after: Sequence[int], mode: str) -> None:
    """Raise ValueError if an axis is known to lose more elements than it has, or to have none to pad with. Kernels call this, too."""
    for length, start, stop in zip(shape[len(shape) - len(before) :], before, after, strict=True):
        if isinstance(length, int):
            if max(-start, 0) + max(-stop, 0) > length:
                raise ValueError(f"an axis of size {length} cannot lose {max(-start, 0)} elements before and {max(-stop, 0)} after")
            left = length + min(start, 0) + min(stop, 0)
            if mode != "constant" and not left and max(start, stop) > 0:
                raise ValueError(f"an axis of size {length} has no element left to pad with")


def padded_with_value(x: torch.Tensor, before: Sequence[int], after: Sequence[int], value: float) -> torch.Tensor:
    """Pad the last axes of ``x`` with a constant. Returns a new tensor."""
    ends = [number for pair in zip(reversed(before), reversed(after), strict=True) for number in pair]
    return torch.constant_pad_nd(x, ends, value if x.is_floating_point() or x.is_complex() else int(value))


def padded_by_places(x: torch.Tensor, before: Sequence[int], after: Sequence[int], mode: str) -> torch.Tensor:
    """Pad the last axes of ``x`` with its own elements."""
    y = x
    for axis, places in _places(x.shape, before, after, mode, x.device):
        y = y.index_select(axis, places)
    return y


def summed_at_places(dy: torch.Tensor, shape: Sequence[int], before: Sequence[int], after: Sequence[int], mode: str) -> torch.Tensor:
    """Return the transpose of `padded_by_places`: each element of `shape` gets the sum over its copies."""
    dx = dy
    for axis, places in _places(shape, before, after, mode, dy.device):
        dx = dx.new_zeros(*dx.shape[:axis], shape[axis], *dx.shape[axis + 1 :]).index_add_(axis, places, dx)
    return dx


def _places(
    shape: Sequence[int], before: Sequence[int], after: Sequence[int], mode: str, device: torch.device
) -> Iterator[tuple[int, torch.Tensor]]:
    """Iterate over padded axes and the source positions of their elements, all valid."""
    first = len(shape) - len(before)
    for axis, (start, stop) in enumerate(zip(before, after, strict=True), first):
        length = shape[axis]
        places = torch.arange(-start, length + stop, device=device)
        if mode == "replicate":
            places = places.clamp_(0, max(0, length - 1))
        elif mode == "circular":  # the ring consists of the remaining elements
            cut, left = max(0, -start), length + min(start, 0) + min(stop, 0)
            places = (places - cut).remainder_(max(1, left)) + cut
        else:
            turn = max(1, 2 * (length - 1))
            places = places.remainder_(turn)
            places = torch.minimum(places, turn - places) if length > 1 else places.zero_()
        yield axis, places
