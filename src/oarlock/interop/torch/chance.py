"""Random draws of a module in training alone: a run that does not train takes their expected value.

Noise that is added, probabilities that are drawn, numbers by which is multiplied: a module exported in training draws them always, and one
that evaluates has none of them; the expected value in their place gives what that computes.
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
    """Whether `node` draws numbers, other than by dropout, which knows by itself whether a run trains."""
    target = node.target
    return isinstance(target, OpOverload) and schema_of(target).name.removeprefix("aten::").startswith(_DRAWS)  # type: ignore[arg-type]


def draws_numbers(module: torch.fx.GraphModule) -> bool:
    """Whether there is a draw in any graph of `module`."""
    graphs = [inner.graph for inner in module.modules() if isinstance(inner, torch.fx.GraphModule)]
    return any(is_draw(node) for graph in graphs for node in graph.nodes)


def expected_value(node: Node, given: dict[str, object]) -> object | None:
    """The mean of the draw at `node`, a number or the variable among its arguments `given`; None where it is no draw.

    Masks of one probability, be they drawn or `floor(p + u)` of uniform numbers, know it by themselves: their rules say so. Raises
    Unsupported for other draws.
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
        "it draws numbers in training alone, and nothing tells what stands for them in inference", hint="from_torch(..., training=False)"
    )


def _probability(node: Node) -> float | None:
    """The `p` of `floor(p + u)`, where `u` is uniform; None for anything else."""
    if str(node.target) != "aten.floor.default" or not isinstance(node.args[0], Node):
        return None
    total = node.args[0]
    if str(total.target) not in ("aten.add.Tensor", "aten.add.Scalar"):
        return None
    uniform, p = total.args[:2]
    drawn = isinstance(uniform, Node) and str(uniform.target) in ("aten.rand.default", "aten.rand_like.default")
    return float(p) if drawn and isinstance(p, int | float) and 0.0 <= p <= 1.0 else None


def training_flag(program: Program) -> Var:
    """Whether the run trains, bool[]: dropout of a one is a one in no run that does, and 0 or 2 in one that does."""
    with program.main:
        one = op.full(shape=(), value=1.0)
        return op.not_equal(op.dropout(one, rate=0.5), one)
