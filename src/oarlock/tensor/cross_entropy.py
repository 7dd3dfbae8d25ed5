"""Softmax cross entropy with class ids and its gradient, with few PyTorch kernels and optional output memory."""

from functools import lru_cache

import torch

from oarlock.backend.torch.private import softmax_backward, without_python

__all__ = ["EACH", "count_valid", "losses", "reduced_losses", "require_classes", "write_dlogits", "write_reduced_dlogits"]

EACH, MEAN, SUM = 0, 1, 2  # reductions of `nll_loss_forward`, as numbered by PyTorch

_nll_loss = without_python(torch.ops.aten.nll_loss_forward.default)


def losses(logits, label, reduction: int, ignore_index: int):
    """Return the losses as a vector or reduced, the number of counted rows, and the softmax."""
    if not label.is_cpu:  # on a GPU, an invalid label aborts the process
        require_classes(label, logits.shape[-1], ignore_index)
    rows = log_p = torch.log_softmax(logits, -1)
    if label.dim() != 1:
        rows, label = log_p.reshape(label.numel(), log_p.shape[-1]), label.reshape(-1)
    try:
        loss, valid_count = _nll_loss(rows, label, None, reduction, ignore_index)
    except IndexError:
        require_classes(label, logits.shape[-1], ignore_index)
        raise
    return loss, valid_count, log_p.exp_()


def reduced_losses(logits, label, ignore_index: int, mean: bool, count_ignored: bool):
    """Return the sum or the mean of the losses, the number of rows that are not ignored, and the softmax.

    Like PyTorch's, the mean is over rows that are not ignored; with `count_ignored`, ignored rows count as losses of 0.
    """
    if not mean or not count_ignored:
        return losses(logits, label, MEAN if mean else SUM, ignore_index)
    loss, valid_count, softmax = losses(logits, label, MEAN, ignore_index)
    if not _counts_all(valid_count, label):
        total, valid_count, softmax = losses(logits, label, SUM, ignore_index)
        loss = total.div_(label.numel())
    return loss, valid_count, softmax


def count_valid(label, ignore_index: int, like: torch.Tensor) -> torch.Tensor:
    """Return the number of labels that are not ignored, in the dtype of `like`."""
    return (label != ignore_index).sum().to(like.dtype)


def _counts_all(valid_count, label) -> bool:
    """Return whether all rows are counted. False on a GPU, and if the dtype cannot represent the count exactly."""
    return label.is_cpu and valid_count.item() == label.numel() < _COUNTABLE.get(valid_count.dtype, 0)


_COUNTABLE = {torch.float32: 2**24, torch.float64: 2**53}  # all integers up to here are exact in the dtype


def require_classes(label: torch.Tensor, classes: int, ignore_index: int) -> None:
    """Raise ValueError if a label is neither a class nor ignored."""
    wrong = ((label < 0) | (label >= classes)) & (label != ignore_index)
    if wrong.any():
        raise ValueError(f"label {int(label[wrong][0])} is not one of the classes 0 to {classes - 1}")


def write_dlogits(softmax, label, dloss, dsoftmax, ignore_index: int, out=None):
    """Return the gradient of the logits, in ``out`` or in new memory."""
    beside = None if dsoftmax is None else softmax_backward(dsoftmax, softmax, -1, softmax.dtype)
    label, dloss = label.unsqueeze(-1), dloss.unsqueeze(-1)  # [*b, 1]
    if _some_ignored(softmax, label, ignore_index):
        ignored = label == ignore_index
        label, dloss = label.masked_fill(ignored, 0), dloss.masked_fill(ignored, 0.0)
    dlogits = torch.mul(softmax, dloss, out=out).scatter_add_(-1, label, -dloss)
    return dlogits if beside is None else dlogits.add_(beside)


def _some_ignored(softmax, label, ignore_index: int) -> bool:
    """Return whether a row may be ignored. On a CPU, PyTorch rejects an invalid label in a gather, which is faster than comparing."""
    if not softmax.is_cpu or 0 <= ignore_index < softmax.shape[-1]:
        return True
    try:
        softmax.gather(-1, label)
    except RuntimeError:
        return True
    return False


def write_reduced_dlogits(softmax, label, dtotal, valid_count, ignore_index: int, mean: bool, count_ignored: bool, out=None):
    """Return the gradient of the logits of a reduced loss, in ``out`` or in new memory."""
    classes = label.unsqueeze(-1)  # [*b, 1]
    if (valid_count is None or not _counts_all(valid_count, label)) and _some_ignored(softmax, classes, ignore_index):
        each = dtotal
        if mean and count_ignored:
            each = dtotal / label.numel()
        elif mean:
            each = dtotal / (count_valid(label, ignore_index, dtotal) if valid_count is None else valid_count)
        return write_dlogits(softmax, label, each.expand(label.shape), None, ignore_index, out)
    rows = label.numel()
    share = dtotal.item() / (rows or 1) if mean else dtotal.item()
    scaled = softmax.mul_(share) if out is softmax else torch.mul(softmax, share, out=out)
    held = type(softmax) is torch.Tensor and softmax.is_cpu and label.dim() == 1 and rows <= _HELD_ROWS
    less = _column(rows, -share, softmax.dtype) if held else softmax.new_full(classes.shape, -share)
    return scaled.scatter_add_(-1, classes, less)


_HELD_ROWS = 2**14


@lru_cache(maxsize=4)
def _column(rows: int, value: float, dtype: torch.dtype) -> torch.Tensor:
    """Return a constant column. It is cached, as it is the same in each training step, and must not be modified."""
    return torch.full((rows, 1), value, dtype=dtype, device="cpu")
