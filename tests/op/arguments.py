"""What a Case, a GradCheck or a Rejects says, as tensors, as a call of the kernel, and as a program of one op."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

import oarlock as ol
import oarlock.op.update
from oarlock.ir.attribute import Sizes
from oarlock.ir.operation import Op
from oarlock.ir.size import Size
from oarlock.op.torch_dtype import from_torch, to_torch
from oarlock.registry import Case, GradCheck, Operator, Rejects, standard
from oarlock.registry.gradient import parameter_source
from oarlock.registry.signature import Slot
from oarlock.runtime.context import KernelContext

Tensors = dict[str, list[torch.Tensor]]  # by slot; a slot that is not given has no entry


@dataclass(frozen=True)
class Arguments:
    """What an operator is called with."""

    tensors: Tensors
    attributes: dict[str, object]

    def replaced(self, change: Callable[[str, torch.Tensor], torch.Tensor]) -> "Arguments":
        """The same arguments, each tensor `change(slot, tensor)`."""
        return Arguments({slot: [change(slot, item) for item in items] for slot, items in self.tensors.items()}, self.attributes)

    def floating(self, operator: Operator) -> list[tuple[str, int]]:
        """The (slot, number) of every floating tensor of which the values count."""
        return [
            (slot.name, number)
            for slot in operator.signature.inputs
            for number, tensor in enumerate(self.tensors.get(slot.name, ()))
            if tensor.is_floating_point() and not slot.shape_only
        ]


# Which operators, and at which arguments


def root(operator: Operator) -> Operator:
    """The forward operator that `operator` is a gradient of, of whatever order; itself where it is none."""
    return operator if operator.forward is None else root(operator.forward)


def _covered(operators: Sequence[Operator]) -> list[Operator]:
    """Those that Oarlock ships, but not what owns blocks: its arguments are more than data can say."""
    return [item for item in operators if item.kernel.__module__.startswith("oarlock.") and not root(item).block_attributes]


FORWARD = _covered(list(standard))
DERIVED = _covered(list(standard.gradient_operators.values()))


def cases_of(operator: Operator, *kinds: type) -> list[tuple[str, Case | GradCheck | Rejects]]:
    """The (name, case) of each case of some `kinds` at which the operator, or a gradient of it, can be called."""
    return [
        (f"{operator.type}-{number}", case)
        for number, case in enumerate(root(operator).cases)
        if isinstance(case, kinds) and (operator.forward is None or operator.wrt in _slots_given(operator.forward, case))
    ]


def _slots_given(operator: Operator, case: Case | GradCheck | Rejects) -> set[str]:
    if operator.forward is None:
        return {name for name in case.values if operator.signature.input(name)}
    given = _slots_given(operator.forward, case)
    sources = {slot.name: parameter_source(operator.forward.signature, slot.name) for slot in operator.signature.inputs}
    return {name for name, (kind, slot) in sources.items() if kind in ("output", "gradient") or slot.name in given}  # type: ignore[misc]


def has_floats(case: Case | GradCheck | Rejects, operator: Operator) -> bool:
    """Whether some input is given as Python floats, which stand for any floating dtype."""
    inputs = [value for name, value in case.values.items() if operator.signature.input(name)]
    return any(isinstance(item, float) for value in inputs for item in _leaves(value))


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


# Arguments


def arguments_of(operator: Operator, case: Case | GradCheck | Rejects, dtype: torch.dtype = torch.float64) -> Arguments:
    """What a case of a forward operator gives it; Python floats become `dtype`."""
    generator = torch.Generator().manual_seed(0)
    tensors: Tensors = {}
    attributes: dict[str, object] = {"random_id": 0} if operator.effects == "random" else {}
    for name, value in case.values.items():
        slot = operator.signature.input(name)
        if slot is not None:
            items = value if slot.variadic else [value]
            tensors[name] = [_tensor(slot, item, case, dtype, generator) for item in items]  # type: ignore[attr-defined]
        elif operator.signature.output(name) is None:
            attributes[name] = value
    return Arguments(tensors, attributes)


def _tensor(slot: Slot, value: object, case: object, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    if isinstance(value, tuple) and not isinstance(case, Case):
        low, high = (case.low, case.high) if isinstance(case, GradCheck) else (-1.0, 1.0)
        random = torch.empty(value, dtype=torch.float64).uniform_(low, high, generator=generator)
        return random.to(_dtype(slot, torch.float64, dtype))
    return torch.tensor(value, dtype=_dtype(slot, torch.tensor(value).dtype, dtype))


def _dtype(slot: Slot, natural: torch.dtype, dtype: torch.dtype) -> torch.dtype:
    """The slot's own dtype where it has one of the kind of the value, else `dtype` for floats."""
    own = next((to_torch(item) for item in ol.DType if item.value == slot.dtype), None)
    if own is not None and natural != torch.bool and own != torch.bool and own.is_floating_point == natural.is_floating_point:
        return own
    return dtype if natural.is_floating_point else natural


def derive(operator: Operator, arguments: Arguments) -> Arguments:
    """What the backward pass calls a gradient operator with, when `arguments` are those of its forward operator.

    Gradients of outputs are random. A forward operator gets `arguments` themselves.
    """
    if operator.forward is None:
        return arguments
    forward = operator.forward
    arguments = derive(forward, arguments)
    outputs = compute(forward, arguments)
    generator = torch.Generator().manual_seed(1)
    tensors: Tensors = {}
    for slot in operator.signature.inputs:
        kind, source = parameter_source(forward.signature, slot.name)  # type: ignore[misc]
        if kind == "gradient":
            tensors[slot.name] = [random_like(item, generator) for item in outputs[source.name]]
        elif source.name in arguments.tensors or source.name in outputs:
            tensors[slot.name] = arguments.tensors.get(source.name, outputs.get(source.name, []))
    wanted = forward.gradients[operator.wrt].attributes  # type: ignore[index]
    converted = forward.convert_attributes(arguments.attributes)
    return Arguments(tensors, {name: converted[name] for name in wanted if name in converted})


def random_like(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=torch.float64).uniform_(-1.0, 1.0, generator=generator).to(tensor.dtype)


# The kernel


def positional(operator: Operator, arguments: Arguments) -> list[object]:
    """The arguments as kernels take them."""
    given: list[object] = []
    for slot in operator.signature.inputs:
        values = [item.shape if slot.shape_only else item for item in arguments.tensors.get(slot.name, ())]
        given.append(values if slot.variadic else values[0] if values else None)
    return given


def compute(operator: Operator, arguments: Arguments, *, training: bool = True) -> Tensors:
    """What the kernel itself gives, by output slot."""
    given = positional(operator, arguments)
    if operator.wants_context:
        scope = ol.Scope()
        context = ol.Context(scope, training=training)
        given.insert(0, KernelContext(build(operator, arguments).op, scope.new_scope("main"), context, _run_no_block))
    results = operator.kernel(*given, **operator.convert_attributes(arguments.attributes))
    return by_slot(operator, results)


def _run_no_block(*_: object) -> None:
    raise AssertionError("operators that run blocks are not covered here")


def by_slot(operator: Operator, results: object) -> Tensors:
    """A kernel's results, by output slot."""
    outputs = operator.signature.outputs
    whole = results if len(outputs) > 1 else (results,)
    return {slot.name: list(result) if slot.variadic else [result] for slot, result in zip(outputs, whole, strict=True)}  # type: ignore


# The program


@dataclass
class Built:
    """A program of one op, and what to feed it."""

    program: ol.Program
    op: Op
    inputs: dict[str, list[ol.Var]]
    feed: dict[str, torch.Tensor]

    def returned(self, operator: Operator) -> list[ol.Var]:
        """The floating outputs that the operator returns to its caller."""
        return [
            var
            for slot, items in self.op.outputs.items()
            for var in items
            if var.dtype.is_floating and slot not in operator.intermediate
        ]


def symbol(size: int) -> Size:
    """A name for a size, the same wherever the size is the same; 1 and 0 have none."""
    return f"d{size}" if size > 1 else size


def declare(arguments: Arguments, *, symbols: bool = False) -> tuple[ol.Program, dict[str, list[ol.Var]], dict[str, torch.Tensor]]:
    """A program that takes the arguments as inputs: its inputs by slot, and what to feed. With `symbols`, sizes are unknown."""
    inputs: dict[str, list[ol.Var]] = {}
    feed: dict[str, torch.Tensor] = {}
    with ol.Program() as program:
        for slot, items in arguments.tensors.items():
            inputs[slot] = []
            for number, tensor in enumerate(items):
                name = f"{slot}.{number}"
                shape = [symbol(size) if symbols else size for size in tensor.shape]
                inputs[slot].append(ol.layer.data(name, shape, str(from_torch(tensor.dtype)), batch=None))
                feed[name] = tensor
    return program, inputs, feed


def call(operator: Operator, program: ol.Program, inputs: dict[str, list[ol.Var]], attributes: dict[str, object]) -> None:
    """Append the operator to the program."""
    slots = {slot.name: slot for slot in operator.signature.inputs}
    given = {name: items if slots[name].variadic else items[0] for name, items in inputs.items()}
    with program:
        operator(**given, **attributes)


def build(operator: Operator, arguments: Arguments, *, symbols: bool = False) -> Built:
    program, inputs, feed = declare(arguments, symbols=symbols)
    call(operator, program, inputs, arguments.attributes)
    (op,) = program.main.ops
    return Built(program, op, inputs, feed)


def run(built: Built, fetch: Sequence[ol.Var], *, training: bool = True) -> list[torch.Tensor]:
    executor = ol.Executor()
    return executor.run(built.program, built.feed, fetch, scope=ol.Scope(), training=training, return_numpy=False)  # type: ignore


__all__ = [
    "DERIVED", "FORWARD", "Arguments", "Built", "Sizes", "Tensors", "arguments_of", "build", "by_slot", "call", "cases_of",
    "compute", "declare", "derive", "has_floats", "positional", "random_like", "root", "run", "symbol",
]  # fmt: skip
