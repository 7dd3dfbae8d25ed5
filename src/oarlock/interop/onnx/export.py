"""`to_onnx`: a program as an ONNX file, which any runtime of ONNX computes: what it predicts, or its whole training step."""

import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy

from oarlock.errors import ArgumentError, ProgramError, UnsetVarError
from oarlock.interop.onnx.export_file import write_model_file
from oarlock.interop.onnx.export_graph import Graph, Shared, Value, numpy_dtype
from oarlock.interop.onnx.export_lowering import Lowering
from oarlock.interop.onnx.export_model import IR_VERSIONS, write_model
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
    """The names and order of an exported model: the names of what is fed and given, and which output is the next value of which input."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state: dict[str, str]
    """Of a training step: the input of each variable that it writes, and the output that gives what to feed the next time."""
    first: dict[str, numpy.ndarray] = field(default_factory=dict, repr=False)
    """The values with which that state begins, as far as they are known."""
    seed: int = 0
    random: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The random operators, and where each draws: the blocks around it, innermost first, "*" before a loop for its trip."""

    def keys(self, draws: int, *, trips: int | None = None) -> dict[str, numpy.ndarray]:
        """A feed with which random operators draw the numbers that our own run draws, which was preceded by `draws` that drew too.

        An operator in a loop has a key for each trip: `trips` are as many as any loop makes, or more. Other numbers give other draws:
        whoever does not need ours may feed any that differ from step to step. Raises ArgumentError where `trips` are needed.
        """
        return {key_name(item): self._key(item, path, draws, trips) for item, path in self.random.items()}

    def _key(self, random_id: int, path: tuple[str, ...], draws: int, trips: int | None) -> numpy.ndarray:
        depth = path.count(TRIP)
        if depth and trips is None:
            raise ArgumentError(
                f"{key_name(random_id)} has a key for each trip of a loop, and nothing says how many there are",
                location=here(),
                hint="exported.keys(draws, trips=100): as many as a loop makes at most",
            )
        keys = numpy.empty((trips,) * depth, dtype=numpy.int64)  # type: ignore[arg-type]
        for place in numpy.ndindex(keys.shape):
            inward = iter(reversed(place))  # the path begins inside, the places outside
            keys[place] = key_of(self.seed, "op", random_id, draws, *(str(next(inward)) if part == TRIP else part for part in path))
        return keys


def to_onnx(
    target: object, path: str | os.PathLike[str] | io.BufferedIOBase, parameters: object = None, *, opset: int = 18, training: bool = False
) -> Exported:
    """Write a program and its values as an ONNX file of standard operators.

        to_onnx(model, path)                    what `ol.load_model` or `ol.train` returned: its targets
        to_onnx(predict, path, parameters)      what a variable needs; several are a list, or {"label": variable}
        to_onnx(program, path, parameters)      the targets of a program
        to_onnx(program, path, parameters, training=True)   its whole training step

    Inputs have their names, and symbols are named dimensions. Outputs are called as targets are. Ragged inputs are their elements and
    their row splits; complex numbers are their parts, real and imaginary, in a last axis of 2. A training step takes each persistable
    variable that it writes, `w`, and gives `w@NEXT`, what to feed the next time; `Exported.first` has what to feed at first. Its random
    operators are each told by an input, `random_0@KEY`, what to draw: `Exported.keys` has the numbers that give our draws, in a loop for
    each trip. Where `parameters` are None, the first values that the program states are taken. Values of more than 2 GiB are written to
    `NAME.data`, beside the file, whose message cannot hold them.

    Indices and labels out of range, which our run refuses, are whatever the runtime makes of them, and a loop that is not done after
    `max_trips` ends. `opset` is 17 to 23. Raises ArgumentError for another one, and for what is no program, ProgramError with every op
    that ONNX has no words for, UnsetVarError for a value that is missing, and what writing a file raises.
    """
    get_package()
    if opset not in IR_VERSIONS:
        raise ArgumentError(f"opset is {min(IR_VERSIONS)} to {max(IR_VERSIONS)}, not {opset!r:.40}", location=here())
    program, scope = _program_of(target, training=training), _scope_of(target, parameters)
    export = _Export(program, scope, opset, training=training)
    model = export.write()
    write_model_file(model, path)
    return export.exported()


def _program_of(target: object, *, training: bool) -> Program:
    """A program of its own to export: pruned to its targets or, for a training step, whole. Raises ArgumentError and ProgramError."""
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
                "the program has no targets, so nothing says what to export",
                location=here(),
                hint='to_onnx(predict, path, parameters), or program.targets["predict"] = predict',
            )
        return prune(program, targets)
    if not program.is_training:
        raise ProgramError(
            "the program updates nothing, so it has no training step",
            location=here(),
            hint="ol.optimizer.SGD(0.1).minimize(cost) writes one; without training=True what it predicts is exported",
        )
    whole = program.clone()
    whole.targets = {label: whole.main.vars[var.name] for label, var in targets.items()}
    return whole


def _scope_of(target: object, parameters: object) -> Scope:
    """Where values are found. Raises ArgumentError."""
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
            f"parameters are a scope, what ol.train returned, or a dict of arrays, not {type(parameters).__name__}", location=here()
        )
    return scope


class _Export:
    """One program on its way into a graph."""

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
        """The model. Raises ProgramError with every op that has no form in ONNX."""
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
        """The inputs, the values that stay as they are, and the state."""
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
                    f'the parameters hold no value of "{var.name}"',
                    given=[var.describe()],
                    hint="ol.train returns parameters; ol.init(program, scope) makes first ones",
                )
            graph.shared.initializers[var.name] = value
            graph.shared.taken.add(var.name)
            lowering.give(graph, var, var.name)

    def _input(self, lowering: Lowering, var: Var) -> None:
        self.graph.shared.taken.add(var.name)
        self.graph.shared.inputs.append(lowering.give(self.graph, var, var.name))

    def _value(self, var: Var) -> numpy.ndarray | None:
        """The value of a persistable variable, in the scope or as the program states it; None where there is none."""
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
        """The names that are taken by values other than outputs."""
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
    """A tensor as an array, complex numbers by their parts; bfloat16, which NumPy has not, by its bits."""
    import torch

    if value.is_complex():
        value = torch.view_as_real(value)
    if value.dtype is torch.bfloat16:
        return value.detach().cpu().contiguous().view(torch.int16).numpy().view(numpy_dtype(var.dtype))
    return value.detach().cpu().numpy()
