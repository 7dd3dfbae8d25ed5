"""`operator` for the operators of this folder: the public decorator, with ``trusted=True``."""

from functools import partial

from oarlock.registry.decorator import operator as declare

__all__ = ["operator"]

operator = partial(declare, trusted=True)
"""The decorator `oarlock.registry.operator` for kernels that keep the promises of `trusted`; tests check them."""
