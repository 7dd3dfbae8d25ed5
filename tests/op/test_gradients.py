"""Every gradient against PyTorch's own, and those of gradient operators against central differences; test_cases.py has the others."""

from collections.abc import Callable

import pytest
import torch
from op.arguments import (
    DERIVED,
    DTYPES,
    FORWARD,
    Arguments,
    Tensors,
    arguments_of,
    build,
    cases_of,
    compute,
    derive,
    is_inexact,
    random_like,
)
from op.at_each_case import at_each_case
from op.edges import edges_of
from tolerances import FINITE_DIFFERENCE_STEP, FINITE_DIFFERENCES, PYTORCH, VALUES

import oarlock as ol
from oarlock.ir.size import names_in
from oarlock.registry import GradCheck, Operator

Where = tuple[str, int]  # a tensor among arguments: its slot, and its number there
EVERY = slice(None)


def declared(operator: Operator) -> set[str]:
    """The inputs with a gradient that is more than zero by meaning."""
    return {slot for slot, rule in operator.gradients.items() if rule.parameters}


def zero_by_meaning(operator: Operator) -> set[str]:
    return operator.gradients.keys() - declared(operator)


DIFFERENTIABLE = [operator for operator in [*FORWARD, *DERIVED] if declared(operator)]
CHECKS = [(operator, name, case) for operator in DIFFERENTIABLE for name, case in cases_of(operator, GradCheck)]


def wanted(operator: Operator, arguments: Arguments) -> list[Where]:
    """The float and complex tensors whose gradient the operator declares."""
    slots = [slot.name for slot in operator.signature.inputs if slot.name in declared(operator) and slot.name in arguments.tensors]
    found = [(slot, number, tensor) for slot in slots for number, tensor in enumerate(arguments.tensors[slot])]
    return [(slot, number) for slot, number, tensor in found if is_inexact(tensor)]


def replaced(arguments: Arguments, where: Where, value: torch.Tensor) -> Arguments:
    slot, number = where
    items = [value if at == number else item for at, item in enumerate(arguments.tensors[slot])]
    return Arguments({**arguments.tensors, slot: items}, arguments.attributes)


# What is differentiated: the sum of the outputs that callers get and that have gradients, with random weights


def returned(operator: Operator, outputs: Tensors) -> list[torch.Tensor]:
    """The float and complex outputs that the operator returns to its caller."""
    shown = [tensor for slot, items in outputs.items() if slot not in operator.intermediate for tensor in items]
    return [tensor for tensor in shown if is_inexact(tensor)]


def weights_of(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [random_like(tensor, generator) for tensor in tensors]


def weighted_sum(tensors: list[torch.Tensor], weights: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack([(tensor * weight.conj()).sum().real for tensor, weight in zip(tensors, weights, strict=True)]).sum()


class GradientProgram:
    """A program of one op and its gradients. Of the outputs, only `chosen` ones are differentiated."""

    def __init__(self, operator: Operator, arguments: Arguments, *, chosen: slice = EVERY, symbols: bool = False):
        self.built = build(operator, arguments, symbols=symbols)
        self.inputs = [self.built.inputs[slot][number] for slot, number in wanted(operator, arguments)]
        self.weights: list[ol.Var] = []
        shown = [var for slot, items in self.built.op.outputs.items() if slot not in operator.intermediate for var in items]
        targets = [var for var in shown if var.dtype.is_inexact]
        weights = weights_of(returned(operator, compute(operator, arguments)))
        self.gradients = self.differentiate(targets[chosen], weights[chosen])

    def differentiate(self, targets: list[ol.Var], weights: list[torch.Tensor]) -> list[ol.Var | None]:
        """The gradients, with respect to the inputs, of the weighted sum of `targets`."""
        with self.built.program:
            given = [self.weigh(target, weight) for target, weight in zip(targets, weights, strict=True)]
        return ol.gradients(targets, self.inputs, given)

    def weigh(self, target: ol.Var, weight: torch.Tensor) -> ol.Var:
        """A new input of the shape of `target`. Where values tell one of its sizes, no input has that: as many rows of one are taken."""
        known = {name for var in self.built.program.main.inputs for size in var.shape for name in names_in(size)}
        own = next((axis for axis, size in enumerate(target.shape) if names_in(size) - known), None)
        name, shape = f"weight.{len(self.built.feed)}", target.shape
        if own is None:
            self.built.feed[name] = weight
            self.weights.append(ol.layer.data(name, shape, target.dtype, batch=None))
            return self.weights[-1]
        self.built.feed[name] = weight.movedim(own, 0)
        front = [own, *(axis for axis in range(len(shape)) if axis != own)]
        rows = ol.layer.data(name, [weight.shape[own], *(shape[axis] for axis in front[1:])], target.dtype, batch=None)
        self.weights.append(rows)
        back = [front.index(axis) for axis in range(len(shape))]
        taken = ol.op.gather(rows, ol.op.arange_like(ol.op.transpose(target, axes=front) if own else target))
        return ol.op.transpose(taken, axes=back) if own else taken

    def run(self, gradients: list[ol.Var | None] | None = None) -> list[torch.Tensor]:
        """The values of the gradients; zeros where an input has none."""
        gradients = self.gradients if gradients is None else gradients
        values = iter(self.built.run([gradient for gradient in gradients if gradient is not None]))
        starts = [self.built.feed[var.name] for var in self.inputs]
        return [torch.zeros_like(start) if gradient is None else next(values) for start, gradient in zip(starts, gradients, strict=True)]


def finite_differences(function: Callable[[torch.Tensor], torch.Tensor], at: torch.Tensor) -> torch.Tensor:
    """The gradient of a number, by central differences."""
    gradient = torch.zeros_like(at, memory_format=torch.contiguous_format)
    for index in range(at.numel()):
        for unit in (1.0, 1j) if at.is_complex() else (1.0,):
            ends = []
            for step in (FINITE_DIFFERENCE_STEP, -FINITE_DIFFERENCE_STEP):
                moved = at.clone(memory_format=torch.contiguous_format)
                moved.view(-1)[index] += unit * step
                ends.append(function(moved))
            gradient.view(-1)[index] += unit * (ends[0] - ends[1]) / (2 * FINITE_DIFFERENCE_STEP)
    return gradient


def numeric_gradients(operator: Operator, arguments: Arguments) -> list[torch.Tensor]:
    weights = weights_of(returned(operator, compute(operator, arguments)))

    def cost(where: Where) -> Callable[[torch.Tensor], torch.Tensor]:
        return lambda value: weighted_sum(returned(operator, compute(operator, replaced(arguments, where, value))), weights)

    return [finite_differences(cost((slot, number)), arguments.tensors[slot][number]) for slot, number in wanted(operator, arguments)]


def torch_gradients(operator: Operator, arguments: Arguments, chosen: slice = EVERY) -> list[torch.Tensor]:
    """The gradients of the kernel by PyTorch."""
    leaves = []
    for slot, number in wanted(operator, arguments):
        leaves.append(arguments.tensors[slot][number].clone().requires_grad_())
        arguments = replaced(arguments, (slot, number), leaves[-1])
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, torch.clone):  # a kernel may write over what it computed on the way
        outputs = returned(operator, compute(operator, arguments))
    cost = weighted_sum(outputs[chosen], weights_of(outputs)[chosen])
    if leaves and not cost.requires_grad:
        pytest.skip("the kernel reads numbers out of tensors: finite differences judge it alone")
    try:
        return list(torch.autograd.grad(cost, leaves, allow_unused=True, materialize_grads=True))
    except (
        RuntimeError
    ) as error:  # it does not differentiate every kernel of its own, nor clamp where it broadcasts: finite differences judge these alone
        if not any(fault in str(error) for fault in ("not implemented", "doesn't match the broadcast shape")):
            raise
        pytest.skip(str(error))


def require_close(actual: list[torch.Tensor], expected: list[torch.Tensor], tolerance: tuple[float, float]):
    torch.testing.assert_close(actual, expected, rtol=tolerance[0], atol=tolerance[1])


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in DIFFERENTIABLE])
def test_every_gradient_has_a_check(operator: Operator):
    checked = {slot for _, case in cases_of(operator, GradCheck) for slot, _ in wanted(operator, arguments_of(operator, case))}
    assert checked == declared(operator), f"{operator.type} needs a GradCheck that gives {', '.join(declared(operator) - checked)}"


@pytest.mark.mission("F9")
@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in DIFFERENTIABLE if operator in FORWARD])
def test_an_operator_with_a_gradient_has_one_for_every_floating_input(operator: Operator):
    for _, case in cases_of(operator, GradCheck):
        for slot, items in arguments_of(operator, case).tensors.items():
            without = not operator.signature.input(slot).shape_only and slot not in operator.gradients
            assert not (without and any(map(is_inexact, items))), f"{operator.type}: is it zero for {slot}? Say so"


@at_each_case(check for check in CHECKS if check[0] in DERIVED)
def test_gradients_of_gradient_operators_equal_finite_differences(operator: Operator, case: GradCheck):
    """Those of the others `check_operator` compares: see `test_cases.py`."""
    arguments = arguments_of(operator, case)
    require_close(GradientProgram(operator, arguments).run(), numeric_gradients(operator, arguments), FINITE_DIFFERENCES)


@pytest.mark.mission("F9")
@at_each_case((operator, f"{name}-{DTYPES[dtype]}", case, dtype) for operator, name, case in CHECKS for dtype in DTYPES)
def test_gradients_equal_those_of_pytorch(operator: Operator, case: GradCheck, dtype: torch.dtype):
    arguments = arguments_of(operator, case, dtype)
    outputs = len(returned(operator, compute(operator, arguments)))
    for chosen in [EVERY, *(slice(number, number + 1) for number in range(outputs) if outputs > 1)]:
        program = GradientProgram(operator, arguments, chosen=chosen)
        for var, gradient in zip(program.inputs, program.gradients, strict=True):
            assert gradient is None or (gradient.dtype, gradient.shape) == (var.dtype, var.shape), f"{gradient} of {var}"
        tolerance = PYTORCH if dtype is torch.float64 else VALUES[dtype]
        require_close(program.run(), torch_gradients(operator, arguments, chosen), tolerance)


@at_each_case((operator, name, edge) for operator in DIFFERENTIABLE for name, edge in edges_of(operator, cases_of(operator, GradCheck)))
def test_gradients_at_edge_inputs_equal_those_of_pytorch(operator: Operator, edge: Callable[[], Arguments]):
    arguments = derive(operator, edge())
    require_close(GradientProgram(operator, arguments).run(), torch_gradients(operator, arguments), PYTORCH)


@at_each_case(CHECKS)
def test_gradients_are_the_same_where_sizes_are_unknown(operator: Operator, case: GradCheck):
    arguments = arguments_of(operator, case)
    try:
        unknown = GradientProgram(operator, arguments, symbols=True)
    except ol.ShapeError:
        if operator.infer_function is None:
            raise
        pytest.skip("it needs to know these sizes")
    require_close(unknown.run(), GradientProgram(operator, arguments).run(), PYTORCH)


@at_each_case(check for check in CHECKS if check[0] in FORWARD)
def test_gradients_have_gradients_with_respect_to_all_that_they_read(operator: Operator, case: GradCheck):
    program = GradientProgram(operator, arguments_of(operator, case))
    firsts = [gradient for gradient in program.gradients if gradient is not None]
    lacking = set()
    for first in firsts:
        try:
            with program.built.program:
                start = ol.op.stop_gradient(first) if first.dtype.is_complex else None
            ol.gradients([first], [*program.inputs, *program.weights], [start])
        except ol.GradientError as error:
            lacking.add(error.op)
    assert lacking == set()


@at_each_case(check for check in CHECKS if zero_by_meaning(check[0]))
def test_inputs_whose_gradient_is_zero_by_meaning_get_none(operator: Operator, case: GradCheck):
    built = build(operator, arguments_of(operator, case))
    inputs = [var for slot in sorted(zero_by_meaning(operator)) for var in built.inputs[slot]]
    targets = [var for var in built.op.writes if var.dtype.is_inexact]
    assert ol.gradients(targets, inputs) == [None] * len(inputs)
