"""`to_onnx`: write a program, its predictions or its training step, as an ONNX file for any ONNX runtime."""

import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy

from oarlock.errors import ArgumentError, ProgramError, UnsetVarError
from oarlock.interop.onnx.export_graph import Graph, Shared, Value, numpy_dtype
from oarlock.interop.onnx.export_lowering import Lowering
from oarlock.interop.onnx.export_model import IR_VERSIONS, write_model, write_model_file
from oarlock.interop.onnx.export_rules.randomness import TRIP, draw_path, key_name
from oarlock.interop.onnx.package import get_package
from oarlock.ir.location import here
from oarlock.ir.names import next_name
from oarlock.ir.program import Program
from oarlock.ir.traversal import needed_ops, walk
from oarlock.ir.var import Var
from oarlock.passes.pruning import prune, remove_dead_code
from oarlock.registry.catalogue import standard
from oarlock.registry.type_check import require_legal
from oarlock.runtime.initialization import initial_value
from oarlock.runtime.random import key_of
from oarlock.runtime.scope import Scope, frozen_in

__all__ = ["Exported", "to_onnx"]


@dataclass(frozen=True)
class Exported:
    """The inputs and outputs of an exported model, by name and in order, and its state."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state: dict[str, str]
    """For a training step: inputs mapped to the outputs to feed them with in the next step."""
    first: dict[str, numpy.ndarray] = field(default_factory=dict, repr=False)
    """The known initial values of the state."""
    seed: int = 0
    random: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The blocks around each random operator, innermost first; "*" before a loop is its iteration."""

    def keys(self, draws: int, *, trips: int | None = None) -> dict[str, numpy.ndarray]:
        """Return a feed of keys with which random operators draw the same numbers as an Oarlock run after `draws` earlier drawing runs.

        An operator in a loop has a key for each iteration; `trips` is the largest number of iterations, or more. Other keys give other
        draws: any values that differ from step to step are valid. Raises ArgumentError if `trips` is required but not given.
        """
        return {key_name(item): self._key(item, path, draws, trips) for item, path in self.random.items()}

    def _key(self, random_id: int, path: tuple[str, ...], draws: int, trips: int | None) -> numpy.ndarray:
        depth = path.count(TRIP)
        if depth and trips is None:
            raise ArgumentError(
                f"{key_name(random_id)} needs a key for each iteration of a loop, but trips is not given",
                location=here(),
                hint="pass the largest number of iterations: exported.keys(draws, trips=100)",
            )
        keys = numpy.empty((trips,) * depth, dtype=numpy.int64)  # type: ignore[arg-type]
        for place in numpy.ndindex(keys.shape):
            inward = iter(reversed(place))  # `path` is innermost first, `place` outermost first
            keys[place] = key_of(self.seed, "op", random_id, draws, *(str(next(inward)) if part == TRIP else part for part in path))
        return keys


def to_onnx(
    target: object, path: str | os.PathLike[str] | io.BufferedIOBase, parameters: object = None, *, opset: int = 18, training: bool = False
) -> Exported:
    """Write a program and its values as an ONNX file of standard operators.

        to_onnx(model, path)                    a result of `ol.load_model` or `ol.train`: its targets
        to_onnx(predict, path, parameters)      a variable; several as a list or as {"label": variable}
        to_onnx(program, path, parameters)      the targets of a program
        to_onnx(program, path, parameters, training=True)   its whole training step

    Inputs keep their names and outputs the labels of the targets; symbolic sizes become named dimensions. A ragged input becomes its
    elements and its row splits; complex numbers have their real and imaginary parts in a last axis of 2. If `parameters` is None, the
    initial values of the program are used. Values of more than 2 GiB are written to a second file, `NAME.data`, as ONNX messages cannot
    hold them.

    A training step takes each persistent variable that it updates, `w`, as an input, and returns its next value as `w@NEXT`;
    `Exported.first` has the initial values. Each of its random operators has an input for its key, such as `random_0@KEY`; `Exported.keys`
    returns the keys that reproduce Oarlock's draws.

    Indices and labels out of range raise in Oarlock but are undefined in an ONNX runtime, and a loop ends after `max_trips` iterations
    instead of raising. `opset` is 17 to 23. Raises ArgumentError for another opset or a `target` that is not a program, ProgramError with
    all ops that ONNX cannot express, UnsetVarError for a missing value, and the errors of writing a file.
    """
    get_package()
    if opset not in IR_VERSIONS:
        raise ArgumentError(f"opset must be {min(IR_VERSIONS)} to {max(IR_VERSIONS)}, not {opset!r:.40}", location=here())
    program, scope = _program_of(target, training=training), _scope_of(target, parameters)
    export = _Export(program, scope, opset, training=training)
    model = export.write()
    write_model_file(model, path)
    return export.exported()


def _program_of(target: object, *, training: bool) -> Program:
    """Return a copy of the program to export: pruned to its targets or, for a training step, complete.

    Raises ArgumentError and ProgramError.
    """
    program = target if isinstance(target, Program) else getattr(target, "program", None)
    targets: Any = program.targets if isinstance(program, Program) else None
    if targets is None:
        targets = {target.name: target} if isinstance(target, Var) else target
        if isinstance(targets, list | tuple) and targets and all(isinstance(item, Var) for item in targets):
            targets = {item.name: item for item in targets}
        if not isinstance(targets, Mapping) or not targets or not all(isinstance(item, Var) for item in targets.values()):
            raise ArgumentError(
                f"to_onnx takes a model, a program or variables, not {type(target).__name__} {target!r:.60}", location=here()
            )
        program = next(iter(targets.values())).block.program
    assert isinstance(program, Program)
    require_legal(program, standard)
    if not training:
        if not targets:
            raise ArgumentError(
                "the program has no targets to export",
                location=here(),
                hint='use to_onnx(predict, path, parameters), or set program.targets["predict"] = predict',
            )
        return prune(program, targets)
    if not program.is_training:
        raise ProgramError(
            "the program has no updates, so it has no training step",
            location=here(),
            hint="add one with ol.optimizer.SGD(0.1).minimize(cost), or export the predictions without training=True",
        )
    whole = program.clone()
    whole.targets = {label: whole.main.vars[var.name] for label, var in targets.items()}
    return whole


def _scope_of(target: object, parameters: object) -> Scope:
    """Return the scope of the values. Raises ArgumentError."""
    for holder in (parameters, target):
        if isinstance(holder, Scope):
            return holder
        for name in ("scope", "parameters"):
            if isinstance(getattr(holder, name, None), Scope):
                return getattr(holder, name)
    scope = Scope()
    if isinstance(parameters, Mapping):
        for name, value in parameters.items():
            scope.set(name, value)
    elif parameters is not None:
        raise ArgumentError(
            f"parameters must be a scope, the result of ol.train, or a dict of arrays, not {type(parameters).__name__}", location=here()
        )
    return scope


class _Export:
    """The export of one program to a graph."""

    def __init__(self, program: Program, scope: Scope, opset: int, *, training: bool):
        self.program, self.scope, self.training = program, scope, training
        main = program.main
        frozen = frozen_in(scope)
        tail = [op for op in main.tail if op.writes[0].name.partition("@")[0] not in frozen] if training else []
        main.keep([*(op for op in main.ops if not op.is_commit), *tail])
        remove_dead_code(main, program.targets.values())
        self.state = {op.writes[0]: op.reads[0] for op in main.tail}
        self.graph = Graph(Shared(opset, training))
        self.first: dict[str, numpy.ndarray] = {}
        self.outputs = [*program.targets.items(), *((next_name(var.name), value) for var, value in self.state.items())]

    def write(self) -> Any:
        """Return the ONNX model. Raises ProgramError with all ops that have no form in ONNX."""
        main, graph = self.program.main, self.graph
        labels: dict[Var, str] = {}
        for label, var in self.outputs:
            if var.op is not None:
                labels.setdefault(var, label)
        lowering = Lowering(standard, labels)
        graph.shared.taken.update(label for label, _ in self.outputs)
        ops = needed_ops([op for op in main.ops if not op.is_commit], [var for _, var in self.outputs])
        self._give(lowering, {var for op in ops for var in op.reads} | {var for _, var in self.outputs})
        lowering.ops(graph, ops)
        for _, var in self.outputs:
            lowering.require_whole(var)
        lowering.require_all(graph.opset)
        for label, var in self.outputs:
            self._output(lowering, label, var)
        drawing = {int(op.attributes["random_id"]): op for op in walk(main) if "random_id" in op.attributes}  # type: ignore[call-overload]
        self.random = {number: draw_path(drawing[number]) for number in sorted(drawing)}
        model = write_model(graph, "training_step" if self.training else "inference")
        if self.state:
            state = {var.name: next_name(var.name) for var in self.state}
            get_package().helper.set_model_props(model, {"oarlock.state": json.dumps(state)})
        return model

    def _give(self, lowering: Lowering, read: set[Var]) -> None:
        """Declare the inputs, the constant values and the state."""
        graph, main = self.graph, self.program.main
        cuts = {splits for var, levels in self.program.ragged_inputs().items() if var in read for splits in levels}
        for var in main.inputs:
            if var in read or var in cuts or not self.training:
                self._input(lowering, var)
                if var.initializer is not None:
                    graph.shared.initializers[var.name] = _array(initial_value(var, self.program.seed), var)
        for var in self.program.persistables():
            if var not in read and var not in self.state:
                continue
            value = self._value(var)
            if var in self.state:
                self._input(lowering, var)
                if value is not None:
                    self.first[var.name] = value
                continue
            if value is None:
                raise UnsetVarError(
                    f'the parameter "{var.name}" has no value',
                    given=[var.describe()],
                    hint="pass the parameters of ol.train, or initialize them with ol.init(program, scope)",
                )
            graph.shared.initializers[var.name] = value
            graph.shared.taken.add(var.name)
            lowering.give(graph, var, var.name)

    def _input(self, lowering: Lowering, var: Var) -> None:
        self.graph.shared.taken.add(var.name)
        self.graph.shared.inputs.append(lowering.give(self.graph, var, var.name))

    def _value(self, var: Var) -> numpy.ndarray | None:
        """Return the value of a persistent variable, from the scope or its initializer; None if there is neither."""
        found = self.scope.find_var(var.name)
        if found is not None and found.is_set:
            found.settle(var.dtype)
            value = found.value
        elif var.initializer is not None:
            value = initial_value(var, self.program.seed)
        else:
            return None
        return _array(value, var)

    def _output(self, lowering: Lowering, label: str, var: Var) -> None:
        value = lowering.value(var)
        name = value.name
        given = {item.name for item in self.graph.outputs}
        if name != label or name in given or name in {item.name for item in self.graph.shared.inputs}:
            name = label if label not in given and label not in self._defined() else self.graph.fresh(label)
            self.graph.append("Identity", [value], [name], {})
        self.graph.outputs.append(Value.of(var, name))

    def _defined(self) -> set[str]:
        """Return the names of all values that are not outputs."""
        return {value.name for value in self.graph.shared.inputs} | {name for node in self.graph.nodes for name in node.outputs}

    def exported(self) -> Exported:
        shared = self.graph.shared
        fed = tuple(value.name for value in shared.inputs)
        return Exported(
            inputs=fed,
            outputs=tuple(value.name for value in self.graph.outputs),
            state={var.name: next_name(var.name) for var in self.state},
            first=self.first,
            seed=self.program.seed,
            random={item: path for item, path in self.random.items() if key_name(item) in fed},
        )


def _array(value: Any, var: Var) -> numpy.ndarray:
    """Convert a tensor to an array: complex numbers as their parts, and bfloat16, which NumPy lacks, with the dtype of `ml_dtypes`."""
    import torch

    if value.is_complex():
        value = torch.view_as_real(value)
    if value.dtype is torch.bfloat16:
        return value.detach().cpu().contiguous().view(torch.int16).numpy().view(numpy_dtype(var.dtype))
    return value.detach().cpu().numpy()
