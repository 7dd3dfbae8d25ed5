"""`from_torch`: a PyTorch module as a program with its parameters, and as a layer; `to_torch_state`: its values as a state dict again."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch.export import ExportedProgram

from oarlock.backend.torch.private import pytree
from oarlock.errors import ArgumentError, DTypeError, UnsetVarError, UnsupportedError
from oarlock.interop.torch.archive import read_archive
from oarlock.interop.torch.example import Example, label_outputs, read_example
from oarlock.interop.torch.export import Exported, export_module, find_aliases, read_program, require_module
from oarlock.interop.torch.graph import Graph, Input, write_graph
from oarlock.interop.torch.report import Report
from oarlock.interop.torch.state import legal_name
from oarlock.interop.weights import find_tied_names
from oarlock.io.model import Model
from oarlock.ir.block_stack import current_block
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.program import Program
from oarlock.ir.var import Var, is_among
from oarlock.layer.inputs import data
from oarlock.op.elementwise import assign
from oarlock.out_of_memory import refuses_memory
from oarlock.registry.creator import require_type
from oarlock.runtime.initialization import init
from oarlock.runtime.ownership import states_of
from oarlock.runtime.scope import Scope
from oarlock.tensor.dtype import from_torch as dtype_from_torch

__all__ = ["ImportedModule", "from_exported", "from_torch", "to_torch_state"]


@dataclass
class ImportedModule(Model):
    """An imported PyTorch module: a `Model` whose program is the module's forward pass, and a layer that can be called on variables.

    `inputs` and `outputs` map paths such as `logits` or `past.0` to variables of the program. `output` is the module's result with
    variables in place of tensors. `report` lists the translation of each operator.
    """

    graph: Graph = field(default=None, repr=False)  # type: ignore[assignment]
    example: Example | None = field(default=None, repr=False)
    report: Report = field(default=None, repr=False)  # type: ignore[assignment]
    inputs: dict[str, Var] = field(default_factory=dict, repr=False)
    outputs: dict[str, Var] = field(default_factory=dict, repr=False)
    output: object = field(default=None, repr=False)

    def __call__(self, *args: object, name: str | None = None, **kwargs: object) -> object:
        """Write the module into the open program and return its result, with variables in place of tensors.

        Parameters keep the module's names, prefixed by `name` and a dot if given; calls with the same `name` share them. They start from
        the module's values at import time. A module with running statistics can be called only once per program. Raises ArgumentError,
        ShapeError, DTypeError or ProgramError if the arguments do not fit the example.
        """
        given = self._read_call(args, kwargs)
        prefix = "" if name is None else f"{require_user_name(name)}."
        written = write_graph(self.graph, current_block().program, given, prefix)
        return pytree.tree_unflatten(written.outputs, self._out_spec)

    @property
    def _out_spec(self) -> pytree.TreeSpec:
        spec = self.graph.exported.program.call_spec.out_spec
        assert spec is not None
        return spec

    def _read_call(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> list[object]:
        """Return the arguments of a call in the order of the graph, with a variable for each tensor of the example."""
        if self.example is not None:
            try:
                bound = self.example.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise ArgumentError(
                    f"{self.graph.exported.name}: {error}", location=here(), contract=f"forward{self.example.signature}"
                ) from None
            args, kwargs = bound.args, bound.kwargs
        leaves, _ = pytree.tree_flatten((args, dict(kwargs)))
        if len(leaves) != len(self.graph.inputs):
            raise ArgumentError(
                f"{self.graph.exported.name} takes {len(self.graph.inputs)} values, not {len(leaves)}",
                location=here(),
                contract=", ".join(item.name for item in self.graph.inputs),
            )
        return [_check_argument(item, leaf, self.graph.exported.name) for item, leaf in zip(self.graph.inputs, leaves, strict=True)]


def _check_argument(item: Input, given: object, name: str) -> object:
    if not item.is_tensor:
        if given != item.traced:
            raise ArgumentError(
                f"{name}: {item.name} is {given!r:.60}, but the module was imported for {item.traced!r:.60}",
                location=here(),
                contract="arguments that are not tensors are fixed at import",
                hint="import the module again with this value in the example",
            )
        return item.traced
    var = require_type(given, f"{name}: {item.name}")
    dtype = dtype_from_torch(item.traced.dtype)  # type: ignore[attr-defined]
    if var.dtype is not dtype:
        raise DTypeError(f"{name}: {item.name} must be {dtype}, not {var.dtype}", location=here(), given=[var.describe()])
    return var


@refuses_memory
def from_torch(
    module: torch.nn.Module | ExportedProgram | str | os.PathLike[str],
    example: object = None,
    *,
    dynamic: object = None,
    training: bool = True,
    seed: int = 0,
) -> ImportedModule:
    """Import a PyTorch module as a program with its parameters, through `torch.export`.

        model = ol.from_torch(net, image)                                    # image: a tensor; (image, mask); {"image": image}
        model = ol.from_torch(net, image, dynamic="n")                       # any number of rows
        model = ol.from_torch(net, {"ids": ids}, dynamic={"ids": {0: "n", 1: "t"}})
        ol.infer(model, {"image": image}); ol.save_model(model, path)
        with ol.Program(): features = model(ol.layer.data("image", [2]))     # a layer of another program
        model = ol.from_torch("model.pt2")                                   # a file of torch.export.save; no code in it is run

    Parameters and buffers keep the module's names; their values are copied. Tied parameters stay tied, frozen ones stay frozen, and
    gradients stop where PyTorch stops them. `dynamic` names the sizes that are symbols; all other sizes are fixed to the example's. With
    `training=True`, dropout and batch norm act as in PyTorch, in training and in inference; with `training=False`, they always act as in
    inference. Buffer updates are applied at the end of a training step. `seed` is the seed of the program.

    Raises ArgumentError if the example or the sizes do not fit, and UnsupportedError, before anything is created, with all unsupported
    operators; for a file also MissingFileError, ReadError, FormatError or LimitError.
    """
    if isinstance(module, str | os.PathLike):
        return from_exported(read_archive(module), seed=seed, trusted=False)
    if isinstance(module, ExportedProgram):
        return from_exported(module, seed=seed)
    module = require_module(module)
    read = read_example(module.forward, example, dynamic)
    exported = export_module(module, read, training=training)
    return _import(exported, _traced(exported, read), read, seed)


def from_exported(program: ExportedProgram, *, seed: int = 0, trusted: bool = True) -> ImportedModule:
    """Import an exported program, like `from_torch`. If it is not `trusted`, only operators with a rule are evaluated."""
    exported = read_program(program, name="the exported program", trusted=trusted)
    return _import(exported, _inputs_of(exported), None, seed)


def _import(exported: Exported, inputs: list[Input], read: Example | None, seed: int) -> ImportedModule:
    graph = Graph(exported, inputs, label_outputs(exported.program.call_spec.out_spec))  # type: ignore[arg-type]
    program = Program(seed=seed)
    with program:
        variables = {item.name: _declare(item, exported) for item in inputs if item.is_tensor}
        written = write_graph(graph, program, [variables.get(item.name, item.traced) for item in inputs])
        outputs = [_target(value, program) for value in written.outputs]
    labelled = {label: var for label, var in zip(graph.labels, outputs, strict=True) if isinstance(var, Var)}
    program.targets = dict(labelled)
    output = pytree.tree_unflatten(outputs, exported.program.call_spec.out_spec)  # type: ignore[arg-type]
    return ImportedModule(
        program,
        init(program, Scope()),
        graph=graph,
        example=read,
        report=written.report,
        inputs=variables,
        outputs=labelled,
        output=output,
    )


def _target(value: object, program: Program) -> object:
    """Return an output as a variable that an op defines and no other output uses."""
    return assign(value) if isinstance(value, Var) and (value.op is None or is_among(value, program.targets.values())) else value


def _traced(exported: Exported, example: Example) -> list[Input]:
    """Return the inputs of the graph, named after the example's leaves. Raises UnsupportedError if the export fixed a symbolic size."""
    traced = _placeholders(exported)
    assert len(traced) == len(example.leaves)
    inputs = [Input(leaf.name, value, leaf.symbols) for leaf, (_, value) in zip(example.leaves, traced, strict=True)]
    fixed = [
        f'axis {axis} of "{item.name}" should be {name}, but is {int(item.traced.shape[axis])}'  # type: ignore[attr-defined]
        for item in inputs
        for axis, name in item.symbols.items()
        if not isinstance(item.traced.shape[axis], torch.SymInt)  # type: ignore[attr-defined]
    ]
    if fixed:
        raise UnsupportedError(
            f"from_torch: {exported.name} fixes a size that dynamic declares as a symbol",
            location=here(),
            given=fixed,
            hint="remove that size from dynamic, or compute with x.shape in the module instead of a number",
        )
    return inputs


def _inputs_of(exported: Exported) -> list[Input]:
    """Return the inputs of an ExportedProgram. Its symbols are named n, then after the input and axis."""
    inputs = [Input(name, value) for name, value in _placeholders(exported)]
    names: dict[object, str] = {}
    for item in inputs:
        if isinstance(item.traced, torch.Tensor):
            for axis, size in enumerate(item.traced.shape):
                if (
                    isinstance(size, torch.SymInt) and size.node.expr.free_symbols
                ):  # else it became a number when the graph was made functional
                    first = "n" if axis == 0 and "n" not in names.values() else f"{item.name}_{axis}".replace(".", "_")
                    item.symbols[axis] = names.setdefault(size.node.expr, first)
    return inputs


def _placeholders(exported: Exported) -> list[tuple[str, object]]:
    """Return the inputs that a caller passes: pairs of the name in the graph, and the traced tensor or value."""
    nodes = {node.name: node for node in exported.program.graph.nodes if node.op == "placeholder"}
    found = []
    for spec in exported.program.graph_signature.input_specs:
        if spec.kind.name == "USER_INPUT":
            value = nodes[spec.arg.name].meta.get("val")
            found.append((spec.arg.name, value if isinstance(value, torch.Tensor) else getattr(spec.arg, "value", value)))
    return found


def _declare(item: Input, exported: Exported) -> Var:
    """Declare an input as in the example, with its symbols by name."""
    assert isinstance(item.traced, torch.Tensor)
    dtype = dtype_from_torch(item.traced.dtype)
    if dtype is None:
        raise UnsupportedError(
            f'from_torch: the input "{item.name}" is {str(item.traced.dtype).removeprefix("torch.")}, which programs do not support',
            location=here(),
        )
    shape = [item.symbols.get(axis, size) for axis, size in enumerate(item.traced.shape)]
    name = item.name if item.name not in exported.state else f"input.{item.name}"
    return data(name, [size if isinstance(size, str) else int(size) for size in shape], dtype, batch=None)


# State dicts


def to_torch_state(
    model: object, like: ImportedModule | torch.nn.Module | None = None, *, name: str | None = None
) -> dict[str, torch.Tensor]:
    """Return the values of `model` as a state dict for the module's `load_state_dict`. Values are copies; tied ones appear under all names.

        net.load_state_dict(ol.to_torch_state(model))                        # a model of `from_torch`, trained in its scope
        result = ol.train(cost, data)
        net.load_state_dict(ol.to_torch_state(result, net))                  # the module is a layer of another program

    `model` is the result of `from_torch`, `ol.load_model` or `ol.train`, or a scope. `like`, the module or its import, selects the values
    to return; tensors that the program does not use are taken from `like`. Without it, all persistent values are returned except the
    optimizer's state. `name` is the name of the layer in another program.

    Raises ArgumentError if `model` has no values, and UnsetVarError if one is not set.
    """
    scope, program = _scope_of(model), getattr(model, "program", None)
    like = model if like is None and isinstance(model, ImportedModule) else like
    prefix = "" if name is None else f"{name}."
    if like is None:
        if not isinstance(program, Program):
            raise ArgumentError(
                "to_torch_state: a scope has no names of module tensors", location=here(), hint="use to_torch_state(scope, module)"
            )
        own = dict(_own_names(program, prefix))
        tied = find_tied_names(program, scope)
        aliases = {key.removeprefix(prefix): var for key, var in tied.items() if key.startswith(prefix)}
        return {
            key: _value(scope, var) for key, var in {**own, **{key: var for key, var in aliases.items() if var in own.values()}}.items()
        }
    state = like.graph.exported.state if isinstance(like, ImportedModule) else like.state_dict(keep_vars=True)
    state = {key: value for key, value in state.items() if isinstance(value, torch.Tensor)}
    aliases = find_aliases(state)
    found: dict[str, torch.Tensor] = {}
    for key, value in state.items():
        var = legal_name(prefix + aliases.get(key, key))
        start = like.graph.exported.copies.get(aliases.get(key, key), value) if isinstance(like, ImportedModule) else value
        found[key] = _value(scope, var) if var in scope else start.detach().cpu().clone()
    return found


def _scope_of(model: object) -> Scope:
    for holder in ("scope", "parameters"):
        if isinstance(getattr(model, holder, None), Scope):
            return getattr(model, holder)
    if isinstance(model, Scope):
        return model
    raise ArgumentError(f"to_torch_state takes a model, a result of ol.train or a scope, not {type(model).__name__}", location=here())


def _own_names(program: Program, prefix: str) -> Iterator[tuple[str, str]]:
    """Iterate over state dict keys and their variables: the program's persistent values, without internal and optimizer state."""
    left_out = {var.name for var in states_of(program)}
    for var in program.persistables():
        if var.name.startswith(prefix) and "@" not in var.name and var.name not in left_out:
            yield var.name.removeprefix(prefix), var.name


def _value(scope: Scope, name: str) -> torch.Tensor:
    found = scope.find_var(name)
    if found is None or not found.is_set or not isinstance(found.value, torch.Tensor):
        raise UnsetVarError(f'the parameter "{name}" has no value', hint="initialize it with ol.init(program, scope)")
    return found.value.detach().cpu().clone()
