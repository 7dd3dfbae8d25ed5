"""The example inputs of a module: their structure, their leaves by name, and which of their sizes are symbols."""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch.export import Dim

from oarlock.backend.torch.private import pytree
from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.size import is_symbol
from oarlock.suggestions import did_you_mean

__all__ = ["Example", "Leaf", "label_outputs", "name_leaves", "read_example"]

# Structure


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


# Examples


@dataclass
class Leaf:
    """One input value of a module: its path, and the symbols of a tensor's sizes by axis."""

    name: str
    value: object
    symbols: dict[int, str] = field(default_factory=dict)


@dataclass
class Example:
    """The arguments of one call. `args` and `kwargs` are in the order of the signature; `leaves` in the order of PyTorch's pytree."""

    args: tuple[object, ...]
    kwargs: dict[str, object]
    leaves: list[Leaf]
    spec: pytree.TreeSpec
    signature: inspect.Signature

    def dynamic_shapes(self) -> dict[str, object] | None:
        """Return the variable sizes in the format of `torch.export`."""
        if not any(leaf.symbols for leaf in self.leaves):
            return None
        specs = [dict.fromkeys(leaf.symbols, Dim.DYNAMIC) or None for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(specs, self.spec)
        return _by_parameter(self.signature, args, kwargs)


def read_example(forward: object, example: object, dynamic: object) -> Example:
    """Read the example of a call of `forward`: one tensor, a tuple of arguments, or a dict of arguments by name. Raises ArgumentError."""
    signature = inspect.signature(forward)  # type: ignore[arg-type]
    if isinstance(example, Mapping) and all(isinstance(name, str) for name in example):
        args, kwargs = (), dict(example)
    else:
        args, kwargs = (tuple(example) if isinstance(example, tuple) else (example,)), {}
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(
            f"from_torch: the example does not fit the module: {error}",
            location=here(),
            contract=f"forward{signature}",
            hint="pass one tensor, a tuple of arguments, or a dict of arguments by name",
        ) from None
    args, kwargs = bound.args, bound.kwargs
    named = [pair for name, value in _named(signature, args, kwargs) for pair in name_leaves(value, name)]
    leaves = [Leaf(name, value) for name, value in named]
    _, spec = pytree.tree_flatten((args, kwargs))
    _mark(leaves, signature, args, kwargs, dynamic)
    _enlarge(leaves)
    args, kwargs = pytree.tree_unflatten([leaf.value for leaf in leaves], spec)
    return Example(args, kwargs, leaves, spec, signature)


def _named(signature: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]) -> list[tuple[str, object]]:
    """Return the arguments by the names of their parameters; the arguments of `*args` are numbered."""
    names: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}.{number}" for number in range(len(args) - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    return [*zip(names, args, strict=False), *kwargs.items()]


def _by_parameter(signature: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments in the naming of `torch.export`: `*args` is one tuple."""
    names = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    found = dict(zip(names, args, strict=False))
    rest = next((parameter.name for parameter in signature.parameters.values() if parameter.kind is parameter.VAR_POSITIONAL), None)
    if rest is not None and len(args) > len(names):
        found[rest] = tuple(args[len(names) :])
    return {**found, **kwargs}


def _mark(leaves: list[Leaf], signature: inspect.Signature, args: tuple, kwargs: dict, dynamic: object) -> None:
    """Set the symbols of the leaves from `dynamic`."""
    if dynamic is None:
        return
    if isinstance(dynamic, str):
        for leaf in leaves:
            if isinstance(leaf.value, torch.Tensor) and leaf.value.ndim:
                leaf.symbols[0] = _symbol(dynamic)
        return
    if isinstance(dynamic, tuple | list):
        dynamic = dict(zip((name for name, _ in _named(signature, args, kwargs)), dynamic, strict=False))
    if not isinstance(dynamic, Mapping):
        raise _refuse(f"it is {type(dynamic).__name__} {dynamic!r:.60}")
    by_name = {leaf.name: leaf for leaf in leaves}
    for name, spec in dynamic.items():
        for path, axes in _axes_of(str(name), spec):
            leaf = by_name.get(path)
            if leaf is None:
                raise _refuse(f'there is no input "{path}"', did_you_mean(path, by_name) or f"inputs: {', '.join(by_name)}")
            _mark_axes(leaf, axes)


def _axes_of(path: str, spec: object) -> list[tuple[str, object]]:
    """Flatten a nested spec to pairs of a leaf's path and its spec."""
    if isinstance(spec, Mapping) and spec and not all(isinstance(axis, int) for axis in spec):
        return [found for key, inner in spec.items() for found in _axes_of(f"{path}.{key}", inner)]
    if isinstance(spec, tuple | list) and any(isinstance(inner, Mapping | tuple | list) for inner in spec):
        return [found for key, inner in enumerate(spec) for found in _axes_of(f"{path}.{key}", inner)]
    return [] if spec is None else [(path, spec)]


def _mark_axes(leaf: Leaf, axes: object) -> None:
    if not isinstance(leaf.value, torch.Tensor):
        raise _refuse(f'"{leaf.name}" is not a tensor')
    rank = leaf.value.ndim
    if isinstance(axes, str):
        axes = {0: axes}
    elif isinstance(axes, tuple | list):
        axes = dict(enumerate(axes))
    if not isinstance(axes, Mapping):
        raise _refuse(f'"{leaf.name}" has {axes!r:.60}')
    for axis, given in axes.items():
        if not isinstance(axis, int) or not -rank <= axis < rank:
            raise _refuse(f'"{leaf.name}" has {rank} dimensions; axis {axis!r:.20} does not exist')
        name = _name_of(given, f"{leaf.name}.{axis % rank}")
        if name is not None:
            leaf.symbols[axis % rank] = name


def _name_of(given: object, otherwise: str) -> str | None:
    """Return the symbol in the spec of one size; None if the size is fixed."""
    if given is None or given is False or given is Dim.STATIC or (isinstance(given, int) and not isinstance(given, bool)):
        return None
    if isinstance(given, str):
        return _symbol(given)
    if given is True or given in (Dim.DYNAMIC, Dim.AUTO):
        return _symbol(otherwise.replace(".", "_"))
    if isinstance(getattr(given, "__name__", None), str):  # a custom Dim
        return _symbol(given.__name__)  # type: ignore[attr-defined]
    raise _refuse(f"{given!r:.60} is not a size")


def _symbol(name: str) -> str:
    if not is_symbol(name) or not name.isidentifier():
        raise _refuse(f"{name!r:.60} is not a valid name of a size")
    return name


def _refuse(why: str, hint: str | None = None) -> ArgumentError:
    return ArgumentError(
        f"from_torch: invalid dynamic: {why}",
        location=here(),
        contract='"n" names the leading axis of each input; {"x": {0: "n", 2: "width"}} names sizes by input and axis',
        hint=hint,
    )


def _enlarge(leaves: list[Leaf]) -> None:
    """Duplicate elements along symbolic axes of size 1: PyTorch treats a size of 1 as fixed."""
    for name in {symbol for leaf in leaves for symbol in leaf.symbols.values()}:
        sizes = {leaf.value.shape[axis] for leaf in leaves for axis, symbol in leaf.symbols.items() if symbol == name}  # type: ignore[attr-defined]
        if len(sizes) > 1:
            raise _refuse(f'"{name}" is {" and ".join(str(size) for size in sorted(sizes))} in the example')
        if 0 in sizes:
            raise _refuse(f'"{name}" is 0 in the example', "use an example with at least 2")
    for leaf in leaves:
        for axis in leaf.symbols:
            assert isinstance(leaf.value, torch.Tensor)
            if leaf.value.shape[axis] == 1:
                leaf.value = torch.cat([leaf.value, leaf.value], dim=axis)
