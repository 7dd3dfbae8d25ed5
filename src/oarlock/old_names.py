"""Names of earlier versions and their replacements, for operators, slots, attributes, passes and functions.

Files of earlier versions, and early files of version 2, are read with these tables (`oarlock.ir.earlier_versions`). In Python, an old name
works for one version, with a warning that gives the new one.
"""

import importlib
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, TypeVar, cast

__all__ = [
    "OLD_ARGUMENTS",
    "OLD_ATTRIBUTES",
    "OLD_DECLARATIONS",
    "OLD_FUNCTIONS",
    "OLD_KEYWORDS",
    "OLD_OPERATORS",
    "OLD_PASSES",
    "OLD_REGISTRY_FUNCTIONS",
    "OLD_SLOTS",
    "OLD_VARIABLE_KEYWORDS",
    "OLD_VARIANTS",
    "old_attribute",
    "renamed",
    "renamed_keywords",
    "takes_old_keywords",
]

OLD_OPERATORS = {
    "absolute": "abs",
    "absolute_dx": "abs_dx",
    "batch_matmul": "matmul",
    "batch_matmul_dx": "matmul_dx",
    "batch_matmul_dy": "matmul_dy",
    "batch_norm_dgain": "batch_norm_scale_grad",
    "batch_norm_doffset": "batch_norm_bias_grad",
    "batch_norm_dx": "batch_norm_grad",
    "batch_norm_gain_slope": "batch_norm_scale_grad",
    "batch_norm_offset_slope": "batch_norm_bias_grad",
    "batch_norm_slope": "batch_norm_grad",
    "branch": "conditional_block",
    "choose": "select_branch",
    "element_count": "numel",
    "expand_to": "broadcast_to_like",
    "fill": "full",
    "fill_like": "full_like",
    "fill_rows": "full_batch_size_like",
    "inner_product": "dot",
    "interpolate": "lerp",
    "layer_norm_gain_slope": "layer_norm_scale_grad",
    "layer_norm_slope": "layer_norm_grad",
    "linear_dw_onto": "addmm_tn",
    "linear_dx_onto": "addmm_nt",
    "linear_onto": "addmm",
    "multiply_add": "addcmul",
    "negative": "neg",
    "put": "scatter_add",
    "reduce_to": "sum_to_shape",
    "row_numbers": "arange_like",
    "rows": "nonzero",
    "sgd_linear": "sgd_addmm",
    "take": "gather",
    "take_linear": "embedding_linear",
    "take_linear_backward": "embedding_linear_backward",
    "take_linear_backward_without_bias": "embedding_linear_backward_without_bias",
    "take_linear_dw": "embedding_linear_dw",
    "take_linear_dx": "embedding_linear_dx",
    "total_cross_entropy": "cross_entropy_loss",
    "total_cross_entropy_slope": "cross_entropy_loss_grad",
}
"""Operator types in files of format version 1."""

OLD_SLOTS: dict[str, dict[str, str]] = {
    "adam": {"rate": "learning_rate"},
    "addmm_nt": {"given": "x"},
    "batch_norm": {"gain": "scale", "offset": "bias", "of_batch": "uses_batch_statistics"},
    "batch_norm_backward": {
        "of_batch": "uses_batch_statistics",
        "gain": "scale",
        "batch_norm_slope": "batch_norm_grad",
        "batch_norm_gain_slope": "batch_norm_scale_grad",
        "batch_norm_offset_slope": "batch_norm_bias_grad",
        "given": "dy",
    },
    "batch_norm_bias_grad": {"given": "dy", "slope": "dbias"},
    "batch_norm_dgain": {"of_batch": "uses_batch_statistics", "dgain": "dscale"},
    "batch_norm_doffset": {"doffset": "dbias"},
    "batch_norm_dx": {"of_batch": "uses_batch_statistics", "gain": "scale"},
    "batch_norm_gain_slope": {"of_batch": "uses_batch_statistics", "given": "dy", "slope": "dscale"},
    "batch_norm_grad": {"given": "dy", "slope": "dx"},
    "batch_norm_offset_slope": {"given": "dy", "slope": "dbias"},
    "batch_norm_scale_grad": {"given": "dy", "slope": "dscale"},
    "batch_norm_slope": {"of_batch": "uses_batch_statistics", "gain": "scale", "given": "dy", "slope": "dx"},
    "layer_norm": {"gain": "scale", "offset": "bias"},
    "layer_norm_backward": {
        "gain": "scale",
        "layer_norm_slope": "layer_norm_grad",
        "layer_norm_gain_slope": "layer_norm_scale_grad",
        "given": "dy",
    },
    "layer_norm_backward_of_parameters": {"layer_norm_gain_slope": "layer_norm_scale_grad", "given": "dy"},
    "layer_norm_gain_slope": {"given": "dy", "slope": "dscale"},
    "layer_norm_grad": {"given": "dy", "slope": "dx"},
    "layer_norm_scale_grad": {"given": "dy", "slope": "dscale"},
    "layer_norm_slope": {"gain": "scale", "given": "dy", "slope": "dx"},
    "linear_dx_onto": {"given": "x"},
    "momentum": {"rate": "learning_rate"},
    "multi_tensor_adam": {"rate": "learning_rate"},
    "multi_tensor_momentum": {"rate": "learning_rate"},
    "multi_tensor_sgd": {"rate": "learning_rate"},
    "sgd": {"rate": "learning_rate"},
    "sgd_linear": {"rate": "learning_rate"},
    "take_linear_backward": {"take_linear_dx": "embedding_linear_dx", "take_linear_dw": "embedding_linear_dw"},
    "take_linear_backward_without_bias": {"take_linear_dx": "embedding_linear_dx", "take_linear_dw": "embedding_linear_dw"},
    "total_cross_entropy": {"counted": "valid_count"},
    "total_cross_entropy_slope": {"counted": "valid_count"},
}
"""Slots of operators, by the operator type of that time: `batch_norm_slope` in version 1, `batch_norm_grad` in version 2."""

OLD_ATTRIBUTES: dict[str, dict[str, str]] = {
    "all": {"keep": "keepdim"},
    "any": {"keep": "keepdim"},
    "argmax": {"keep": "keepdim"},
    "mean": {"keep": "keepdim"},
    "mean_dx": {"keep": "keepdim"},
    "reduce_max": {"keep": "keepdim"},
    "reduce_max_dx": {"keep": "keepdim"},
    "reduce_max_dx_ddy": {"keep": "keepdim"},
    "reduce_sum": {"keep": "keepdim"},
    "reduce_sum_dx": {"keep": "keepdim"},
    "rows": {"holds": "value"},
    "split": {"parts": "sections"},
}
"""Attributes of operators, by the old operator type."""

OLD_KEYWORDS: dict[str, dict[str, str]] = {}
"""Slots and attributes of operators, by the new operator type."""

for _table in (OLD_SLOTS, OLD_ATTRIBUTES):
    for _type, _names in _table.items():
        OLD_KEYWORDS.setdefault(OLD_OPERATORS.get(_type, _type), {}).update(_names)

OLD_PASSES = {
    "simplify": "canonicalize",
    "fold": "constant_folding",
    "share": "cse",
    "hoist": "licm",
    "scalarize": "splat_propagation",
    "lift": "batch_prologue",
    "sink": "batch_epilogue",
    "rotate": "loop_retiming",
    "exchange": "commute_gather_matmul",
    "fuse": "fuse_sums",
    "accumulate": "fuse_updates",
    "join": "multi_output_fusion",
    "transpose": "hoist_transposes",
    "group": "multi_tensor_updates",
}
"""Passes of `Executor(passes=...)`."""

OLD_ARGUMENTS = {"rate": "learning_rate"}
"""Arguments of optimizers."""

OLD_VARIABLE_KEYWORDS = {"partitions": "row_splits_of"}
"""Attributes of variables, and keywords of functions that declare one."""

OLD_FUNCTIONS = {"tune_process": "configure_process"}
"""Functions of `oarlock`."""

OLD_REGISTRY_FUNCTIONS = {"joint": "fused_backward"}
"""Functions of `oarlock.registry`."""

OLD_DECLARATIONS = {
    "may_fail": "checks_values",
    "views": "aliases",
    "across": "axis_attribute",
    "rounds_by": "sensitive_to",
    "infer_with": "infer_shape",
    "build_gradient": "gradient_maker",
}
"""Keywords of `operator`, and methods and attributes of declared operators."""

OLD_VARIANTS = {
    "as_number": "number_function",
    "comes_to": "lowers_to",
    "in_place": "in_place_variant",
    "into": "out_variant",
    "on_host": "host_function",
    "packed": "prepack",
}
"""Methods of declared operators, and the functions of `oarlock.backend.torch.variants` that replace them."""

_F = TypeVar("_F", bound=Callable[..., Any])


def renamed(kind: str, name: str, names: Mapping[str, str]) -> str:
    """Return the current name for `name` by the table `names`, with a warning, or `name` itself if it is not an old name."""
    if name not in names:
        return name
    _warn(f'the {kind} "{name}" is called "{names[name]}" now')
    return names[name]


def _warn(message: str) -> None:
    from oarlock.ir.location import warn_here  # a circular import

    warn_here(message, DeprecationWarning)


def renamed_keywords(kind: str, keywords: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """Return `keywords` with current names; old ones cause a warning."""
    if names.keys().isdisjoint(keywords):
        return keywords
    return {renamed(kind, name, names): value for name, value in keywords.items()}


def takes_old_keywords(names: Mapping[str, str]) -> Callable[[_F], _F]:
    """Decorate a function so that it also accepts the old keywords in `names`, with a warning."""

    def decorate(function: _F) -> _F:
        @wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            return function(*arguments, **renamed_keywords("keyword", keywords, names))

        call.old_keywords = names  # type: ignore[attr-defined]
        return cast(_F, call)

    return decorate


def old_attribute(operator: object, name: str) -> Any:
    """Return the attribute of an operator for an old `name`, or the method that declared a variant, with a warning.

    The functions that declare variants are in a higher layer than operators, so they are imported on demand.
    """
    if name in OLD_DECLARATIONS:
        return getattr(operator, renamed("attribute of an operator", name, OLD_DECLARATIONS))
    _warn(f'the method "{name}" of an operator is the function "{OLD_VARIANTS[name]}" of oarlock.backend.torch.variants now')
    declare = getattr(importlib.import_module("oarlock.backend.torch.variants"), OLD_VARIANTS[name])
    if name in ("in_place", "packed"):
        return partial(declare, operator)
    if name == "comes_to":
        return lambda text, *, form=None, **conditions: declare(operator, text, function=form, **conditions)
    return declare(operator)
