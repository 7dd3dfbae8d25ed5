"""Program -> Program, one idea per file."""

from oarlock.passes.backward import append_backward, gradients
from oarlock.passes.pruning import prune

__all__ = ["append_backward", "gradients", "prune"]
