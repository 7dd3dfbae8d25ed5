"""Where gradients of compositions differ from PyTorch's: by the kind of value (`oarlock.registry.declaration.EDGES`), with the reason.

The page of each composition prints its reasons, as the page of an operator prints those of `declare_edges`.
"""

__all__ = ["COMPOSITION_EDGES"]

_CLAMPED = "the target's gradient has the logarithms of `log_loss`, no less than -100; PyTorch's has the whole logarithms"
_MARGIN = "a margin of NaN counts as exceeded; PyTorch's kernel takes it for kept"
_PLACE = "0; PyTorch's goes to the place of the NaN"
_PRODUCTS = "the product of the others; PyTorch divides the product by the element, which is NaN"
_NOT_UNIQUE = "singular vectors of equal values are not unique: the gradient may be huge, infinite or NaN, here and in PyTorch"
_REFUSED = "raises KernelError where an operator that it is composed of does; PyTorch's is NaN or infinite"
_ZEROS = "each part for itself, and one that is infinite or NaN reaches the others as 0 times it, which is NaN"

COMPOSITION_EDGES: dict[str, dict[str, str]] = {
    "binary_cross_entropy": {"zero": _CLAMPED, "one": _CLAMPED, "denormal": _CLAMPED},
    "binary_cross_entropy_with_logits": {
        "infinite": "NaN where infinite terms of the target's or the logit's gradient cancel; PyTorch's may be finite"
    },
    "cholesky_solve": {"refused": _REFUSED},
    "cross_entropy": {"infinite": _ZEROS, "denormal": "weights of classes that are denormal are divided by before they are multiplied"},
    "gaussian_nll_loss": {"infinite": _ZEROS},
    "hardshrink": {"nan": "dy; PyTorch's is 0"},
    "kl_div": {"zero": "finite for a target of 0, as the limit of the loss; PyTorch's is NaN", "infinite": _ZEROS},
    "ldexp": {"infinite": "the exponent's gradient is infinite, as the result is; PyTorch's is NaN"},
    "lp_pool": {
        "denormal": "the root of a sum that underflows to 0 has the gradient 0; PyTorch's is NaN",
        "zero": "0 in a window of zeros; PyTorch's is NaN where another window has the element too",
        "infinite": _ZEROS,
    },
    "lstsq": {"refused": _REFUSED},
    "matrix_norm": {"refused": _REFUSED, "equal": _NOT_UNIQUE},
    "multi_margin_loss": {"infinite": _MARGIN, "nan": _MARGIN},
    "multilabel_margin_loss": {"infinite": _MARGIN, "nan": _MARGIN},
    "nanmean": {"nan": "0 where all elements are NaN; PyTorch's is NaN"},
    "nanquantile": {"nan": _PLACE},
    "nuclear_norm": {"refused": _REFUSED, "equal": _NOT_UNIQUE},
    "prelu": {
        "infinite": "an infinite input or slope is multiplied by 0 where it does not count, which is NaN; PyTorch's kernel leaves it out",
        "nan": "NaN also for slopes of elements above 0; PyTorch's kernel leaves them out",
    },
    "quantile": {"nan": _PLACE},
    "scatter_reduce": {
        "equal": "without include_self, elements of x do not share the gradient of equal ones; PyTorch counts them",
        "infinite": _PRODUCTS,
        "nan": _PRODUCTS,
    },
    "soft_margin_loss": {"infinite": "the slope is 0 or 1 there; PyTorch divides infinity by infinity, which is NaN"},
    "softshrink": {"nan": "dy; PyTorch's is 0"},
    "solve": {"infinite": "one infinity makes all of a solution NaN; PyTorch solves row by row", "refused": _REFUSED},
    "solve_triangular": {"refused": _REFUSED},
    "svdvals": {"refused": _REFUSED, "equal": _NOT_UNIQUE},
    "vector_norm": {
        "infinite": "of order 0.5, NaN where infinities meet; PyTorch's may be 0",
        "nan": "NaN for an infinite order; PyTorch's is 0",
    },
}
