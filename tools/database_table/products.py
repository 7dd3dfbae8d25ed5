"""Products of matrices and tensors."""

from oarlock import op

__all__ = ["CALLS"]


def weighted(x, product, beta, alpha):
    """Return ``beta x + alpha product``; a term with factor 0 is not read."""
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else (x if beta == 1 else x * beta) + product


def addition(product):
    """A product with an addend, as in `addmm`."""

    def call(x, y, z, *, beta=1, alpha=1):
        return weighted(x, product(y, z), beta, alpha)

    return call


def linear(x, w, bias=None):
    y = op.matrix_product(x, op.matrix_transpose(w)) if len(w.shape) == 2 else op.matrix_product(x, w)
    return y if bias is None else y + bias


def tensordot(x, y, dims=2):
    return op.tensordot(x, y, axes=dims if isinstance(dims, int) else tuple(tuple(each) for each in dims))


def cross(x, y, dim=None):
    if dim is None:
        dim = next((axis for axis, size in enumerate(x.shape) if size == 3), -1)
    return op.cross(x, y, axis=dim)


def dot(x, y):
    return op.matrix_product(x, y)


def bilinear(x, y, weight, bias=None):
    z = op.einsum("...i,oij,...j->...o", x, weight, y)
    return z if bias is None else z + bias


def chain(x):
    product = x[0]
    for each in x[1:]:
        product = op.matrix_product(product, each)
    return product


CALLS = {
    "cdist": lambda x, y, p=2.0, compute_mode=None: op.cdist(x, y, order=float(p)),
    "linalg.multi_dot": chain,
    "nn.functional.bilinear": bilinear,
    "nn.functional.pdist": lambda x, p=2.0: op.pdist(x, order=float(p)),
    "addbmm": addition(lambda x, y: op.reduce_sum(op.matrix_product(x, y), axis=0)),
    "addr": addition(op.outer),
    "cross": cross,
    "dot": dot,
    "inner": op.inner,
    "kron": op.kron,
    "linalg.cross": lambda x, y, *, dim=-1: op.cross(x, y, axis=dim),
    "linalg.vecdot": lambda x, y, *, dim=-1: op.vecdot(x, y, axis=dim),
    "outer": op.outer,
    "tensordot": tensordot,
    "vdot": lambda x, y: op.vecdot(x, y),
    "__rmatmul__": lambda x, y: op.matrix_product(y, x),
    "addmm": addition(op.matrix_product),
    "addmm.decomposed": addition(op.matrix_product),
    "addmv": addition(op.matrix_product),
    "baddbmm": addition(op.matrix_product),
    "bmm": op.matrix_product,
    "einsum": lambda xs, equation: op.einsum(equation, *xs),
    "matmul": op.matrix_product,
    "mm": op.matrix_product,
    "mv": op.matrix_product,
    "nn.functional.linear": linear,
}
