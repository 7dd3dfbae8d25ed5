"""Gradients of losses: variants that are written by hand, since a kernel has several steps and the first chooses the memory."""

from oarlock.backend.torch.variants import in_place_variant, out_variant
from oarlock.op.loss import softmax_with_cross_entropy_dlogits, total_cross_entropy_slope, write_dlogits, write_slope


@in_place_variant(softmax_with_cross_entropy_dlogits, "softmax")
def softmax_with_cross_entropy_dlogits_in_place(softmax, label, dloss, dsoftmax=None, *, ignore_index):
    return write_dlogits(softmax, label, dloss, dsoftmax, ignore_index, softmax)


@out_variant(softmax_with_cross_entropy_dlogits)
def softmax_with_cross_entropy_dlogits_out(softmax, label, dloss, dsoftmax=None, *, out, ignore_index):
    return write_dlogits(softmax, label, dloss, dsoftmax, ignore_index, out)


@in_place_variant(total_cross_entropy_slope, "softmax")
def total_cross_entropy_slope_in_place(softmax, label, dtotal, counted=None, *, ignore_index, mean):
    return write_slope(softmax, label, dtotal, counted, ignore_index, mean, softmax)


@out_variant(total_cross_entropy_slope)
def total_cross_entropy_slope_out(softmax, label, dtotal, counted=None, *, out, ignore_index, mean):
    return write_slope(softmax, label, dtotal, counted, ignore_index, mean, out)
