"""Matrix products, convolution and attention."""

import math

import numpy as np

from oarlock.backend.numpy.elementwise import softmax
from oarlock.backend.numpy.kernels import kernel

__all__: list[str] = []


# Products of matrices


def _rows(x):
    return x.reshape(-1, x.shape[-1]) if x.size else x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1])


@kernel
def linear(x, w, bias=None):
    return x @ w if bias is None else x @ w + bias


@kernel
def linear_dx(w, dout):
    return dout @ w.T


@kernel
def linear_dw(x, dout):
    return _rows(x).T @ _rows(dout)


@kernel
def linear_dbias(dout):
    return _rows(dout).sum(0)


@kernel
def addmm(base, x, w):
    return base + x @ w


@kernel
def addmm_nt(base, w, x):
    return base + x @ w.T


@kernel
def addmm_tn(base, x, dout, *, scale):
    return scale * base + linear_dw(x, dout)


@kernel
def matmul(x, y):
    return x @ y


@kernel
def matmul_dx(y, dz):
    return dz @ np.swapaxes(y, -1, -2)


@kernel
def matmul_dy(x, dz):
    return np.swapaxes(x, -1, -2) @ dz


@kernel
def matrix_transpose(x):
    return np.swapaxes(x, -1, -2)


# Convolution


def _padded(x, padding):
    return np.pad(x, ((0, 0), (0, 0), *((pad, pad) for pad in padding)))


def _windows(padded, size, stride, dilation, groups, **how):
    """Return each window of each channel, by groups of channels: [n g c oh ow kh kw]."""
    extent = [step * (count - 1) + 1 for count, step in zip(size, dilation, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, extent, (2, 3), **how)
    windows = windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    return [windows[:, part] for part in _parts(padded.shape[1], groups)]


def _parts(count, groups):
    """Return the channels, or filters, of each group."""
    return [slice(first, first + count // groups) for first in range(0, count, count // groups)]


@kernel
def conv2d(x, filter, bias=None, *, stride, padding, dilation=(1, 1), groups=1):
    windows = _windows(_padded(x, padding), filter.shape[2:], stride, dilation, groups)
    parts = zip(windows, _parts(len(filter), groups), strict=True)
    y = np.concatenate([np.einsum("nchwij,fcij->nfhw", windows, filter[part]) for windows, part in parts], 1)
    return y if bias is None else y + bias[:, None, None]


@kernel
def conv2d_dfilter(x, dy, filter_shape, *, stride, padding, dilation=(1, 1), groups=1):
    windows = _windows(_padded(x, padding), filter_shape[2:], stride, dilation, groups)
    parts = zip(windows, _parts(dy.shape[1], groups), strict=True)
    return np.concatenate([np.einsum("nchwij,nfhw->fcij", windows, dy[:, part]) for windows, part in parts])


@kernel
def conv2d_dx(filter, dy, x_shape, *, stride, padding, dilation=(1, 1), groups=1):
    n, c, h, w = x_shape
    dx = np.zeros((n, c, h + 2 * padding[0], w + 2 * padding[1]), dy.dtype)
    for windows, part in zip(
        _windows(dx, filter.shape[2:], stride, dilation, groups, writeable=True), _parts(len(filter), groups), strict=True
    ):
        for row, column in np.ndindex(*filter.shape[2:]):
            windows[..., row, column] += np.einsum("nfhw,fc->nchw", dy[:, part], filter[part, :, row, column])
    return dx[:, :, padding[0] : padding[0] + h, padding[1] : padding[1] + w]


# Attention


def _by_head(x, heads):
    return np.swapaxes(x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads), -2, -3)


def _joined(x):
    x = np.swapaxes(x, -2, -3)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def _scale(q, scale):
    return q.dtype.type(1 / math.sqrt(max(1, q.shape[-1])) if scale is None else scale)


def _fit(q, k, mask, bias, causal, scale):
    fit = q @ np.swapaxes(k, -1, -2) * _scale(q, scale)
    t, s = fit.shape[-2:]
    fit = fit if bias is None else fit + bias
    fit = np.where(True if mask is None else mask, fit, -np.inf)
    return (np.where(np.tri(t, s, s - t, dtype=bool), fit, -np.inf) if causal else fit).astype(q.dtype)


def _weights(fit):
    """Return the weights, 0 for queries that see no key."""
    return np.where((fit == -np.inf).all(-1, keepdims=True), 0, softmax(fit)).astype(fit.dtype)


@kernel
def scaled_dot_product_attention(query, key, value, mask=None, bias=None, *, heads, causal, scale=None):
    if causal and query.shape[-2] > key.shape[-2]:
        raise ValueError(f"{query.shape[-2]} queries are more than {key.shape[-2]} keys, so the first queries would see no key")
    q, k, v = (_by_head(x, heads) for x in (query, key, value))
    fit = _fit(q, k, mask, bias, causal, scale)
    return _joined(_weights(fit) @ v), np.log(np.exp(fit).sum(-1))


def _backward(query, key, value, dy, mask, bias, dlogsumexp, heads, causal, scale):
    q, k, v, dy = (_by_head(x, heads) for x in (query, key, value, dy))
    weights = _weights(_fit(q, k, mask, bias, causal, scale))
    dweights = dy @ np.swapaxes(v, -1, -2)
    along = (dweights * weights).sum(-1, keepdims=True) - (0.0 if dlogsumexp is None else dlogsumexp.reshape(*weights.shape[:-1], 1))
    dfit = weights * (dweights - along) * _scale(q, scale)
    return [_joined(x) for x in (dfit @ k, np.swapaxes(dfit, -1, -2) @ q, np.swapaxes(weights, -1, -2) @ dy)]


@kernel
def scaled_dot_product_attention_dquery(
    query, key, value, y, logsumexp, dy, mask=None, bias=None, dlogsumexp=None, *, heads, causal, scale=None
):
    return _backward(query, key, value, dy, mask, bias, dlogsumexp, heads, causal, scale)[0]


@kernel
def scaled_dot_product_attention_dkey(
    query, key, value, y, logsumexp, dy, mask=None, bias=None, dlogsumexp=None, *, heads, causal, scale=None
):
    return _backward(query, key, value, dy, mask, bias, dlogsumexp, heads, causal, scale)[1]


@kernel
def scaled_dot_product_attention_dvalue(
    query, key, value, y, logsumexp, dy, mask=None, bias=None, dlogsumexp=None, *, heads, causal, scale=None
):
    return _backward(query, key, value, dy, mask, bias, dlogsumexp, heads, causal, scale)[2]
