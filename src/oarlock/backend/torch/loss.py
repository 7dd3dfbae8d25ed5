"""Gradients of losses: variants that are written by hand, since which input may be written over does not show."""

from oarlock.backend.torch.variants import in_place_variant
from oarlock.op.loss import softmax_with_cross_entropy_dlogits, total_cross_entropy_slope, write_dlogits, write_slope


@in_place_variant(softmax_with_cross_entropy_dlogits, "softmax")
def softmax_with_cross_entropy_dlogits_in_place(softmax, label, dloss, dsoftmax=None, *, ignore_index):
    return write_dlogits(softmax, label, dloss, dsoftmax, ignore_index, softmax)


@in_place_variant(total_cross_entropy_slope, "softmax")
def total_cross_entropy_slope_in_place(softmax, label, dtotal, counted=None, *, ignore_index, mean):
    return write_slope(softmax, label, dtotal, counted, ignore_index, mean, softmax)
