"""The mutators of a program's message, by name."""

import fuzz.contents
import fuzz.definitions  # noqa: F401  each file adds its own
from fuzz.choosing import MUTATORS

__all__ = ["MUTATORS"]
