"""Mark where gradients stop, before the graph is made functional: decompositions lose this."""

import copy
import operator
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.fx import GraphModule, Node

from oarlock.interop.torch.arguments import map_values

__all__ = ["STOP", "marked"]

_REGION = "wrap_with_set_grad_enabled"


@torch.library.custom_op("oarlock::stop_gradient", mutates_args=())
def _stop_gradient(x: torch.Tensor) -> torch.Tensor:
    """Return `x` without a gradient. This op only marks the graph while it is made functional."""
    return x.clone()


@_stop_gradient.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


STOP = "oarlock.stop_gradient.default"
"""The overload that marks values without a gradient."""


@contextmanager
def marked(module: GraphModule) -> Iterator[None]:
    """Mark `module` within the context; restore it afterwards."""
    graphs = {inner: inner.graph for inner in module.modules() if isinstance(inner, GraphModule)}
    names = {inner: set(inner._modules) for inner in graphs}
    for inner, graph in graphs.items():
        inner.graph = copy.deepcopy(graph)
    try:
        _mark(module)
        yield
    finally:
        for inner, graph in graphs.items():
            inner.graph = graph
            for name in set(inner._modules) - names[inner]:
                delattr(inner, name)


def _mark(module: GraphModule) -> None:
    """Mark the results of `torch.no_grad()` regions and of `detach`, as decompositions drop both.

    Regions are inlined into the enclosing graph, so that their ops keep the source lines of the module.
    """
    for inner in [inner for inner in module.modules() if isinstance(inner, GraphModule)]:
        while _write_out_regions(inner):
            pass
        for node in list(inner.graph.nodes):
            if str(node.target) in ("aten.detach.default", "aten.detach_.default"):
                node.target = torch.ops.oarlock.stop_gradient.default
        inner.graph.lint()
        inner.recompile()


def _write_out_regions(module: GraphModule) -> bool:
    """Inline the regions of `module`, without those nested in them; return whether there were any."""
    regions = [node for node in module.graph.nodes if getattr(node.target, "__name__", "") == _REGION]
    for node in regions:
        without, body, *given = node.args[0] is False, *node.args[1:]
        results = _write_out(module, node, getattr(module, str(body.target)), given)
        for user in list(node.users):
            number = user.args[1] if user.target is operator.getitem else None
            result = results if number is None else results[number]  # type: ignore[index]
            user.replace_all_uses_with(_stopped(module, result, user) if without else result)
            module.graph.erase_node(user)
        module.graph.erase_node(node)
    return bool(regions)


def _write_out(module: GraphModule, node: Node, body: GraphModule, given: list[Node]) -> object:
    """Inline the graph of `body` before `node` and return its result."""
    values: dict[Node, object] = {}
    inputs = iter(given)
    with module.graph.inserting_before(node):
        for inner in body.graph.nodes:
            if inner.op == "placeholder":
                values[inner] = next(inputs)
            elif inner.op == "output":
                return map_values(inner.args[0], lambda item: values[item] if isinstance(item, Node) else item)
            else:
                values[inner] = module.graph.node_copy(inner, lambda item: values[item])  # type: ignore[arg-type, return-value]
                if inner.op == "get_attr":
                    values[inner].target = _moved(module, body, str(inner.target))  # type: ignore[attr-defined]
    raise AssertionError("a graph ends with its output")


def _moved(module: GraphModule, body: GraphModule, path: str) -> str:
    """Make the attribute of `body` at `path` an attribute of `module`; return its new name."""
    found: object = body
    for part in path.split("."):
        found = getattr(found, part)
    name = next(name for name in _names(path) if not hasattr(module, name))
    setattr(module, name, found)
    return name


def _names(path: str) -> Iterator[str]:
    number = 0
    while True:
        yield f"{path.replace('.', '_')}_{number}"
        number += 1


def _stopped(module: GraphModule, node: object, before: Node) -> object:
    value = node.meta.get("val") if isinstance(node, Node) else None
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return node
    with module.graph.inserting_before(before):
        stopped = module.graph.call_function(torch.ops.oarlock.stop_gradient.default, (node,))  # type: ignore[arg-type]
    stopped.meta = dict(node.meta)  # type: ignore[union-attr]
    return stopped
