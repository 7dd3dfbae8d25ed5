"""Layers: operators together with their parameters, such as `ol.layer.fc(x, 10)`.

Operators that need no parameters are available here under their usual names. Modules are loaded when a name is first used.
"""

import importlib

from oarlock.garbage_collection import collection_paused
from oarlock.layer.attention import attention as attention  # these two share a name with their module
from oarlock.layer.embedding import embedding as embedding
from oarlock.layer.other_names import find_our_name
from oarlock.registry.catalogue import standard
from oarlock.registry.checked_call import checked, publish
from oarlock.suggestions import no_attribute, refuse_calls

_NAMES = {
    "oarlock.op.composed.positions": (
        "alibi_bias",
        "rotary_positions",
    ),
    "oarlock.op.composed.norms": ("local_response_norm",),
    "oarlock.layer.weight_norms": (
        "spectral_norm",
        "weight_norm",
    ),
    "oarlock.layer.decoding_cache": (
        "append_to_cache",
        "cached_attention",
    ),
    "oarlock.layer.composition": ("identity", "sequential", "time_distributed"),
    "oarlock.layer.control.if_else": ("IfElse", "ifelse"),
    "oarlock.layer.control.rnn": ("Recurrence",),
    "oarlock.layer.control.step_network": ("add_to", "rnn"),
    "oarlock.layer.control.switch": ("Switch", "case", "cond", "switch", "switch_case"),
    "oarlock.layer.control.while_loop": ("WhileLoop", "while_loop"),
    "oarlock.layer.convolution": (
        "conv",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
    ),
    "oarlock.layer.separable_convolution": ("depthwise_conv1d", "depthwise_conv2d", "separable_conv1d", "separable_conv2d"),
    "oarlock.layer.decoding": ("beam_search",),
    "oarlock.layer.dense": ("bilinear", "fc", "linear"),
    "oarlock.layer.trained_activation": ("highway", "maxout", "prelu"),
    "oarlock.layer.recurrent": ("gru", "lstm", "simple_rnn"),
    "oarlock.layer.recurrent_cell": ("gru_cell", "lstm_cell", "rnn_cell"),
    "oarlock.layer.inputs": ("data",),
    "oarlock.layer.literal": ("add_scalar", "larger_than", "minibatch", "sequence", "var"),
    "oarlock.layer.loss": ("accuracy", "cross_entropy", "cross_entropy_of_probabilities", "mse", "softmax_with_cross_entropy"),
    "oarlock.layer.embedding": ("embedding_bag",),
    "oarlock.layer.projected_attention": ("multi_head_attention",),
    "oarlock.layer.batch_normalization": ("batch_norm",),
    "oarlock.layer.noise": (
        "alpha_dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "feature_alpha_dropout",
        "gaussian_dropout",
        "gaussian_noise",
    ),
    "oarlock.layer.normalization": ("group_norm", "instance_norm", "layer_norm", "rms_norm"),
    "oarlock.layer.parameter": ("create_parameter",),
    "oarlock.layer.parameter_options": ("ParameterOptions",),
    "oarlock.layer.pooling": (
        "adaptive_average_pool1d",
        "adaptive_average_pool2d",
        "adaptive_average_pool3d",
        "adaptive_max_pool1d",
        "adaptive_max_pool2d",
        "adaptive_max_pool3d",
        "average_pool1d",
        "average_pool2d",
        "average_pool3d",
        "global_pool1d",
        "global_pool2d",
        "global_pool3d",
        "lp_pool",
        "max_pool1d",
        "max_pool2d",
        "max_pool3d",
        "pool2d",
    ),
    "oarlock.layer.sampled_losses": ("hierarchical_softmax", "nce", "sampled_softmax"),
    "oarlock.layer.sequence_losses": ("crf", "crf_decode", "ctc_loss"),
    "oarlock.layer.sequences": (
        "sequence_concat",
        "sequence_expand",
        "sequence_lengths",
        "sequence_pad",
        "sequence_pool",
        "sequence_softmax",
        "sequence_unpad",
    ),
    "oarlock.layer.positions": ("learned_positions", "relative_position_bias", "sinusoidal_positions"),
    "oarlock.layer.transformer_block": (
        "transformer",
        "transformer_decoder",
        "transformer_decoder_layer",
        "transformer_encoder",
        "transformer_encoder_layer",
    ),
    "oarlock.layer.upsampling": ("upsample",),
    "oarlock.op.activation": ("gelu", "log_softmax", "relu", "sigmoid", "softmax", "tanh"),
    "oarlock.op.composed.class_losses": ("nll_loss",),
    "oarlock.op.composed.imbalance_losses": (
        "dice_loss",
        "focal_loss",
        "iou_loss",
        "sigmoid_focal_loss",
    ),
    "oarlock.op.composed.losses": (
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "gaussian_nll_loss",
        "huber_loss",
        "kl_div",
        "l1_loss",
        "mse_loss",
        "poisson_nll_loss",
        "smooth_l1_loss",
    ),
    "oarlock.op.composed.margin_losses": (
        "cosine_embedding_loss",
        "hinge_embedding_loss",
        "hinge_loss",
        "margin_ranking_loss",
        "multi_margin_loss",
        "multilabel_margin_loss",
        "multilabel_soft_margin_loss",
        "soft_margin_loss",
        "squared_hinge_loss",
        "triplet_margin_loss",
        "triplet_margin_with_distance_loss",
    ),
    "oarlock.op.manipulation": ("concat", "flatten", "reshape", "split", "stack", "transpose"),
    "oarlock.op.randomness": ("dropout",),
    "oarlock.op.reduction": ("mean",),
    "oarlock.op.selection": ("argmax", "one_hot", "top_k"),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted([*_HOMES, "attention", "embedding", "initializer"])


def __getattr__(name: str) -> object:
    if name in _HOMES or name == "initializer":
        with collection_paused():
            module = importlib.import_module(_HOMES.get(name, f"oarlock.layer.{name}"))
        value = globals()[name] = checked(getattr(module, name), methods=True) if name in _HOMES else module
        refuse_calls(__name__)  # also for the modules just loaded
        return value
    operator = f"it is an operator without parameters: ol.op.{name}" if standard.find(name) else None
    raise no_attribute(__name__, name, __all__, instead=operator or find_our_name(name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


publish(__name__)
