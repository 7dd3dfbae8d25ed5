"""Random draws that a module makes only in training: other runs use their expected value.

A module exported in training always draws: added noise, drawn probabilities, random factors. In evaluation it does not draw at all;
replacing each draw by its expected value gives the result of evaluation.
"""

import torch
from torch.fx import Node

from oarlock import op
from oarlock.backend.torch.private import OpOverload, schema_of
from oarlock.interop.torch.rules.registry import Unsupported
from oarlock.ir.program import Program
from oarlock.ir.var import Var

__all__ = ["draws_numbers", "expected_value", "is_draw", "training_flag"]

_DRAWS = ("bernoulli", "rand", "uniform", "normal", "exponential")


def is_draw(node: Node) -> bool:
    """Return whether `node` draws random numbers. Excludes dropout, whose operator already distinguishes training and inference."""
    target = node.target
    return isinstance(target, OpOverload) and schema_of(target).name.removeprefix("aten::").startswith(_DRAWS)  # type: ignore[arg-type]


def draws_numbers(module: torch.fx.GraphModule) -> bool:
    """Return whether any graph of `module` draws random numbers."""
    graphs = [inner.graph for inner in module.modules() if isinstance(inner, torch.fx.GraphModule)]
    return any(is_draw(node) for graph in graphs for node in graph.nodes)


def expected_value(node: Node, given: dict[str, object]) -> object | None:
    """Return the mean of the draw at `node`: a number or one of the arguments `given`. None if the node is not a draw.

    None also for masks of a constant probability, drawn directly or as `floor(p + u)`: their rules handle inference. Raises Unsupported for
    any other draw.
    """
    name = str(node.target)
    if (
        not is_draw(node)
        or name == "aten.bernoulli.p"
        or all(_probability(floor) is not None for user in node.users for floor in user.users or [user])
    ):
        return None
    if name in ("aten.bernoulli.default", "aten.bernoulli.Tensor"):
        return given.get("p") if isinstance(given.get("p"), Var) else given["self"]
    if name.startswith("aten.randn"):
        return 0.0
    if name == "aten.normal_functional.default":
        return given.get("mean", 0.0)
    if name == "aten.uniform.default":
        return (float(given.get("from", 0.0)) + float(given.get("to", 1.0))) / 2  # type: ignore[arg-type]
    raise Unsupported(
        "it draws random numbers only in training, and their expected value is unknown", hint="from_torch(..., training=False)"
    )


def _probability(node: Node) -> float | None:
    """Return the `p` of `floor(p + u)`, where `u` is a uniform draw; None for any other node."""
    if str(node.target) != "aten.floor.default" or not isinstance(node.args[0], Node):
        return None
    total = node.args[0]
    if str(total.target) not in ("aten.add.Tensor", "aten.add.Scalar"):
        return None
    uniform, p = total.args[:2]
    drawn = isinstance(uniform, Node) and str(uniform.target) in ("aten.rand.default", "aten.rand_like.default")
    return float(p) if drawn and isinstance(p, int | float) and 0.0 <= p <= 1.0 else None


def training_flag(program: Program) -> Var:
    """Return a bool[] variable: whether the run trains. Computed from a dropout of 1, which is 1 in inference and 0 or 2 in training."""
    with program.main:
        one = op.full(shape=(), value=1.0)
        return op.not_equal(op.dropout(one, rate=0.5), one)
