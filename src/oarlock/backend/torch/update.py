"""Steps of optimizers: variants in place, which are written by hand. Parameters and state change where they lie."""

from oarlock.backend.torch.private import foreach_sub_
from oarlock.backend.torch.variants import in_place_variant, lowers_to
from oarlock.op.matrix import as_rows
from oarlock.op.memory_format import lay_as
from oarlock.op.update import (
    adam,
    each_times,
    linear_dw_onto,
    momentum,
    multi_tensor_adam,
    multi_tensor_momentum,
    multi_tensor_sgd,
    scaled,
    sgd,
    sgd_linear,
    update_by_adam,
    update_by_momentum,
)


@in_place_variant(sgd, "param")
def sgd_in_place(param, grad, rate, *, alone=False):
    laid = lay_as(param, grad) if alone else param
    return laid.sub_(grad, alpha=rate.item()) if rate.is_cpu else laid.sub_(scaled(grad, rate))


@in_place_variant(momentum, "param", "velocity")
def momentum_in_place(param, grad, velocity, rate, *, mu, nesterov, alone=False):
    update_by_momentum([param], [grad], [velocity], rate, mu, nesterov, alone=alone)
    return param, velocity


@in_place_variant(adam, "param", "moment1", "moment2")
def adam_in_place(param, grad, moment1, moment2, step, rate, *, beta1, beta2, epsilon, alone=False):
    update_by_adam([param], [grad], [moment1], [moment2], step, rate, beta1, beta2, epsilon, alone=alone)
    return param, moment1, moment2


@in_place_variant(multi_tensor_sgd, "params")
def multi_tensor_sgd_in_place(params, grads, rate, *, alone=False):
    laid = list(map(lay_as, params, grads)) if alone else params
    if not rate.is_cpu:
        foreach_sub_(laid, each_times(grads, rate))
    else:
        foreach_sub_(laid, grads, alpha=rate.item())
    return params


@in_place_variant(multi_tensor_momentum, "params", "velocities")
def multi_tensor_momentum_in_place(params, grads, velocities, rate, *, mu, nesterov, alone=False):
    update_by_momentum(params, grads, velocities, rate, mu, nesterov, alone=alone)
    return params, velocities


@in_place_variant(multi_tensor_adam, "params", "moments1", "moments2")
def multi_tensor_adam_in_place(params, grads, moments1, moments2, step, rate, *, beta1, beta2, epsilon, alone=False):
    update_by_adam(params, grads, moments1, moments2, step, rate, beta1, beta2, epsilon, alone=alone)
    return params, moments1, moments2


@in_place_variant(sgd_linear, "param")
def sgd_linear_in_place(param, x, dout, rate):
    if not rate.is_cpu:
        return param.addmm_(as_rows(x).mT, scaled(as_rows(dout), rate), alpha=-1)
    return param.addmm_(as_rows(x).mT, as_rows(dout), alpha=-rate.item())


@in_place_variant(linear_dw_onto, "base")
def linear_dw_onto_in_place(base, x, dout, *, scale):
    return base.addmm_(as_rows(x).mT, as_rows(dout), beta=scale)


_MATRICES = {"x": 2, "dout": 2}
lowers_to(sgd_linear, "param.addmm_(x.mT, dout, alpha=-rate.item())", function=sgd_linear_in_place, ranks=_MATRICES, at="cpu")
lowers_to(linear_dw_onto, "base.addmm_(x.mT, dout, beta=scale)", function=linear_dw_onto_in_place, ranks=_MATRICES)
