"""The import rules, one file per family of operators. Importing this package registers them."""

from oarlock.interop.onnx.import_rules import (
    attention,
    control_flow,
    elementwise,
    grids,
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
    "attention",
    "control_flow",
    "elementwise",
    "grids",
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
