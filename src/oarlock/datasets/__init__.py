"""Data that examples and tests train on. Each is a dict of arrays with the rows first."""

from oarlock.datasets import digits, mnist
from oarlock.datasets.by_name import load
from oarlock.registry.checked_call import publish

__all__ = ["digits", "load", "mnist"]

publish(__name__)
