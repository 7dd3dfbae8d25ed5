"""Losses for very many classes, including the class weights; the gradient of a step is sparse in the classes."""

from collections.abc import Callable

from oarlock.errors import ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.initializer import Rule, constant, xavier
from oarlock.layer.parameter import layer_name, new_parameter, output_name, require_number
from oarlock.layer.parameter_options import Given
from oarlock.op.composed import sampled_losses as losses
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["hierarchical_softmax", "nce", "sampled_softmax"]

How = tuple[Rule | None, Given | None, Given | None]
"""The initializer of weights, and the options of weights and biases."""

_SAMPLES = {"log_uniform": losses.log_uniform_samples, "uniform": losses.uniform_samples}


def nce(
    input: Var,
    label: Var,
    classes: int,
    *,
    samples: int = 10,
    sampler: str = "log_uniform",
    initializer: Rule | None = None,
    weight: Given | None = None,
    bias: Given | None = None,
    name: str | None = None,
) -> Var:
    """Return `ol.op.nce_loss` of each row against classes sampled in each run: float[n d], int64[n] -> float[n].

    Parameters are `<name>.w` [classes, d], Xavier-uniform by default (see `initializer`), and `<name>.b` [classes], 0: the logits of all
    classes are ``x @ w.T + b``. `weight` and `bias` accept `ParameterOptions`. The sampler "log_uniform" requires classes numbered by
    decreasing frequency. `<name>.samples` is the variable of sampled classes. Raises ShapeError or ArgumentError.

        y = ol.layer.nce(rows, label, 100, samples=20)
    """
    return _sampled("nce", input, label, classes, samples, sampler, (initializer, weight, bias), name, losses.nce_loss)


def sampled_softmax(
    input: Var,
    label: Var,
    classes: int,
    *,
    samples: int = 10,
    sampler: str = "log_uniform",
    initializer: Rule | None = None,
    weight: Given | None = None,
    bias: Given | None = None,
    name: str | None = None,
) -> Var:
    """Return `ol.op.sampled_softmax_loss` of each row: float[n d], int64[n] -> float[n].

    Arguments, parameters and errors are as in `nce`.

        y = ol.layer.sampled_softmax(rows, label, 100, samples=20)
    """
    return _sampled(
        "sampled_softmax", input, label, classes, samples, sampler, (initializer, weight, bias), name, losses.sampled_softmax_loss
    )


def hierarchical_softmax(
    input: Var,
    label: Var,
    classes: int,
    *,
    initializer: Rule | None = None,
    weight: Given | None = None,
    bias: Given | None = None,
    name: str | None = None,
) -> Var:
    """Return `ol.op.hierarchical_softmax_loss` of each row, with a binary tree of all classes: float[n d], int64[n] -> float[n].

    Parameters are `<name>.w` [classes - 1, d], Xavier-uniform by default (see `initializer`), and `<name>.b` [classes - 1], 0, for the
    inner nodes. Raises ShapeError or ArgumentError.

        y = ol.layer.hierarchical_softmax(rows, label, 100)
    """
    require_count("hierarchical_softmax: classes - 1", classes - 1 if isinstance(classes, int) else classes)
    return _with_weights(
        "hierarchical_softmax", input, label, classes - 1, (initializer, weight, bias), name, losses.hierarchical_softmax_loss
    )


def _sampled(kind: str, input: Var, label: Var, classes: int, samples: int, sampler: str, how: How, name: str | None, loss) -> Var:
    require_count(f"{kind}: samples", samples)
    require_count(f"{kind}: classes", classes)

    def write(x: Var, w: Var, b: Var, label: Var) -> Var:
        drawn = _SAMPLES.get(sampler, losses.uniform_samples)(samples, classes)  # the loss raises for other names
        cost = loss(x, w, b, label, drawn, sampler=sampler)
        called = f"{w.name.removesuffix('.w')}.samples"
        program = drawn.block.program
        drawn.block.rename(drawn, called if program.is_free(called) else program.unique(called))
        return cost

    return _with_weights(kind, input, label, classes, how, name, write)


def _with_weights(
    kind: str, input: Var, label: Var, rows: int, how: How, name: str | None, write: Callable[[Var, Var, Var, Var], Var]
) -> Var:
    """Declare the weights and biases of `rows` classes or nodes, and write their loss. Raises ShapeError."""
    input, label = require_type(input, f"{kind}: input"), require_type(label, f"{kind}: label")
    width = require_number(input.shape, -1, kind, input)
    if len(input.shape or ()) != 2:
        raise ShapeError(f"{kind}: input must be float[n d], not {input.type_text}", location=here(), given=[input.describe()])
    program = input.block.program
    with undone_on_error(program):
        name = layer_name(program, name, kind)
        rule, weight, bias = how
        w = new_parameter(input.block, f"{name}.w", (rows, width), input.dtype, rule or xavier(), weight)
        b = new_parameter(input.block, f"{name}.b", (rows,), input.dtype, constant(0.0), bias)
        result = output_name(program, name)
        cost = write(input, w, b, label)
    cost.block.rename(cost, result)
    return cost
