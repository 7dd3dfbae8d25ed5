"""`from_onnx`: import an ONNX model as a program with its parameters."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import oarlock.interop.onnx.import_rules  # noqa: F401  declares the rules
from oarlock import op
from oarlock.errors import ArgumentError, FormatError, OarlockError, ShapeError
from oarlock.interop.onnx.importer import Importer, Missing, Names, Value
from oarlock.interop.onnx.known_value import Known, known_numbers
from oarlock.interop.onnx.model_file import opsets_of, read_model_file
from oarlock.interop.onnx.program_writer import ProgramWriter, legal_name
from oarlock.interop.onnx.rule import refuse
from oarlock.interop.onnx.tensors import DTYPES, NAMES, ExternalFiles, TensorReader
from oarlock.io.model import Model
from oarlock.ir.location import here
from oarlock.ir.program import Program
from oarlock.ir.size import Shape, Size, add
from oarlock.ir.var import Var, is_among
from oarlock.out_of_memory import refuses_memory
from oarlock.passes.pruning import remove_dead_code
from oarlock.proto.limits import Limits
from oarlock.registry.catalogue import standard
from oarlock.registry.type_check import require_legal
from oarlock.runtime.budget import RunLimits
from oarlock.runtime.scope import Scope
from oarlock.runtime.value import to_tensor
from oarlock.suggestions import did_you_mean, list_names
from oarlock.tensor.dtype import from_torch

__all__ = ["from_onnx"]

_STATISTICS = {"BatchNormalization": (3, 4)}
"""Inputs that are statistics, which are not trained."""


@refuses_memory
def from_onnx(
    path: str | os.PathLike[str],
    *,
    trainable: bool | Collection[str] = False,
    sizes: Mapping[str, Size] | None = None,
    values: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    untrusted: bool = False,
) -> Model:
    """Import an ONNX model as a program with its parameters, which can be printed, trained, saved and run.

    Inputs and outputs keep their names, and float initializers become parameters of the same name; characters that names do not allow
    become dots and underscores. `trainable` selects the parameters to train: a list of names, or True for all except single numbers and the
    statistics of batch normalization. `sizes` replaces symbolic sizes by a number or another name, as in `{"batch": 8}`; unnamed ones are
    named after the input and axis, as in `x.0`. `values` turns inputs into constants, by name. Opsets 17 to 23 are tested; other opsets are
    imported if all their operators are known. External tensors are only read from the model's folder. With `untrusted`, links are rejected
    and the cost of running the model is limited.

    Raises UnsupportedError with all unsupported nodes, before anything is created; MissingFileError, ReadError, FormatError or LimitError
    for an invalid file; ArgumentError if the package `onnx` is not installed or a name is not in the model; ShapeError for invalid `sizes`.
    """
    limits = limits or Limits()
    model = read_model_file(path, limits, untrusted=untrusted)
    reader = TensorReader(ExternalFiles(Path(path).parent, untrusted=untrusted), limits)
    program = Program()
    writer = ProgramWriter(program, _trainable_names(model, trainable))
    importer = Importer(model, writer, reader, limits)
    names = Names(opsets=opsets_of(model))
    with program:
        inputs = _Inputs(importer, dict(sizes or {}), dict(values or {}))
        inputs.declare(names)
        importer.convert_graph(model.graph, names)
        if importer.gaps:
            raise refuse(importer.gaps, Path(path).name, importer.nodes)
        targets = _targets(importer, names)
    program.targets = targets
    remove_dead_code(program.main, targets.values())
    require_legal(program, standard)
    return Model(program, _initial_scope(program, writer), limits=RunLimits() if untrusted else None)


def _trainable_names(model: Any, trainable: bool | Collection[str]) -> frozenset[str]:
    """Return the names of the initializers to train. Raises ArgumentError for an unknown name."""
    floats = [tensor for tensor in model.graph.initializer if tensor.data_type in DTYPES and DTYPES[tensor.data_type].is_floating]
    if not isinstance(trainable, bool):
        known = [tensor.name for tensor in floats]
        for name in trainable:
            if name not in known:
                raise ArgumentError(
                    f"trainable: the model has no float initializer {name!r:.80}",
                    location=here(),
                    given=[f"initializers: {list_names(str(name), known)}" if known else "there are none"],
                    hint=did_you_mean(str(name), known),
                )
        return frozenset(trainable)
    if not trainable:
        return frozenset()
    statistics = {
        node.input[number] for node in model.graph.node for number in _STATISTICS.get(node.op_type, ()) if number < len(node.input)
    }
    return frozenset(tensor.name for tensor in floats if tensor.dims and tensor.name not in statistics)


def _initial_scope(program: Program, writer: ProgramWriter) -> Scope:
    scope = Scope()
    for var in program.persistables():
        if var.name in writer.values:
            scope.var(var.name).give(writer.values[var.name].tensor, own=True)
    return scope


def _targets(importer: Importer, names: Names) -> dict[str, Var]:
    """Return the outputs of the model by label, each as a distinct variable that an op defines."""
    targets: dict[str, Var] = {}
    for output in importer.model.graph.output:
        value = names.get(output.name)
        assert isinstance(value, Var | Known), "there are no gaps"
        var = importer.writer.variable(value)
        if var.op is None or is_among(var, targets.values()):
            var = op.assign(var)
        label = legal_name(output.name)
        targets[label if label not in targets else importer.writer.program.unique(label)] = var
    if not targets:
        raise FormatError("the model has no output")
    return targets


class _Inputs:
    """The inputs of a model, as inputs of the program."""

    def __init__(self, importer: Importer, sizes: dict[str, Size], values: dict[str, Any]):
        self.importer = importer
        self.sizes = sizes
        self.values = values
        self.met: set[str] = set()

    def declare(self, names: Names) -> None:
        """Declare the inputs; those with a value become constants. Raises ArgumentError for unknown names in sizes and values."""
        graph = self.importer.model.graph
        initialized = {tensor.name for tensor in graph.initializer} - self.values.keys()
        inputs = [item for item in graph.input if item.name not in initialized]
        self._require_known("values", self.values, [item.name for item in inputs])
        for item in inputs:
            names.values[item.name] = self._input(item)
        self._require_known("sizes", self.sizes, sorted(self.met))

    def _require_known(self, what: str, given: Mapping[str, Any], known: list[str]) -> None:
        for name in given:
            if name not in known:
                raise ArgumentError(
                    f"{what}: the model has no {'input' if what == 'values' else 'size'} {name!r:.80}",
                    location=here(),
                    given=[f"{'inputs' if what == 'values' else 'sizes'}: {list_names(str(name), known)}" if known else "there are none"],
                    hint=did_you_mean(str(name), known),
                )

    def _input(self, item: Any) -> Value:
        importer = self.importer
        if item.type.WhichOneof("value") != "tensor_type":
            kind = (item.type.WhichOneof("value") or "nothing").removesuffix("_type").replace("_", " ")
            return self._missing(item, f"it is a {kind}; only tensors are supported")
        number = item.type.tensor_type.elem_type
        if number not in DTYPES:
            return self._missing(item, f"tensors of {NAMES.get(number, number)} are not supported")
        if item.name in self.values:
            tensor = to_tensor(self.values[item.name])
            if from_torch(tensor.dtype) is not DTYPES[number]:
                raise ArgumentError(f"values: {item.name!r:.80} must be {DTYPES[number]}, not {from_torch(tensor.dtype)}", location=here())
            return known_numbers(tensor)
        if not item.type.tensor_type.HasField("shape"):
            return self._missing(item, "its number of dimensions is unknown")
        shape = self._shape(item)
        if len(shape) > importer.limits.rank or any(isinstance(size, int) and size > importer.limits.size for size in shape):
            return self._missing(item, f"its shape exceeds the limits: {list(shape[:16])}")
        main = importer.writer.program.main
        var = main.new_var(importer.writer.free_name(item.name), DTYPES[number], shape, stop_gradient=True)
        main.inputs.append(var)
        importer.writer.note_sizes(var)
        return var

    def _missing(self, item: Any, reason: str) -> Missing:
        self.importer.note("input", item.name, reason)
        return Missing()

    def _shape(self, item: Any) -> Shape:
        shape: list[Size] = []
        for axis, size in enumerate(item.type.tensor_type.shape.dim):
            if size.HasField("dim_value") and size.dim_value >= 0:
                shape.append(size.dim_value)
                continue
            name = size.dim_param.strip() if size.HasField("dim_param") else ""
            name = name or f"{item.name}.{axis}"
            self.met.add(name)
            given = self.sizes.get(name, name)
            if name in self.sizes and not isinstance(given, str) and (not isinstance(given, int) or isinstance(given, bool) or given < 0):
                raise ShapeError(f"sizes: {name!r:.80} must be a name or a number from 0, not {given!r:.60}", location=here())
            shape.append(given if isinstance(given, int) else _symbol(given))
        return tuple(shape)


def _symbol(text: str) -> Size:
    """Convert text to a size: arithmetic of names is kept, other text becomes a name."""
    try:
        found = add(text.replace(" ", ""), 0)
        return found if isinstance(found, str) else _legal_size(text)
    except OarlockError:
        return _legal_size(text)


def _legal_size(text: str) -> str:
    """Convert text to a valid name of a size."""
    name = legal_name(text).replace("-", "_").strip(".")
    return name if name and (name[0].isalpha() or name[0] == "_") else f"size_{name}"
