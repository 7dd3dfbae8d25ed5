"""The page of optimizers and schedules."""

import inspect
import re
import textwrap
from collections.abc import Iterator

from reference_pages.areas import FIRST
from reference_pages.markdown import prose, python, slug
from reference_pages.names import OPTIMIZERS, entries, first_names, home_of
from reference_pages.source import fields, header

import oarlock

SCHEDULES = {
    "Constant": "Constant(0.5)",
    "CosineDecay": "CosineDecay(0.5, 6)",
    "CosineRestarts": "CosineRestarts(0.5, 2, 2)",
    "Cyclic": "Cyclic(0.1, 0.5, 3, 2)",
    "ExponentialDecay": "ExponentialDecay(0.5, 0.9)",
    "InverseTimeDecay": "InverseTimeDecay(0.5, 1.0, 2)",
    "LinearDecay": "LinearDecay(0.5, 5)",
    "MultiStepDecay": "MultiStepDecay(0.5, [2, 5])",
    "NaturalExponentialDecay": "NaturalExponentialDecay(0.5, 1.0, 4)",
    "Noam": "Noam(64, 4)",
    "OneCycle": "OneCycle(0.5, 8)",
    "Piecewise": "Piecewise([2, 5], [0.5, 0.2, 0.1])",
    "PolynomialDecay": "PolynomialDecay(0.5, 6, power=2.0)",
    "ReduceOnPlateau": "ReduceOnPlateau(0.5, factor=0.5, patience=1)",
    "Sequential": "Sequential([Constant(0.1), StepDecay(0.5, 2)], [3])",
    "StepDecay": "StepDecay(0.5, 3)",
    "WarmUp": "WarmUp(ExponentialDecay(0.5, 0.9), 4)",
}
"""An example of each schedule. The cost of the example stays constant, so `ReduceOnPlateau` reduces the rate."""


def optimizers() -> Iterator[str]:
    kinds = [value for value in map(vars(oarlock.optimizer).get, oarlock.optimizer.__all__) if inspect.isclass(value)]
    of_others = (oarlock.optimizer.Groups, oarlock.optimizer.LossScaling)  # wrap other optimizers
    rules = [kind for kind in kinds if issubclass(kind, oarlock.optimizer.Optimizer) and kind not in of_others]
    yield from (
        "# Optimizers and schedules",
        "",
        "The equations of each optimizer are followed by the state and the ops that it adds to a program for one parameter `w`,",
        "float32[3, 2]. `options` are keywords of every optimizer: [ol.optimizer.Optimizer](#oloptimizeroptimizer).",
        "[Optimizers](../guides/optimizers.md) shows how to use them and how to write one.",
        "",
        *first_names(FIRST["optimizers"]),
        "",
        f"Optimizers: {', '.join(f'[{kind.__name__}](#{slug(title(kind))})' for kind in rules if not inspect.isabstract(kind))}.",
        "",
        f"Schedules: {', '.join(f'[{name}](#{slug(title(getattr(oarlock.optimizer.schedule, name)))})' for name in SCHEDULES)}.",
    )
    for kind in rules:
        if not inspect.isabstract(kind):
            yield from ("", f"## {title(kind)}", "", *class_page(kind), "```text", *update_lines(kind()), "```")
    for name, example in SCHEDULES.items():
        schedule = getattr(oarlock.optimizer.schedule, name)
        yield from ("", f"## {title(schedule)}", "", *class_page(schedule))
        yield f"The rates of the first steps of `{example}`: {', '.join(f'{rate:.4g}' for rate in first_rates(example))}."
    shown = [title(kind) for kind in rules if not inspect.isabstract(kind)] + [f"ol.optimizer.schedule.{name}" for name in SCHEDULES]
    yield from entries("optimizers", OPTIMIZERS, without=shown)


def title(kind: type) -> str:
    """Return the public path of an optimizer or a schedule."""
    return home_of(kind).paths[0]


def class_page(kind: type) -> Iterator[str]:
    """Yield the file of a class, its constructor and its docstring."""
    source = kind.__module__.replace(".", "/") + ".py"
    yield from (f"[{source.removeprefix('oarlock/')}](../../src/{source})", "")
    lines = [*fields(kind)] or [header(kind.__init__, "__init__")]
    yield from python("\n".join([f"class {kind.__name__}:", *(textwrap.indent(line, "    ") for line in lines)]))
    yield from (prose(inspect.getdoc(kind)), "")


def update_lines(optimizer: oarlock.optimizer.Optimizer) -> list[str]:
    """Return the lines of a program that update one parameter."""
    with oarlock.Program() as program:
        w = oarlock.layer.create_parameter([3, 2], name="w", initializer=oarlock.initializer.constant(0.0))
        optimizer.minimize(oarlock.op.reduce_sum(oarlock.op.multiply(w, w)))
    text = program.to_text(source=False)
    states = re.findall(r"^  state .*$", text, re.MULTILINE)
    return [line.removeprefix("  ") for line in (*states, *text[text.index("\n  update:") :].rstrip("}\n").splitlines())]


def first_rates(example: str) -> list[float]:
    with oarlock.Program() as program:
        b = oarlock.layer.create_parameter([], name="b", initializer=oarlock.initializer.constant(1.0))
        schedule = eval(example, dict(vars(oarlock.optimizer.schedule)))  # noqa: S307  one of SCHEDULES
        oarlock.optimizer.SGD(schedule).minimize(oarlock.op.multiply(b, oarlock.op.full(shape=(), value=0.0)))
    scope, executor = oarlock.init(program, oarlock.Scope()), oarlock.Executor()
    return [float(executor.run(program, {}, ["sgd_0.learning_rate"], scope=scope, training=True)[0]) for _ in range(8)]
