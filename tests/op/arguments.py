"""The contents of a Case, a GradCheck or a Rejects: as tensors, as a call of the kernel, and as a program of one op."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

import oarlock as ol
import oarlock.op.update
from oarlock.ir.operation import Op
from oarlock.ir.size import Size
from oarlock.registry import Case, GradCheck, Operator, Rejects, standard
from oarlock.registry.gradient import parameter_source
from oarlock.runtime.context import KernelContext
from oarlock.tensor.dtype import from_torch
from oarlock.testing import case_arguments

AnyCase = Case | GradCheck | Rejects
Tensors = dict[str, list[torch.Tensor]]  # by slot; a slot that is not given has no entry

DTYPES = {torch.float64: "float64", torch.float32: "float32"}


@dataclass(frozen=True)
class Arguments:
    """The arguments of an operator."""

    tensors: Tensors
    attributes: dict[str, object]

    def replaced(self, change: Callable[[str, torch.Tensor], torch.Tensor]) -> "Arguments":
        """The same arguments, each tensor `change(slot, tensor)`."""
        return Arguments({slot: [change(slot, item) for item in items] for slot, items in self.tensors.items()}, self.attributes)


# Which operators, and at which cases


def root(operator: Operator) -> Operator:
    """The forward operator that `operator` is a gradient of, of whatever order; itself where it is none."""
    return operator if operator.forward is None else root(operator.forward)


def _covered(operators: Sequence[Operator]) -> list[Operator]:
    """Those that Oarlock ships, but not what owns blocks: its arguments are more than data can say."""
    return [item for item in operators if item.kernel.__module__.startswith("oarlock.") and not root(item).block_attributes]


FORWARD = _covered(list(standard))
DERIVED = _covered(list(standard.gradient_operators.values()))


def cases_of(operator: Operator, *kinds: type[AnyCase]) -> list[tuple[str, AnyCase]]:
    """The cases of some kinds, with a name, at which the operator, or a gradient of it, can be called.

    A gradient operator takes part in the GradChecks of its forward operator that give the input it belongs to.
    """
    return [
        (f"{operator.type}-{number}", case)
        for number, case in enumerate(root(operator).cases)
        if isinstance(case, kinds)
        and (operator.forward is None or (isinstance(case, GradCheck) and operator.wrt in _given(operator.forward, case)))
    ]


def _given(operator: Operator, case: AnyCase) -> set[str]:
    """The input slots of the operator that a case of its root leads to."""
    forward = operator.forward
    if forward is None:
        return {name for name in case.values if operator.signature.input(name)}
    sources = [(slot.name, forward.signature.input(slot.name.removesuffix("_shape"))) for slot in operator.signature.inputs]
    return {name for name, source in sources if source is None or source.name in _given(forward, case)}


def has_floats(operator: Operator, case: AnyCase) -> bool:
    """Whether some input is given as Python floats, which stand for any floating dtype."""
    return any(
        isinstance(item, float | complex)
        for name, value in case.values.items()
        if operator.signature.input(name)
        for item in _leaves(value)
    )


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


# Arguments


def arguments_of(operator: Operator, case: AnyCase, dtype: torch.dtype = torch.float64) -> Arguments:
    """The arguments of the operator at a case of its root; Python floats and random numbers become `dtype`."""
    return derive(operator, root_arguments(root(operator), case, dtype))


def root_arguments(operator: Operator, case: AnyCase, dtype: torch.dtype = torch.float64) -> Arguments:
    """The arguments that a case of a forward operator gives it. Runs nothing."""
    return Arguments(*case_arguments(operator, case, dtype))


def derive(operator: Operator, arguments: Arguments) -> Arguments:
    """The arguments of a gradient operator in the backward pass, when `arguments` are those of its root.

    Gradients of outputs are random. A forward operator gets `arguments` themselves.
    """
    forward = operator.forward
    if forward is None:
        return arguments
    arguments = derive(forward, arguments)
    outputs = compute(forward, arguments)
    generator = torch.Generator().manual_seed(1)
    tensors: Tensors = {}
    for slot in operator.signature.inputs:
        kind, source = parameter_source(forward.signature, slot.name)
        if kind == "gradient":
            tensors[slot.name] = [random_like(item, generator) for item in outputs[source.name]]
        elif source.name in arguments.tensors or source.name in outputs:
            tensors[slot.name] = arguments.tensors[source.name] if source.name in arguments.tensors else outputs[source.name]
    converted = forward.convert_attributes(arguments.attributes)
    return Arguments(tensors, {name: converted[name] for name in forward.gradients[operator.wrt].attributes if name in converted})


def random_like(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    parts = [
        torch.empty(tensor.shape, dtype=torch.float64).uniform_(-1.0, 1.0, generator=generator) for _ in range(1 + tensor.is_complex())
    ]
    return (torch.complex(*parts) if tensor.is_complex() else parts[0]).to(tensor.dtype)


def is_inexact(tensor: torch.Tensor) -> bool:
    """Whether it holds floats or complex numbers, which have gradients."""
    return tensor.is_floating_point() or tensor.is_complex()


# The kernel


def compute(operator: Operator, arguments: Arguments, *, training: bool = True) -> Tensors:
    """The results of the kernel itself, by output slot; in training, where that makes a difference and nothing else is said."""
    context = None
    if operator.wants_context:
        scope = ol.Scope()
        op = build(operator, arguments).op
        context = KernelContext(op, scope.new_scope("main"), ol.Context(scope, training=training), _run_no_block)
    return operator.call(arguments.tensors, operator.convert_attributes(arguments.attributes), context)


def _run_no_block(*_: object) -> None:
    raise AssertionError("operators that run blocks are not covered here")


def positional(operator: Operator, arguments: Arguments) -> list[object]:
    """The arguments as kernels take them."""
    return operator.arguments(arguments.tensors)


def by_slot(operator: Operator, results: object) -> Tensors:
    """A kernel's results, by output slot."""
    return operator.results(results)


# The program


@dataclass
class Built:
    """A program of one op, and what to feed it."""

    program: ol.Program
    inputs: dict[str, list[ol.Var]]
    feed: dict[str, torch.Tensor]

    @property
    def op(self) -> Op:
        return self.program.main.ops[0]

    def run(self, fetch: Sequence[ol.Var], *, training: bool = True, place: ol.Place | None = None) -> list[torch.Tensor]:
        with self.program:
            fetch = [ol.op.all_reduce_done(var, [var])[0] if _is_under_way(var) else var for var in fetch]
        return ol.Executor(place).run(self.program, self.feed, fetch, scope=ol.Scope(), training=training, return_numpy=False)


def _is_under_way(var: ol.Var) -> bool:
    """Whether workers may still write a variable, so that it cannot be fetched."""
    return var.op is not None and var.op.type == "all_reduce_start"


def symbol(size: int) -> Size:
    """A name for a size, the same wherever the size is the same; 1 and 0 have none."""
    return f"d{size}" if size > 1 else size


def declare(arguments: Arguments, *, symbols: bool = False) -> Built:
    """A program that takes the arguments as inputs, without an op yet. With `symbols`, it does not know their sizes."""
    built = Built(ol.Program(), {}, {})
    with built.program:
        for slot, items in arguments.tensors.items():
            built.inputs[slot] = []
            for number, tensor in enumerate(items):
                name = f"{slot}.{number}"
                shape = [symbol(size) if symbols else size for size in tensor.shape]
                built.inputs[slot].append(ol.layer.data(name, shape, str(from_torch(tensor.dtype)), batch=None))
                built.feed[name] = tensor
    return built


def append(operator: Operator, built: Built, attributes: dict[str, object]) -> None:
    """Append the operator to a program that has its inputs."""
    variadic = {slot.name for slot in operator.signature.inputs if slot.variadic}
    given = {name: items if name in variadic else items[0] for name, items in built.inputs.items()}
    with built.program:
        operator(**given, **attributes)


def build(operator: Operator, arguments: Arguments, *, symbols: bool = False) -> Built:
    built = declare(arguments, symbols=symbols)
    append(operator, built, arguments.attributes)
    return built
