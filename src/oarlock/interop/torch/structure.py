"""The structure of inputs and outputs: nested tuples, dicts and dataclasses, whose tensors are named by their paths."""

import dataclasses
from collections.abc import Iterator, Mapping

from oarlock.backend.torch.private import pytree

__all__ = ["label_outputs", "name_leaves"]


def name_leaves(value: object, name: str) -> list[tuple[str, object]]:
    """Return the leaves of `value` in PyTorch's order, named by path, such as `past.0.key`."""
    leaves, _ = pytree.tree_flatten(value)
    found = list(_walk(value, name))
    if [id(leaf) for _, leaf in found] != [id(leaf) for leaf in leaves]:  # a container that only PyTorch can flatten
        return [(f"{name}.{number}", leaf) for number, leaf in enumerate(leaves)]
    return found


def label_outputs(spec: pytree.TreeSpec) -> list[str]:
    """Return a label for each output: `logits`, `past.0`; `output` for a single output, `output.0` in a tuple."""
    marks = [object() for _ in range(spec.num_leaves)]
    try:
        found = {id(leaf): path for path, leaf in name_leaves(pytree.tree_unflatten(marks, spec), "")}
    except Exception:
        found = {}
    paths = [found.get(id(mark), str(number)).removeprefix(".") for number, mark in enumerate(marks)]
    labels = [f"output.{path}" if path[:1].isdigit() else path or "output" for path in paths]
    return labels if len(set(labels)) == len(labels) else [f"output.{number}" for number in range(len(labels))]


def _walk(value: object, path: str) -> Iterator[tuple[str, object]]:
    parts = _parts(value)
    if parts is None:
        yield path, value
        return
    for key, part in parts:
        yield from _walk(part, f"{path}.{key}")


def _parts(value: object) -> list[tuple[str, object]] | None:
    """Return the items of a container by key; None if PyTorch does not treat `value` as a container."""
    if pytree._get_node_type(value) not in pytree.SUPPORTED_NODES:
        return None
    if isinstance(value, Mapping):
        return [(str(key), part) for key, part in value.items()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True))  # type: ignore[attr-defined]
    if isinstance(value, list | tuple):
        return [(str(number), part) for number, part in enumerate(value)]
    if dataclasses.is_dataclass(value):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return None
