"""Data that examples and tests train on. Each is a dict of arrays with the rows first."""

from oarlock.datasets import digits, mnist
from oarlock.datasets.by_name import load
from oarlock.suggestions import no_attribute

__all__ = ["digits", "load", "mnist"]


def __getattr__(name: str) -> object:
    raise no_attribute(__name__, name, __all__)
