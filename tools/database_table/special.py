"""Special functions."""

from oarlock import op

__all__ = ["CALLS"]

CALLS = {
    "digamma": op.digamma,
    "erfc": op.erfc,
    "erfinv": op.erfinv,
    "i0": op.i0,
    "lgamma": op.lgamma,
    "special.bessel_j0": op.bessel_j0,
    "special.bessel_j1": op.bessel_j1,
    "special.bessel_y0": op.bessel_y0,
    "special.bessel_y1": op.bessel_y1,
    "special.modified_bessel_i0": op.i0,
    "special.modified_bessel_i1": op.i1,
    "special.modified_bessel_k0": op.k0,
    "special.modified_bessel_k1": op.k1,
    "special.scaled_modified_bessel_k0": op.k0e,
    "special.scaled_modified_bessel_k1": op.k1e,
    "special.entr": op.entr,
    "special.erfcx": op.erfcx,
    "special.i0e": op.i0e,
    "special.i1": op.i1,
    "special.i1e": op.i1e,
    "special.log_ndtr": op.log_ndtr,
    "special.ndtr": op.ndtr,
    "special.ndtri": op.ndtri,
    "special.polygamma.special_polygamma_n_0": lambda x, n: op.polygamma(x, order=n),
    "special.xlog1py": op.xlog1py,
    "xlogy": op.xlogy,
    **{f"mvlgamma.mvlgamma_p_{p}": lambda x, p: op.multigammaln(x, dimensions=p) for p in (1, 3, 5)},
    **{f"polygamma.polygamma_n_{n}": lambda x, n: op.polygamma(x, order=n) for n in range(5)},
}
