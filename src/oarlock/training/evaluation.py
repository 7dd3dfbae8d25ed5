"""`evaluate`: measure a program on data without training it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy

from oarlock.data.recognition import open_data
from oarlock.errors import ArgumentError
from oarlock.io.model import Model, load_model, scope_of
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.passes.pruning import prune
from oarlock.registry.catalogue import standard
from oarlock.registry.creator import describe_value
from oarlock.registry.range_check import require_count
from oarlock.runtime.executor import Executor
from oarlock.runtime.initialization import init
from oarlock.runtime.place import Place
from oarlock.runtime.preparation import Values
from oarlock.runtime.scope import Scope
from oarlock.training.batches import one_epoch, open_batches
from oarlock.training.metrics import Means, metrics_in
from oarlock.training.records import TrainingResult
from oarlock.training.run_folder import load_run

__all__ = ["evaluate"]


def evaluate(
    targets: "Var | Mapping[str, Var] | Model | TrainingResult | str | os.PathLike[str]",
    data: object,
    parameters: object = None,
    *,
    batch_size: int = 256,
    place: Place | Sequence[Place] | None = None,
) -> dict[str, float | numpy.ndarray]:
    """Measure `targets` on all rows of `data`. Return by label the value of each metric, and the mean over rows of other variables.

    Values are floats, or arrays for metrics with several numbers. `data` is anything that `ol.data.read` accepts.

        ol.evaluate({"f1": f1, "loss": cost}, test, result.parameters)
        ol.evaluate(result, test)
        ol.evaluate("runs/digits", test)

    A single variable is labelled by its name. A model, a result of `ol.train`, a model file and a run folder (its newest checkpoint) are
    measured by their own targets. `parameters` is anything that `ol.infer` accepts. Nothing is modified: metrics start from zero in a
    separate scope. As in `ol.infer`, dropout is off and batch normalization uses running statistics. Raises ArgumentError, FeedError, and
    the errors of `ol.load_model` and `Executor.run`.
    """
    limits, catalogue = None, standard
    if isinstance(targets, str | os.PathLike):
        targets = _load(Path(targets))
    if isinstance(targets, Model | TrainingResult):
        if parameters is not None:
            raise ArgumentError("evaluate: a model has its own parameters", location=here())
        program = prune(targets.program, targets.program.targets)
        scope = targets.scope if isinstance(targets, Model) else targets.parameters
        if isinstance(targets, Model):
            limits, catalogue = targets.limits, targets.catalogue
    else:
        labelled = {targets.name: targets} if isinstance(targets, Var) else targets
        if not isinstance(labelled, Mapping) or not labelled or not all(isinstance(var, Var) for var in labelled.values()):
            raise ArgumentError(f"evaluate: targets must map labels to variables, not {describe_value(targets)}", location=here())
        program = prune(next(iter(labelled.values())).block.program, labelled)
        scope = Scope() if parameters is None else scope_of(parameters, program)
    require_count("evaluate: batch_size", batch_size)
    batches = open_batches(data if isinstance(data, Mapping) else open_data(data), program, batch_size, shuffle=False)
    executor, means = Executor(place, catalogue=catalogue, limits=limits), Means(metrics_in(program))
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


def _load(path: Path) -> Model:
    return load_run(path) if path.is_dir() else load_model(path)
