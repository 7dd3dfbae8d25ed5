"""Layers: operators, and the parameters that they need. `ol.layer.fc(x, 10)`.

What needs no parameter is the operator itself under its usual name.
"""

from oarlock.layer import initializer
from oarlock.layer.attention import attention
from oarlock.layer.beam_search import beam_search
from oarlock.layer.control.if_else import IfElse, ifelse
from oarlock.layer.control.rnn import Recurrence
from oarlock.layer.control.step_network import add_to, rnn
from oarlock.layer.control.switch import Switch, case, cond, switch, switch_case
from oarlock.layer.control.while_loop import WhileLoop, while_loop
from oarlock.layer.convolution import conv, conv2d, global_pool2d, pool2d
from oarlock.layer.dense import fc
from oarlock.layer.embedding import embedding
from oarlock.layer.gated_rnn import gru, lstm
from oarlock.layer.inputs import data
from oarlock.layer.literal import add_scalar, larger_than, minibatch, sequence, var
from oarlock.layer.loss import accuracy, cross_entropy, cross_entropy_of_probabilities, mse, softmax_with_cross_entropy
from oarlock.layer.normalization import batch_norm, layer_norm
from oarlock.layer.parameter import create_parameter
from oarlock.layer.sequences import (
    sequence_concat,
    sequence_expand,
    sequence_lengths,
    sequence_pad,
    sequence_pool,
    sequence_softmax,
    sequence_unpad,
)
from oarlock.op.activation import gelu, log_softmax, relu, sigmoid, softmax, tanh
from oarlock.op.manipulation import concat, flatten, reshape, split, stack, transpose
from oarlock.op.randomness import dropout
from oarlock.op.reduction import mean
from oarlock.op.selection import argmax, one_hot, top_k
from oarlock.registry.catalogue import standard
from oarlock.suggestions import no_attribute, refuse_calls

__all__ = [
    "IfElse",
    "Recurrence",
    "Switch",
    "WhileLoop",
    "accuracy",
    "add_scalar",
    "add_to",
    "argmax",
    "attention",
    "batch_norm",
    "beam_search",
    "case",
    "concat",
    "cond",
    "conv",
    "conv2d",
    "create_parameter",
    "cross_entropy",
    "cross_entropy_of_probabilities",
    "data",
    "dropout",
    "embedding",
    "fc",
    "flatten",
    "gelu",
    "global_pool2d",
    "gru",
    "ifelse",
    "initializer",
    "larger_than",
    "layer_norm",
    "log_softmax",
    "lstm",
    "mean",
    "minibatch",
    "mse",
    "one_hot",
    "pool2d",
    "relu",
    "reshape",
    "rnn",
    "sequence",
    "sequence_concat",
    "sequence_expand",
    "sequence_lengths",
    "sequence_pad",
    "sequence_pool",
    "sequence_softmax",
    "sequence_unpad",
    "sigmoid",
    "softmax",
    "softmax_with_cross_entropy",
    "split",
    "stack",
    "switch",
    "switch_case",
    "tanh",
    "top_k",
    "transpose",
    "var",
    "while_loop",
]


def __getattr__(name: str) -> object:
    operator = f"it is an operator, which needs no parameters: ol.op.{name}" if standard.find(name) else None
    raise no_attribute(__name__, name, __all__, instead=operator)


refuse_calls(__name__)
