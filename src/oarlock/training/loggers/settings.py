"""Settings and labels, as loggers take them."""

from collections.abc import Mapping

__all__ = ["flat", "new_to"]


def flat(settings: Mapping[str, object], *, before: str = "") -> dict[str, object]:
    """Nested settings by the path of each: `training.batch_size`."""
    found: dict[str, object] = {}
    for name, value in settings.items():
        found |= flat(value, before=f"{before}{name}.") if isinstance(value, Mapping) else {f"{before}{name}": value}
    return found


def new_to(held: Mapping[str, int], step: int, values: Mapping[str, float]) -> dict[str, float]:
    """Those of `values` of which no later step is held, nor this one; `held` tells the last step by label."""
    return {label: value for label, value in values.items() if held.get(label, -1) < step} if held else dict(values)
