"""Cross entropy of a softmax with class ids, and its gradient: as few kernels of PyTorch as there are, in memory that may be there."""

from functools import lru_cache

import torch

from oarlock.backend.torch.private import softmax_backward, without_python

__all__ = ["EACH", "count_valid", "losses", "reduced_losses", "require_classes", "write_dlogits", "write_reduced_dlogits"]

EACH, MEAN, SUM = 0, 1, 2  # what `nll_loss_forward` returns, as PyTorch numbers it

_nll_loss = without_python(torch.ops.aten.nll_loss_forward.default)


def losses(logits, label, reduction: int, ignore_index: int):
    """The losses one after another, or reduced to one number; of how many rows; and the softmax."""
    if not label.is_cpu:  # elsewhere a label that is no class ends the process
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
    """The sum of the losses, or their mean; how many rows are not ignored; and the softmax. As PyTorch's, a mean is over these alone,
    unless it is to `count_ignored`, as losses of 0.
    """
    if not mean or not count_ignored:
        return losses(logits, label, MEAN if mean else SUM, ignore_index)
    loss, valid_count, softmax = losses(logits, label, MEAN, ignore_index)
    if not _counts_all(valid_count, label):
        total, valid_count, softmax = losses(logits, label, SUM, ignore_index)
        loss = total.div_(label.numel())
    return loss, valid_count, softmax


def count_valid(label, ignore_index: int, like: torch.Tensor) -> torch.Tensor:
    """The number of labels that are not ignored, in the dtype of `like`."""
    return (label != ignore_index).sum().to(like.dtype)


def _counts_all(valid_count, label) -> bool:
    """Whether as many rows were counted as there are labels. On a GPU, and where the dtype does not count that far, nobody asks."""
    return label.is_cpu and valid_count.item() == label.numel() < _COUNTABLE.get(valid_count.dtype, 0)


_COUNTABLE = {torch.float32: 2**24, torch.float64: 2**53}  # a dtype holds all integers up to here


def require_classes(label: torch.Tensor, classes: int, ignore_index: int) -> None:
    """Raises ValueError where a label is neither a class nor ignored."""
    wrong = ((label < 0) | (label >= classes)) & (label != ignore_index)
    if wrong.any():
        raise ValueError(f"label {int(label[wrong][0])} is not one of the classes 0 to {classes - 1}")


def write_dlogits(softmax, label, dloss, dsoftmax, ignore_index: int, out=None):
    """In ``out``, or in fresh memory where it is None."""
    beside = None if dsoftmax is None else softmax_backward(dsoftmax, softmax, -1, softmax.dtype)
    label, dloss = label.unsqueeze(-1), dloss.unsqueeze(-1)  # [*b, 1]
    if _some_ignored(softmax, label, ignore_index):
        ignored = label == ignore_index
        label, dloss = label.masked_fill(ignored, 0), dloss.masked_fill(ignored, 0.0)
    dlogits = torch.mul(softmax, dloss, out=out).scatter_add_(-1, label, -dloss)
    return dlogits if beside is None else dlogits.add_(beside)


def _some_ignored(softmax, label, ignore_index: int) -> bool:
    """Whether a row may be ignored. On a CPU, PyTorch refuses a label that is no class: looking up costs less than comparing."""
    if not softmax.is_cpu or 0 <= ignore_index < softmax.shape[-1]:
        return True
    try:
        softmax.gather(-1, label)
    except RuntimeError:
        return True
    return False


def write_reduced_dlogits(softmax, label, dtotal, valid_count, ignore_index: int, mean: bool, count_ignored: bool, out=None):
    """In ``out``, or in fresh memory where it is None."""
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
    """One number in each row, which nobody writes over: as a rule, the same in each step of a training."""
    return torch.full((rows, 1), value, dtype=dtype, device="cpu")
