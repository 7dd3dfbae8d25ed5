"""Small models of `torch.nn`: a GRU, attention, the two halves of DCGAN, a perceptron, LeNet."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

__all__ = ["CLASSICS", "Classic"]


@dataclass(frozen=True)
class Classic:
    """A model's constructor, its two sizes, and its inputs for a size and a batch."""

    build: Callable[[], nn.Module]
    sizes: tuple[Any, Any]
    inputs: Callable[[Any, int, torch.Generator], dict[str, torch.Tensor]]


class SelfAttention(nn.Module):
    """`torch.nn.MultiheadAttention` of a sequence with itself; positions after the end of a row are masked."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: torch.Tensor, after_end: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.attention(x, x, x, key_padding_mask=after_end)


def _generator() -> nn.Module:
    return nn.Sequential(
        nn.ConvTranspose2d(12, 32, 4, 1, 0, bias=False), nn.BatchNorm2d(32), nn.ReLU(True),
        nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
        nn.ConvTranspose2d(16, 3, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip


def _discriminator() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(8, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(16, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
    )  # fmt: skip


def _lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AdaptiveAvgPool2d(5), nn.Flatten(),
        nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10),
    )  # fmt: skip


def _after_end(length: int, batch: int) -> torch.Tensor:
    mask = torch.zeros(batch, length, dtype=torch.bool)
    mask[-1, -2:] = True
    return mask


CLASSICS = {
    "gru": Classic(
        lambda: nn.GRU(8, 16, num_layers=2, bidirectional=True, batch_first=True),
        (5, 7),
        lambda size, batch, generator: {"input": torch.randn(batch, size, 8, generator=generator)},
    ),
    "mha": Classic(
        SelfAttention,
        (5, 7),
        lambda size, batch, generator: {"x": torch.randn(batch, size, 16, generator=generator), "after_end": _after_end(size, batch)},
    ),
    "dcgan-g": Classic(
        _generator, (1, 2), lambda size, batch, generator: {"input": torch.randn(batch, 12, size, size, generator=generator)}
    ),
    "dcgan-d": Classic(
        _discriminator, (16, 24), lambda size, batch, generator: {"input": torch.randn(batch, 3, size, size, generator=generator)}
    ),
    "mlp": Classic(
        lambda: nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4)),
        (1, 2),
        lambda size, batch, generator: {"input": torch.randn(batch, *([3] * (size - 1)), 6, generator=generator)},
    ),
    "lenet": Classic(_lenet, (28, 36), lambda size, batch, generator: {"input": torch.randn(batch, 1, size, size, generator=generator)}),
}
