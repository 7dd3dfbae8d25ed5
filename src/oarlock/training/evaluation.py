"""`evaluate`: what a program measures on data, without training it."""

from collections.abc import Mapping

import numpy

from oarlock.data.recognition import open_data
from oarlock.errors import ArgumentError
from oarlock.io.model import Model, scope_of
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.passes.pruning import prune
from oarlock.registry.creator import describe_value
from oarlock.registry.range_check import require_count
from oarlock.runtime.executor import Executor
from oarlock.runtime.initialization import init
from oarlock.runtime.place import Place
from oarlock.runtime.preparation import Values
from oarlock.runtime.scope import Scope
from oarlock.training.metrics import Means, metrics_in
from oarlock.training.replay import one_epoch, open_batches

__all__ = ["evaluate"]


def evaluate(
    targets: Var | Mapping[str, Var] | Model,
    data: object,
    parameters: object = None,
    *,
    batch_size: int = 256,
    place: Place | None = None,
) -> dict[str, float | numpy.ndarray]:
    """Measure `targets` on all rows of `data`, and return by their labels: of metrics the value, of others the mean over the rows.

    A float each, and an array where a metric has several numbers. `data` is whatever `ol.data.read` takes.

        ol.evaluate({"f1": f1, "loss": cost}, test, result.parameters)
        ol.evaluate(ol.load_model(path), test)

    One variable is called by its name; the targets of a model are its own; `parameters` are what `ol.infer` takes, and stay as they are.
    Metrics begin anew, whatever they had counted. No dropout drops, and running statistics are used, as in `ol.infer`.
    Raises ArgumentError, FeedError, and what `Executor.run` raises.
    """
    if isinstance(targets, Model):
        if parameters is not None:
            raise ArgumentError("evaluate: a model has its parameters already", location=here())
        program, scope = prune(targets.program, targets.program.targets), targets.scope
    else:
        labelled = {targets.name: targets} if isinstance(targets, Var) else targets
        if not isinstance(labelled, Mapping) or not labelled or not all(isinstance(var, Var) for var in labelled.values()):
            raise ArgumentError(f"evaluate: targets are variables by their labels, not {describe_value(targets)}", location=here())
        program = prune(next(iter(labelled.values())).block.program, labelled)
        scope = Scope() if parameters is None else scope_of(parameters, program)
    require_count("evaluate: batch_size", batch_size)
    batches = open_batches(data if isinstance(data, Mapping) else open_data(data), program, batch_size, shuffle=False)
    executor, means = Executor(place), Means(metrics_in(program))
    inside = scope.new_scope()
    try:
        init(program, inside, only=[op.writes[0] for op in program.main.tail])
        step = executor.prepare(program, list(program.targets), scope=inside, training=False)
        values: Values = []
        for batch in one_epoch(batches):
            values = step(batch.feed)
            means.add(program.targets, values, batch.rows)
    finally:
        inside.drop()
    latest = dict(zip(program.targets, values, strict=True))
    several = {label: numpy.asarray(latest[label]) for label in means.metrics if latest[label].ndim}
    return {**means.values, **several}
