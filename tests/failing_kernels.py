"""A kernel of ours that fails when a test wants it to."""

from collections.abc import Callable

import pytest
import torch

from oarlock.backend.torch.variants import variants_of
from oarlock.registry import standard

__all__ = ["fail_at_tanh"]


def fail_at_tanh(monkeypatch: pytest.MonkeyPatch, fails: Callable[[], bool]) -> None:
    """Let `tanh`, which has its kernel alone now, raise ValueError while it `fails`, but where it is recorded without values."""
    operator = standard.get("tanh")
    kernel = operator.kernel

    def failing(x):
        if fails() and not isinstance(x, torch._subclasses.FakeTensor):
            raise ValueError("no such value")
        return kernel(x)

    monkeypatch.setattr(operator, "kernel", failing)
    monkeypatch.setattr(variants_of(operator), "in_place", {})
    monkeypatch.setattr(variants_of(operator), "expressions", {})
