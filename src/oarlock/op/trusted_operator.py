"""`operator` for the operators of this folder: as anyone declares one, and trusted."""

from functools import partial

from oarlock.registry.decorator import operator as declare

__all__ = ["operator"]

operator = partial(declare, trusted=True)
"""The decorator `oarlock.registry.operator`; the kernels of this folder keep the promises of `trusted`, which tests check."""
