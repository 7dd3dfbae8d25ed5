"""`operator` for the operators of this folder: as anyone declares one, and trusted."""

from functools import partial

from oarlock.registry.declaration import operator as declare

__all__ = ["operator"]

operator = partial(declare, trusted=True)
"""What `oarlock.registry.operator` is; the kernels of this folder keep what `trusted` promises, which tests look at."""
