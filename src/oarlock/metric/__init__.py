"""Metrics over whole data sets, as state of the program: `ol.metric.accuracy(logits, label)`.

    accuracy = ol.metric.accuracy(logits, label)         # an ordinary variable: fetch it, show it, save it
    result = ol.train(cost, train, validate=test, show={"accuracy": accuracy})
    ol.metric.reset(accuracy, scope)                     # for custom loops: start over

A metric is computed over all batches since the last reset, the current one included. `executor.run` counts a batch, whether it is training
or not; `executor.eval`, `ol.infer` and a server do not.
"""

from oarlock.metric.classes import accuracy, binary_accuracy, confusion_matrix, f1, mean_iou, precision, recall, top_k_accuracy
from oarlock.metric.means import mean, mean_absolute_error, mean_squared_error, perplexity, root_mean_squared_error
from oarlock.metric.ranking import auc
from oarlock.metric.sequences import chunk_f1, chunk_scores, edit_distance
from oarlock.metric.state import reset
from oarlock.registry.checked_call import publish

__all__ = [
    "accuracy",
    "auc",
    "binary_accuracy",
    "chunk_f1",
    "chunk_scores",
    "confusion_matrix",
    "edit_distance",
    "f1",
    "mean",
    "mean_absolute_error",
    "mean_iou",
    "mean_squared_error",
    "perplexity",
    "precision",
    "recall",
    "reset",
    "root_mean_squared_error",
    "top_k_accuracy",
]

publish(__name__)
