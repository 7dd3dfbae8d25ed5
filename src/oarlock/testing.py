"""Hold an operator to the cases it was declared with; for operators of your own, in your own tests.

from oarlock.testing import check_operator

def test_my_operator():
check_operator(my_operator)
"""

from typing import Any

import torch

from oarlock.errors import OarlockError
from oarlock.ir.dtype import DType
from oarlock.ir.program import Program
from oarlock.ir.variable import Var
from oarlock.layer.inputs import data
from oarlock.op.elementwise import multiply
from oarlock.op.reduction import reduce_sum
from oarlock.op.torch_dtype import from_torch, to_torch
from oarlock.passes.backward import gradients
from oarlock.registry.case import Case, GradCheck, Rejects
from oarlock.registry.declaration import Operator
from oarlock.registry.signature import Slot
from oarlock.runtime.executor import Executor
from oarlock.runtime.scope import Scope

__all__ = ["case_arguments", "check_operator"]

_STEP = 1e-6


def check_operator(operator: Operator) -> None:
    """Run every case of `operator`: stated values, gradients against finite differences in float64, refusals.

    Raises AssertionError for the first that does not hold, and for an operator without a Case, or with gradients but
    no GradCheck.
    """
    cases = operator.cases
    assert any(isinstance(case, Case) for case in cases), f"{operator.type} has no Case"
    assert not operator.gradients or any(isinstance(case, GradCheck) for case in cases), f"{operator.type} has gradients but no GradCheck"
    for case in cases:
        tensors, attributes = case_arguments(operator, case)
        if isinstance(case, Rejects):
            _check_refusal(operator, case, tensors, attributes)
        elif isinstance(case, GradCheck):
            _check_gradients(operator, case, tensors, attributes)
        else:
            _check_values(operator, case, tensors, attributes)


def case_arguments(
    operator: Operator, case: Case | GradCheck | Rejects, dtype: torch.dtype = torch.float64
) -> tuple[dict[str, list[torch.Tensor]], dict[str, Any]]:
    """The tensors, by slot, and the attributes of a case. Python floats and random numbers become `dtype`."""
    generator = torch.Generator().manual_seed(0)
    tensors: dict[str, list[torch.Tensor]] = {}
    attributes: dict[str, Any] = {"random_id": 0} if operator.effects == "random" else {}
    for name, value in case.values.items():
        slot = operator.signature.input(name)
        if slot is not None:
            items = value if slot.variadic else [value]
            tensors[name] = [_tensor(slot, item, case, dtype, generator) for item in items]  # type: ignore[union-attr]
        elif operator.signature.output(name) is None:
            attributes[name] = value
    return tensors, attributes


def _tensor(slot: Slot, value: object, case: Case | GradCheck | Rejects, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    if isinstance(value, tuple) and not isinstance(case, Case):
        low, high = (case.low, case.high) if isinstance(case, GradCheck) else (-1.0, 1.0)
        random = torch.empty(value, dtype=torch.float64).uniform_(low, high, generator=generator)
        return random.to(_dtype(slot, torch.float64, dtype))
    tensor = torch.tensor(value)
    return torch.tensor(value, dtype=_dtype(slot, tensor.dtype if tensor.numel() else None, dtype))


def _dtype(slot: Slot, natural: torch.dtype | None, dtype: torch.dtype) -> torch.dtype:
    """The slot's own dtype where it has one of the kind of the value, else `dtype` for floats. No value is of every kind."""
    own = next((to_torch(item) for item in DType if item.value == slot.dtype), None)
    if natural is None:
        return own or dtype
    if own is not None and torch.bool not in (own, natural) and own.is_floating_point == natural.is_floating_point:
        return own
    return dtype if natural.is_floating_point else natural


class _Call:
    """A program of one op, its inputs, and what to feed it."""

    def __init__(self, operator: Operator, tensors: dict[str, list[torch.Tensor]], attributes: dict[str, Any]):
        self.program = Program()
        self.feed: dict[str, torch.Tensor] = {}
        self.inputs: dict[str, list[Var]] = {}
        with self.program:
            for slot, items in tensors.items():
                names = [f"{slot}.{number}" for number in range(len(items))]
                self.feed |= dict(zip(names, items, strict=True))
                self.inputs[slot] = [
                    data(name, list(item.shape), str(from_torch(item.dtype)), batch=None) for name, item in zip(names, items, strict=True)
                ]
            variadic = {slot.name for slot in operator.signature.inputs if slot.variadic}
            given: dict[str, Any] = {name: items if name in variadic else items[0] for name, items in self.inputs.items()}
            operator(**given, **attributes)
        self.op = self.program.main.ops[0]

    def run(self, fetch: list[Var]) -> list[torch.Tensor]:
        executor = Executor(check=True)
        return executor.run(self.program, self.feed, fetch, scope=Scope(), return_numpy=False)  # type: ignore[return-value]


def _check_values(operator: Operator, case: Case, tensors: dict[str, list[torch.Tensor]], attributes: dict[str, Any]) -> None:
    call = _Call(operator, tensors, attributes)
    for slot in operator.signature.outputs:
        if slot.name not in case.values:
            continue
        stated = case.values[slot.name]
        outputs = call.run(list(call.op.outputs[slot.name]))
        for actual, expected in zip(outputs, stated if slot.variadic else [stated], strict=True):  # type: ignore[arg-type]
            wanted = torch.tensor(expected, dtype=actual.dtype)
            same = actual.shape == wanted.shape and torch.allclose(actual, wanted, rtol=1e-12, atol=1e-12)
            assert same, f"{operator.type}: {case} states {slot.name} = {expected}, yet it is {actual.tolist()}"


def _check_gradients(operator: Operator, case: GradCheck, tensors: dict[str, list[torch.Tensor]], attributes: dict[str, Any]) -> None:
    call = _Call(operator, tensors, attributes)
    declared = [slot for slot in call.inputs if slot in operator.gradients and operator.differentiates(slot)]
    wanted = [(slot, var) for slot in declared for var in call.inputs[slot] if var.dtype.is_floating]
    outputs = [var for slot in operator.signature.outputs if slot.name not in operator.intermediate for var in call.op.outputs[slot.name]]
    outputs = [var for var in outputs if var.dtype.is_floating]
    generator = torch.Generator().manual_seed(1)
    weights = [torch.empty(value.shape, dtype=value.dtype).uniform_(-1, 1, generator=generator) for value in call.run(outputs)]
    with call.program:
        total = []
        for number, (output, weight) in enumerate(zip(outputs, weights, strict=True)):
            weighed = multiply(output, data(f"weight.{number}", list(weight.shape), str(from_torch(weight.dtype)), batch=None))
            call.feed[f"weight.{number}"] = weight
            total.append(reduce_sum(weighed))
        found = gradients(total, [var for _, var in wanted])
    for (slot, var), gradient in zip(wanted, found, strict=True):
        assert gradient is not None, f"{operator.type}: no gradient reaches {slot}"
        (analytic,) = call.run([gradient])
        value = call.feed[var.name]
        numeric = torch.empty_like(value)
        for index in range(value.numel()):
            ends = []
            for sign in (1.0, -1.0):
                moved = value.clone()
                moved.view(-1)[index] += sign * _STEP
                call.feed[var.name] = moved
                ends.append(sum(float(part) for part in call.run(total)))
            numeric.view(-1)[index] = (ends[0] - ends[1]) / (2 * _STEP)
        call.feed[var.name] = value
        close = torch.allclose(analytic, numeric, rtol=1e-5, atol=1e-7)
        assert close, f"{operator.type}: {case}: the gradient of {slot} is {analytic.tolist()}, where differences give {numeric.tolist()}"


def _check_refusal(operator: Operator, case: Rejects, tensors: dict[str, list[torch.Tensor]], attributes: dict[str, Any]) -> None:
    try:
        call = _Call(operator, tensors, attributes)
        call.run(list(call.op.writes))
    except OarlockError as error:
        if case.message in str(error):
            return
        raise AssertionError(f"{operator.type}: {case} is refused, but with {error.message!r}") from error
    raise AssertionError(f"{operator.type}: {case} is not refused")
