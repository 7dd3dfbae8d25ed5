"""The import rules, one file per family of operators. Importing this package registers them."""

from oarlock.interop.onnx.import_rules import (
    control_flow,
    elementwise,
    images,
    indexing,
    losses,
    matrices,
    normalization,
    random_numbers,
    recurrent,
    reductions,
    resizing,
    shapes,
    signals,
    size_folds,
)

__all__ = [
    "control_flow",
    "elementwise",
    "images",
    "indexing",
    "losses",
    "matrices",
    "normalization",
    "random_numbers",
    "recurrent",
    "reductions",
    "resizing",
    "shapes",
    "signals",
    "size_folds",
]
