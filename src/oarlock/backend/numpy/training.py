"""Losses, layer normalization, and optimizer steps."""

import numpy as np

from oarlock.backend.numpy.elementwise import log_softmax
from oarlock.backend.numpy.kernels import kernel
from oarlock.backend.numpy.products import linear_dw

__all__: list[str] = []


# Losses


def _picked(label, classes, ignore_index):
    """Return one-hot rows of labels, zero if ignored, and which are kept. Raises ValueError for an invalid label."""
    kept = label != ignore_index
    wrong = label[kept & ((label < 0) | (label >= classes))]
    if wrong.size:
        raise ValueError(f"label {wrong.flat[0]} is not one of the classes 0 to {classes - 1}")
    return (label[..., None] == np.arange(classes)) & kept[..., None], kept


@kernel
def softmax_with_cross_entropy(logits, label, *, ignore_index):
    log_p = log_softmax(logits)
    chosen, _ = _picked(label, logits.shape[-1], ignore_index)
    return -np.where(chosen, log_p, 0).sum(-1), np.exp(log_p)


@kernel
def softmax_with_cross_entropy_dlogits(softmax, label, dloss, dsoftmax=None, *, ignore_index):
    chosen, kept = _picked(label, softmax.shape[-1], ignore_index)
    dlogits = (softmax - chosen) * np.where(kept, dloss, 0)[..., None]
    return dlogits if dsoftmax is None else dlogits + softmax * (dsoftmax - (dsoftmax * softmax).sum(-1, keepdims=True))


@kernel
def valid_mean(x, label, *, ignore_index):
    return x.sum(where=label != ignore_index) / (label != ignore_index).sum(dtype=x.dtype)


@kernel
def valid_mean_dx(label, dy, *, ignore_index):
    valid = label != ignore_index
    return np.where(valid, dy / valid.sum(dtype=dy.dtype), dy.dtype.type(0))


@kernel
def cross_entropy_loss(logits, label, *, ignore_index, mean, count_ignored=True):
    losses, softmax = softmax_with_cross_entropy(logits, label, ignore_index=ignore_index)
    valid_count = np.asarray((label != ignore_index).sum(), logits.dtype)
    count = (losses.dtype.type(label.size) if count_ignored else valid_count) if mean else 1
    return losses.sum() / count, softmax, valid_count


@kernel
def cross_entropy_loss_grad(softmax, label, dtotal, valid_count=None, *, ignore_index, mean, count_ignored=True):
    count = label.size if count_ignored else (label != ignore_index).sum()
    each = dtotal / dtotal.dtype.type(count or 1) if mean else dtotal
    return softmax_with_cross_entropy_dlogits(softmax, label, np.broadcast_to(each, label.shape), ignore_index=ignore_index)


# Normalisation


@kernel
def layer_norm(x, scale=None, bias=None, *, epsilon):
    mean = x.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + epsilon)
    y = (x - mean) * rstd
    y = y if scale is None else y * scale
    return y if bias is None else y + bias, mean, rstd


@kernel
def layer_norm_grad(x, mean, rstd, given, scale=None):
    unit, given = (x - mean) * rstd, given if scale is None else given * scale
    return rstd * (given - given.mean(-1, keepdims=True) - unit * (given * unit).mean(-1, keepdims=True))


@kernel
def layer_norm_scale_grad(x, mean, rstd, given):
    return (given * (x - mean) * rstd).sum(tuple(range(x.ndim - 1)))


# Optimizer steps: the learning rate is a float64, and products have the dtype of the parameter


@kernel
def sgd(param, grad, learning_rate):
    return param - grad * param.dtype.type(learning_rate)


@kernel
def sgd_addmm(param, x, dout, learning_rate):
    return sgd(param, linear_dw(x, dout), learning_rate)


@kernel
def momentum(param, grad, velocity, learning_rate, *, mu, nesterov):
    velocity = mu * velocity + grad
    return param - (grad + mu * velocity if nesterov else velocity) * param.dtype.type(learning_rate), velocity


@kernel
def adam(param, grad, moment1, moment2, step, learning_rate, *, beta1, beta2, epsilon, weight_decay=0.0):
    moment1, moment2 = beta1 * moment1 + (1 - beta1) * grad, beta2 * moment2 + (1 - beta2) * grad * grad
    below = np.sqrt(moment2) / np.sqrt(1 - beta2 ** float(step)) + epsilon
    param = param * param.dtype.type(1 - float(learning_rate) * weight_decay)
    return (param - float(learning_rate) / (1 - beta1 ** float(step)) * moment1 / below).astype(param.dtype), moment1, moment2


@kernel
def multi_tensor_sgd(params, grads, learning_rate):
    return [sgd(*each, learning_rate) for each in zip(params, grads, strict=True)]


def _each(found):
    """Transpose a list of results per tensor to one list per output."""
    return tuple(map(list, zip(*found, strict=True)))


@kernel
def multi_tensor_momentum(params, grads, velocities, learning_rate, **options):
    return _each([momentum(*each, learning_rate, **options) for each in zip(params, grads, velocities, strict=True)])


@kernel
def multi_tensor_adam(params, grads, moments1, moments2, step, learning_rate, **options):
    return _each([adam(*each, step, learning_rate, **options) for each in zip(params, grads, moments1, moments2, strict=True)])
