"""Conversion of settings and labels for loggers."""

from collections.abc import Mapping

__all__ = ["flat", "new_to"]


def flat(settings: Mapping[str, object], *, before: str = "") -> dict[str, object]:
    """Return nested settings by dotted paths, such as `training.batch_size`."""
    found: dict[str, object] = {}
    for name, value in settings.items():
        found |= flat(value, before=f"{before}{name}.") if isinstance(value, Mapping) else {f"{before}{name}": value}
    return found


def new_to(held: Mapping[str, int], step: int, values: Mapping[str, float]) -> dict[str, float]:
    """Return the `values` that are newer than the last logged steps `held`, by label."""
    return {label: value for label, value in values.items() if held.get(label, -1) < step} if held else dict(values)
