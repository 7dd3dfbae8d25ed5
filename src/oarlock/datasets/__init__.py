"""Data that examples and tests train on. Each is a dict of arrays with the rows first."""

from oarlock.datasets import digits, mnist
from oarlock.datasets.loading import load

__all__ = ["digits", "load", "mnist"]
