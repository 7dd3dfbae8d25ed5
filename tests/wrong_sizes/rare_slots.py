"""Uses of slots that no stated case of their operator fills."""

import torch
from hostile_values.uses import Inputs

from oarlock.registry import standard
from wrong_sizes.blocks import Stated, Write, numbers, shape_of

__all__ = ["RARE"]


def _call(operator: str) -> Write:
    """A call of an operator without variadic slots."""

    def write(inputs: Inputs, attributes: dict[str, object]) -> object:
        return standard.get(operator)(**{slot: items[0] for slot, items in inputs.items()}, **attributes)  # type: ignore[arg-type]

    return write


def _slots(**tensors: torch.Tensor) -> dict[str, list[torch.Tensor]]:
    return {slot: [tensor] for slot, tensor in tensors.items()}


_ATTENTION = _slots(
    query=numbers(2, 3, 4), key=numbers(2, 5, 4), value=numbers(2, 5, 6), y=numbers(2, 3, 6), logsumexp=numbers(2, 2, 3),
    y_gradient=numbers(2, 3, 6), mask=torch.ones(2, 2, 3, 5, dtype=torch.bool), bias=numbers(2, 2, 3, 5),
    logsumexp_gradient=numbers(2, 2, 3), toward_query=numbers(2, 3, 4), toward_key=numbers(2, 5, 4), toward_value=numbers(2, 5, 6),
    toward_bias=numbers(2, 2, 3, 5),
)  # fmt: skip
_NORMALIZED = {
    "x": numbers(2, 3, 4), "mean": numbers(3), "rstd": numbers(3).abs() + 0.5, "uses_batch_statistics": torch.tensor(True),
    "dy": numbers(2, 3, 4), "scale": numbers(3),
}  # fmt: skip


def _narrow(inputs: Inputs, attributes: dict[str, object]) -> object:
    """As many rows as another input has."""
    (x,), (like,) = inputs["x"], inputs["like"]
    return standard.get("narrow")(x=x, like=[like], length=(shape_of(like)[0],))


def _narrow_dx(inputs: Inputs, attributes: dict[str, object]) -> object:
    (shape,), (like,), (dy,) = inputs["x_shape"], inputs["like"], inputs["dy"]
    return standard.gradient_operators["narrow_dx"](x_shape=shape, like=[like], dy=dy, length=(shape_of(like)[0],), axis=0, start=(0,))


def _broadcast(inputs: Inputs, attributes: dict[str, object]) -> object:
    """As many rows as another input has."""
    (x,), (like,) = inputs["x"], inputs["like"]
    return standard.get("broadcast_to")(x=x, like=[like], shape=(shape_of(like)[0], 3))


RARE: list[Stated] = [
    ("narrow", "narrow-like", _slots(x=numbers(5, 3), like=numbers(3)), {}, _narrow),
    ("narrow_dx", "narrow_dx-like", _slots(x_shape=numbers(5, 3), like=numbers(3), dy=numbers(3, 3)), {}, _narrow_dx),
    ("broadcast_to", "broadcast_to-like", _slots(x=numbers(1, 3), like=numbers(3)), {}, _broadcast),
    ("attention_changes", "attention_changes-every-slot", _ATTENTION, {"heads": 2}, _call("attention_changes")),
    ("attention_bias_changes", "attention_bias_changes-every-slot", _ATTENTION, {"heads": 2}, _call("attention_bias_changes")),
    ("sync_batch_norm_grad", "sync_batch_norm_grad-images", _slots(**_NORMALIZED), {}, _call("sync_batch_norm_grad")),
    *((operator, f"{operator}-arrays", _slots(x=numbers(2, 3), y=numbers(2, 3)), {}, _call(operator)) for operator in ("greater", "less")),
]
