"""Differences of compositions' gradients from PyTorch's, by kind of value (`oarlock.registry.declaration.EDGES`), with reasons.

The page of each composition prints its reasons, as the page of an operator prints those of `declare_edges`.
"""

__all__ = ["COMPOSITION_EDGES"]

_CLAMPED = "the target's gradient has the logarithms of `log_loss`, at least -100; PyTorch's has no such bound"
_MARGIN = "a margin of NaN counts as violated; PyTorch's kernel counts it as satisfied"
_PLACE = "0; PyTorch's goes to the position of the NaN"
_PRODUCTS = "the product of the others; PyTorch divides the product by the element, which gives NaN"
_NOT_UNIQUE = "singular vectors of equal values are not unique: the gradient may be huge, infinite or NaN, here and in PyTorch"
_REFUSED = "raises KernelError if one of its operators does; PyTorch's is NaN or infinite"
_ZEROS = "parts are computed separately: an infinite or NaN part reaches the others as 0 times it, which is NaN"

COMPOSITION_EDGES: dict[str, dict[str, str]] = {
    "binary_cross_entropy": {"zero": _CLAMPED, "one": _CLAMPED, "denormal": _CLAMPED},
    "binary_cross_entropy_with_logits": {
        "infinite": "NaN if infinite terms of the target's or the logit's gradient cancel; PyTorch's may be finite"
    },
    "cholesky_solve": {"refused": _REFUSED},
    "cross_entropy": {"infinite": _ZEROS, "denormal": "a division by denormal class weights comes before the product with them"},
    "gaussian_nll_loss": {"infinite": _ZEROS},
    "hardshrink": {"nan": "dy; PyTorch's is 0"},
    "kl_div": {"zero": "finite for a target of 0, as the limit of the loss; PyTorch's is NaN", "infinite": _ZEROS},
    "ldexp": {"infinite": "the exponent's gradient is infinite, like the result; PyTorch's is NaN"},
    "lp_pool": {
        "denormal": "the root of a sum that underflows to 0 has the gradient 0; PyTorch's is NaN",
        "zero": "0 in a window of zeros; PyTorch's is NaN if another window has the element, too",
        "infinite": _ZEROS,
    },
    "lstsq": {"refused": _REFUSED},
    "matrix_norm": {"refused": _REFUSED, "equal": _NOT_UNIQUE},
    "multi_margin_loss": {"infinite": _MARGIN, "nan": _MARGIN},
    "multilabel_margin_loss": {"infinite": _MARGIN, "nan": _MARGIN},
    "nanmean": {"nan": "0 if all elements are NaN; PyTorch's is NaN"},
    "nanquantile": {"nan": _PLACE},
    "nuclear_norm": {"refused": _REFUSED, "equal": _NOT_UNIQUE},
    "prelu": {
        "infinite": "an unused infinite input or slope is multiplied by 0, which is NaN; PyTorch's kernel leaves it out",
        "nan": "NaN also for slopes of elements above 0; PyTorch's kernel leaves them out",
    },
    "quantile": {"nan": _PLACE},
    "scatter_reduce": {
        "equal": "without include_self, elements of x do not share the gradient of ties; PyTorch counts them",
        "infinite": _PRODUCTS,
        "nan": _PRODUCTS,
    },
    "soft_margin_loss": {"infinite": "the slope is 0 or 1; PyTorch divides infinity by infinity, which is NaN"},
    "softshrink": {"nan": "dy; PyTorch's is 0"},
    "solve": {"infinite": "one infinity makes all of a solution NaN; PyTorch solves row by row", "refused": _REFUSED},
    "solve_triangular": {"refused": _REFUSED},
    "svdvals": {"refused": _REFUSED, "equal": _NOT_UNIQUE},
    "vector_norm": {
        "infinite": "for order 0.5, NaN if infinities meet; PyTorch's may be 0",
        "nan": "NaN for an infinite order; PyTorch's is 0",
    },
}
