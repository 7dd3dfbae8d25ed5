"""An in-place SGD step for many parameters: a handwritten variant, as the kernel makes no copies."""

from oarlock.backend.torch.private import foreach_sub_
from oarlock.backend.torch.variants import in_place_variant
from oarlock.op.update import multi_tensor_sgd
from oarlock.tensor.memory_format import lay_as
from oarlock.tensor.optimizer_steps import each_times


@in_place_variant(multi_tensor_sgd, "params")
def multi_tensor_sgd_in_place(params, grads, learning_rate, *, alone=False):
    laid = list(map(lay_as, params, grads)) if alone else params
    if not learning_rate.is_cpu:
        foreach_sub_(laid, each_times(grads, learning_rate))
    else:
        foreach_sub_(laid, grads, alpha=learning_rate.item())
    return params
