"""`settings`: what a script may be told from outside, with a type and a first value each."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from oarlock.training.invocation import current_invocation
from oarlock.training.setting_types import declared_by

__all__ = ["settings"]

Settings = TypeVar("Settings")


def settings(defaults: Settings) -> Settings:
    """The settings of a script: `defaults`, with what a command gives instead.

        settings = ol.settings({"hidden": 32, "train": {"lr": 1e-3, "epochs": 20}})

    `oarlock train script.py --config train.toml --set train.lr=3e-4` gives them by their names, from a file of TOML and one by one; where
    Python runs the script it has the defaults. `defaults` are a dict or an instance of a dataclass, and may hold others. What is returned
    is alike, with values of the same types: those that a dataclass declares, or those of the values in a dict. A run in a folder keeps
    them, and `oarlock resume` goes on with them. A script declares its settings once, before it trains.

    Raises ArgumentError for a setting that is given and not declared, and for a value of another type.
    """
    return _with(defaults, current_invocation().declare(declared_by(defaults)))


def _with(defaults: Any, values: Mapping[str, object], above: str = "") -> Any:
    """A copy of `defaults` with the values."""
    is_dict = isinstance(defaults, Mapping)
    names = list(defaults) if is_dict else [field.name for field in dataclasses.fields(defaults) if field.init]
    found = {}
    for name in names:
        value = defaults[name] if is_dict else getattr(defaults, name)
        dotted = f"{above}{name}"
        found[name] = values[dotted] if dotted in values else _with(value, values, f"{dotted}.")
    return found if is_dict else dataclasses.replace(defaults, **found)
