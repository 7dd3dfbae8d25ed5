"""Layers: operators, and the parameters that they need. `ol.layer.fc(x, 10)`.

What needs no parameter is the operator itself under its usual name.
"""

from oarlock.layer import initializer
from oarlock.layer.convolution import conv2d, pool2d
from oarlock.layer.dense import fc
from oarlock.layer.inputs import data
from oarlock.layer.literal import larger_than, minibatch, sequence, var
from oarlock.layer.objective import accuracy, cross_entropy, mse, softmax_with_cross_entropy
from oarlock.layer.recurrence import Recurrence, rnn
from oarlock.op.activation import relu, sigmoid, softmax, tanh
from oarlock.op.randomness import dropout
from oarlock.op.reduction import mean
from oarlock.op.shaping import concat, flatten, reshape

__all__ = [
    "Recurrence",
    "accuracy",
    "concat",
    "conv2d",
    "cross_entropy",
    "data",
    "dropout",
    "fc",
    "flatten",
    "initializer",
    "larger_than",
    "mean",
    "minibatch",
    "mse",
    "pool2d",
    "relu",
    "reshape",
    "rnn",
    "sequence",
    "sigmoid",
    "softmax",
    "softmax_with_cross_entropy",
    "tanh",
    "var",
]
