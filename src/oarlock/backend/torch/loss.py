"""Gradients of losses: handwritten variants, as it cannot be derived which input may be overwritten."""

from oarlock.backend.torch.variants import in_place_variant
from oarlock.op.loss import cross_entropy_loss_grad, softmax_with_cross_entropy_dlogits
from oarlock.tensor.cross_entropy import write_dlogits, write_reduced_dlogits


@in_place_variant(softmax_with_cross_entropy_dlogits, "softmax")
def softmax_with_cross_entropy_dlogits_in_place(softmax, label, dloss, dsoftmax=None, *, ignore_index):
    return write_dlogits(softmax, label, dloss, dsoftmax, ignore_index, softmax)


@in_place_variant(cross_entropy_loss_grad, "softmax")
def cross_entropy_loss_grad_in_place(softmax, label, dtotal, valid_count=None, *, ignore_index, mean, count_ignored=True):
    return write_reduced_dlogits(softmax, label, dtotal, valid_count, ignore_index, mean, count_ignored, softmax)
