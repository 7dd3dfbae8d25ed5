"""`settings`: the settings of a script, with types and defaults, that a command can change."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from oarlock.training.invocation import current_invocation
from oarlock.training.setting_types import declared_by

__all__ = ["settings"]

Settings = TypeVar("Settings")


def settings(defaults: Settings) -> Settings:
    """Declare the settings of a script: return `defaults`, with the values given on the command line.

        settings = ol.settings({"hidden": 32, "train": {"lr": 1e-3, "epochs": 20}})

    `oarlock train script.py --config train.toml --set train.lr=3e-4` sets them by name, from a TOML file and individually; if Python runs
    the script directly, the defaults apply. `defaults` is a dict or a dataclass instance, possibly nested. The result has the same
    structure and types: those that a dataclass declares, or those of the values in a dict. A run folder stores the settings, and `oarlock
    resume` uses them again. Call it once in a script, before training.

    Raises ArgumentError for an undeclared setting, and for a value of the wrong type.
    """
    return _with(defaults, current_invocation().declare(declared_by(defaults)))


def _with(defaults: Any, values: Mapping[str, object], above: str = "") -> Any:
    """Return a copy of `defaults` with the values."""
    is_dict = isinstance(defaults, Mapping)
    names = list(defaults) if is_dict else [field.name for field in dataclasses.fields(defaults) if field.init]
    found = {}
    for name in names:
        value = defaults[name] if is_dict else getattr(defaults, name)
        dotted = f"{above}{name}"
        found[name] = values[dotted] if dotted in values else _with(value, values, f"{dotted}.")
    return found if is_dict else dataclasses.replace(defaults, **found)
