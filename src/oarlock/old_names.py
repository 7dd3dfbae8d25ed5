"""Names of earlier versions and what they are now: of passes, and of functions. They work for one version, with a warning."""

import warnings
from collections.abc import Mapping

__all__ = ["OLD_PASSES", "renamed"]

OLD_PASSES = {
    "simplify": "canonicalize",
    "fold": "constant_folding",
    "share": "cse",
    "hoist": "licm",
    "scalarize": "splat_propagation",
    "lift": "batch_prologue",
    "sink": "batch_epilogue",
    "rotate": "loop_retiming",
    "exchange": "commute_gather_matmul",
    "fuse": "fuse_sums",
    "accumulate": "fuse_updates",
    "join": "multi_output_fusion",
    "transpose": "hoist_transposes",
    "group": "multi_tensor_updates",
}


def renamed(kind: str, name: str, names: Mapping[str, str], *, stacklevel: int) -> str:
    """What is called `name` now, by the table `names`; itself where it is not an old name. An old one warns, with both."""
    if name not in names:
        return name
    warnings.warn(f'the {kind} "{name}" is called "{names[name]}" now', DeprecationWarning, stacklevel=stacklevel + 1)
    return names[name]
