"""Check an operator against its declared cases, for tests of custom operators.

from oarlock.testing import check_operator

def test_my_operator():
    check_operator(my_operator)
"""

import math
from typing import Any

import torch

from oarlock.backend.torch.variants import variants_of
from oarlock.errors import DTypeError, GradientError, OarlockError
from oarlock.ir.dtype import DType
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.layer.inputs import data
from oarlock.op.complex_parts import conj, real
from oarlock.op.elementwise import multiply
from oarlock.op.reduction import reduce_sum
from oarlock.passes.backward import gradients
from oarlock.registry.case import Case, GradCheck, Rejects
from oarlock.registry.declaration import Operator
from oarlock.registry.signature import Slot
from oarlock.runtime.executor import Executor
from oarlock.runtime.scope import Scope
from oarlock.suggestions import suggest_names
from oarlock.tensor.dtype import from_torch, to_torch

__all__ = ["case_arguments", "check_operator"]

_STEP = 1e-6
_FACTORS = (-1000.0, 0.0)


def check_operator(operator: Operator) -> None:
    """Check all cases of `operator`, its declared memory sharing and its declared linearity.

    Values are compared with the stated ones. Gradients, and gradients of gradients, are compared with finite differences in float64, and
    in complex128 if the operator accepts complex numbers. Refusals must have the stated message. Raises AssertionError for the first
    failure, for an operator without a Case, and for one with gradients but no GradCheck, unless its signature implies one.
    """
    cases = operator.cases
    assert any(isinstance(case, Case) for case in cases), f"{operator.type} has no Case"
    assert not operator.gradients or any(isinstance(case, GradCheck) for case in cases), f"{operator.type} has gradients but no GradCheck"
    shared: set[str] = set()  # slots that shared memory with an output in some case
    for case in cases:
        tensors, attributes = case_arguments(operator, case)
        if isinstance(case, Rejects):
            _check_refusal(operator, case, tensors, attributes)
        elif isinstance(case, GradCheck):
            _check_gradients(operator, case, tensors, attributes)
            if takes_complex(operator, attributes, case):
                _check_gradients(operator, case, case_arguments(operator, case, torch.complex128)[0], attributes)
        else:
            _check_values(operator, case, tensors, attributes)
        if not isinstance(case, Rejects) and not operator.wants_context:
            shared |= _check_memory(operator, tensors, attributes)
            _check_linear(operator, tensors, attributes)
    never = [slot for slot in operator.aliases if slot not in shared and not operator.wants_context]
    assert not never, f"{operator.type}: no case shares the memory of {', '.join(never)}, although aliases declares it"


def case_arguments(
    operator: Operator, case: Case | GradCheck | Rejects, dtype: torch.dtype = torch.float64
) -> tuple[dict[str, list[torch.Tensor]], dict[str, Any]]:
    """Return the tensors, by slot, and the attributes of a case.

    Python floats and random numbers become `dtype`, as far as the slot accepts it. For a complex `dtype`, floats become complex if the
    slot accepts both; in other slots, they get the corresponding real dtype.
    """
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


def takes_complex(operator: Operator, attributes: dict[str, Any], case: Case | GradCheck) -> bool:
    """Return whether an operator accepts complex numbers instead of the floats of a case, with these attributes."""
    if not any(map(_takes_both, operator.signature.inputs)):
        return False
    try:
        _Call(operator, case_arguments(operator, case, torch.complex128)[0], attributes)
    except DTypeError:
        return False
    return True


def _takes_both(slot: Slot) -> bool:
    return slot.dtype in ("number", "inexact") or len(slot.dtype) == 1


def _tensor(slot: Slot, value: object, case: Case | GradCheck | Rejects, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    if isinstance(value, tuple) and not isinstance(case, Case):
        low, high = (case.low, case.high) if isinstance(case, GradCheck) else (-1.0, 1.0)
        wanted = _dtype(slot, torch.float64, dtype)
        return _random(value, torch.complex128 if wanted.is_complex else torch.float64, low, high, generator).to(wanted)
    tensor = torch.tensor(value)
    return torch.tensor(value, dtype=_dtype(slot, tensor.dtype if tensor.numel() else None, dtype))


def _dtype(slot: Slot, natural: torch.dtype | None, dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of a slot if it has a fixed one of the same kind as the value, otherwise `dtype` for floats.

    An empty value (`natural` is None) fits every kind.
    """
    own = next((to_torch(item) for item in DType if item.value == slot.dtype), None)
    is_complex = slot.dtype in ("complex", "float.complex") or (natural is not None and natural.is_complex)
    if not dtype.is_complex or not _takes_both(slot):
        dtype = dtype.to_complex() if is_complex and dtype in (torch.float32, torch.float64) else dtype if is_complex else dtype.to_real()
    if natural is None:
        return own or dtype
    kinds = [(each.is_floating_point, each.is_complex) for each in (own or natural, natural)]
    if own is not None and torch.bool not in (own, natural) and kinds[0] == kinds[1]:
        return own
    return dtype if natural.is_floating_point or natural.is_complex else natural


def _random(shape: tuple[int, ...], dtype: torch.dtype, low: float, high: float, generator: torch.Generator) -> torch.Tensor:
    """Return numbers whose real and imaginary parts are random in a range."""
    parts = [torch.empty(shape, dtype=dtype.to_real()).uniform_(low, high, generator=generator) for _ in range(1 + dtype.is_complex)]
    return torch.complex(*parts) if dtype.is_complex else parts[0]


class _Call:
    """A program of one op, with its inputs and their feed."""

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
        self.checking = Executor(check=True)
        self.executor = Executor(interpret=True, passes=())  # the fastest for many small runs
        self.generator = torch.Generator().manual_seed(1)

    def run(self, fetch: list[Var], *, check: bool = True, training: bool = True) -> list[torch.Tensor]:
        executor = self.checking if check else self.executor
        scope = Scope()  # a new scope, so that random numbers are the same in each run
        return executor.run(self.program, self.feed, fetch, scope=scope, training=training, return_numpy=False)  # type: ignore[return-value]

    def weigh(self, outputs: list[Var]) -> tuple[list[Var], list[Var]]:
        """Add random cotangents of the shapes of `outputs` as inputs. Return them, and the sums of their products with the outputs."""
        weights, totals = [], []
        for output, value in zip(outputs, self.run(outputs), strict=True):
            name = self.program.unique("weight")
            self.feed[name] = _random(tuple(value.shape), value.dtype, -1, 1, self.generator)
            with self.program:
                weights.append(data(name, list(value.shape), str(from_torch(value.dtype)), batch=None))
                products = multiply(output, conj(weights[-1]) if value.is_complex() else weights[-1])
                totals.append(reduce_sum(real(products) if value.is_complex() else products))
        return weights, totals

    def difference(self, totals: list[Var], var: Var, direction: torch.Tensor) -> float:
        """Return the directional derivative of the sum of `totals` with respect to `var`, by central differences."""
        value, ends = self.feed[var.name], []
        for step in (_STEP, -_STEP):
            self.feed[var.name] = value + step * direction
            ends.append(sum(float(part) for part in self.run(totals, check=False)))
        self.feed[var.name] = value
        return (ends[0] - ends[1]) / (2 * _STEP)


def _check_values(operator: Operator, case: Case, tensors: dict[str, list[torch.Tensor]], attributes: dict[str, Any]) -> None:
    call = _Call(operator, tensors, attributes)
    for slot in operator.signature.outputs:
        if slot.name not in case.values:
            continue
        stated = case.values[slot.name]
        outputs = call.run(list(call.op.outputs[slot.name]), training=False)
        for actual, expected in zip(outputs, stated if slot.variadic else [stated], strict=True):  # type: ignore[arg-type]
            wanted = torch.tensor(expected, dtype=actual.dtype)
            same = actual.shape == wanted.shape and torch.allclose(actual, wanted, rtol=1e-12, atol=1e-12)
            assert same, f"{operator.type}: {case} states {slot.name} = {expected}, but it is {actual.tolist()}"


def _check_gradients(operator: Operator, case: GradCheck, tensors: dict[str, list[torch.Tensor]], attributes: dict[str, Any]) -> None:
    """Compare gradients with differences of the outputs; and second gradients, if declared, with differences of the first."""
    call = _Call(operator, tensors, attributes)
    declared = [slot for slot in call.inputs if slot in operator.gradients and operator.differentiates(slot)]
    wanted = [(slot, var) for slot in declared for var in call.inputs[slot] if var.dtype.is_inexact]
    outputs = [(slot.name, var) for slot in operator.signature.outputs for var in call.op.outputs[slot.name]]
    outputs = [(slot, var) for slot, var in outputs if slot not in operator.intermediate and var.dtype.is_inexact]
    cotangents, totals = call.weigh([var for _, var in outputs])
    what = f"{operator.type}: {case}: the gradient"
    first: list[Var] = []
    for (slot, _), gradient in zip(wanted, gradients(totals, [var for _, var in wanted]), strict=True):
        assert gradient is not None, f"{operator.type}: no gradient reaches {slot}"
        first.append(gradient)
    for (slot, var), analytic in zip(wanted, call.run(first), strict=True):
        numeric = torch.zeros_like(call.feed[var.name])
        for index in range(numeric.numel()):
            direction = torch.zeros_like(numeric)
            for unit in (1.0, 1j) if numeric.is_complex() else (1.0,):
                direction.view(-1)[index] = unit  # type: ignore[assignment]
                numeric.view(-1)[index] += unit * call.difference(totals, var, direction)
        close = analytic.shape == numeric.shape and torch.allclose(analytic, numeric, rtol=1e-5, atol=1e-7)
        assert close, f"{what} of {slot} is {analytic.tolist()}, but finite differences give {numeric.tolist()}"
    off = _not_additive(call, cotangents, first)
    assert not off, f"{what} of {wanted[off[0]][0]} is not linear in its cotangent: it is wrong if that is large or zero"
    wanted += [(f"d{slot}", var) for (slot, _), var in zip(outputs, cotangents, strict=True)]
    _, totals = call.weigh(first)
    try:
        second = gradients(totals, [var for _, var in wanted])
    except GradientError:
        return
    values = iter(call.run([gradient for gradient in second if gradient is not None]))
    for (slot, var), gradient in zip(wanted, second, strict=True):
        analytic = torch.zeros_like(call.feed[var.name]) if gradient is None else next(values)
        # One direction with only nonzero elements is enough, and takes two runs.
        direction = _random(tuple(call.feed[var.name].shape), analytic.dtype, 0.5, 1.5, call.generator)
        slope, expected = float((analytic.conj() * direction).sum().real), call.difference(totals, var, direction)
        close = analytic.shape == direction.shape and math.isclose(slope, expected, rel_tol=1e-5, abs_tol=1e-6)
        assert close, (
            f"{what} of its gradients with respect to {slot} is {analytic.tolist()}, "
            f"{slope:.6g} along {direction.tolist()}, but finite differences give {expected:.6g}"
        )


def _not_additive(call: _Call, cotangents: list[Var], first: list[Var]) -> list[int]:
    """Return the indices of the gradients that are not linear in their cotangents.

    Finite differences only use cotangents between -1 and 1; here, each is split into two, with large and zero elements.
    """
    given = {var.name: call.feed[var.name] for var in cotangents}
    whole, off = call.run(first, check=False), []
    for start in range(len(_FACTORS)):  # each element gets each factor once
        part = {}
        for name, item in given.items():
            factors = torch.tensor(_FACTORS, dtype=item.dtype).roll(start).repeat(item.numel())
            part[name] = item * factors[: item.numel()].reshape(item.shape)
        call.feed |= part
        one = call.run(first, check=False)
        call.feed |= {name: item - part[name] for name, item in given.items()}
        other = call.run(first, check=False)
        for number, parts in enumerate(zip(one, other, whole, strict=True)):
            near = 1e-10 * max([1.0, *(float(item.abs().max()) for item in parts if item.numel())])
            if not torch.allclose(parts[0] + parts[1], parts[2], rtol=0.0, atol=near):
                off.append(number)
    call.feed |= given
    return off


def _check_linear(operator: Operator, tensors: dict[str, list[torch.Tensor]], attributes: dict[str, Any]) -> None:
    """Check that the kernel is linear in each declared input, from which gradients of gradients are derived.

    It must hold without the optional inputs that the gradient does not read, such as a bias, and without all of them.
    """
    optional = frozenset(slot.name for slot in operator.signature.inputs if slot.optional)
    for slot in operator.linear_in:
        (x,) = tensors[slot]
        rule = operator.gradients.get(slot)
        for left_out in {optional, optional.difference(rule.parameters if rule else ())}:  # often equal
            if x.is_floating_point() or x.is_complex():
                other = x.flip(0) if x.ndim else x
                rest = {name: items for name, items in tensors.items() if name not in left_out}
                converted = operator.convert_attributes(attributes)
                given = [{**rest, slot: [item]} for item in (x, other, other - 2 * x)]
                one, two, both = (value for each in given for value in _leaves(operator.call(each, converted)))
                same = torch.allclose(both + 2 * one, two, rtol=1e-9, atol=1e-9)
                assert same, f"{operator.type} is not linear in {slot}"


def _check_refusal(operator: Operator, case: Rejects, tensors: dict[str, list[torch.Tensor]], attributes: dict[str, Any]) -> None:
    try:
        call = _Call(operator, tensors, attributes)
        call.run(list(call.op.writes))
    except OarlockError as error:
        if case.message in str(error):
            return
        raise AssertionError(f"{operator.type}: {case} is refused, but with {error.message!r}") from error
    raise AssertionError(f"{operator.type}: {case} is not refused")


def _check_memory(operator: Operator, tensors: dict[str, list[torch.Tensor]], attributes: dict[str, Any]) -> set[str]:
    """Check that outputs only share memory with declared aliases, and that variants agree with the kernel; also for gradients.

    Returns the slots whose memory is shared.
    """
    given = _copied(tensors)
    results = operator.call(given, operator.convert_attributes(attributes))
    expected = _leaves(results)
    shared = {slot for slot, items in given.items() if _memory(items) & _memory(expected)}
    unnamed = sorted(shared.difference(operator.aliases))
    assert not unnamed, f"{operator.type}: an output shares the memory of {', '.join(unnamed)}, which aliases does not declare"
    _require_unchanged(operator, "its kernel", given, tensors)
    expected = [value.clone() for value in expected]
    _check_variants(operator, tensors, operator.convert_attributes(attributes), expected)
    known = {**tensors, **results}
    known |= {f"d{name}": [torch.full_like(item, 0.5) for item in items] for name, items in results.items()}
    known |= {f"{name}_shape": items for name, items in known.items()}
    for slot, rule in operator.gradients.items():
        gradient = rule.operator
        of_reals = slot in operator.complex_gradients and any(item.is_complex() for item in known.get(slot, ()))
        if gradient is not None and slot in known and not of_reals and not gradient.wants_context:
            read = {slot.name: known[slot.name] for slot in gradient.signature.inputs if slot.name in known}
            _check_memory(gradient, read, {name: value for name, value in attributes.items() if name in gradient.attributes})
    return shared


def _check_variants(
    operator: Operator, tensors: dict[str, list[torch.Tensor]], attributes: dict[str, Any], expected: list[torch.Tensor]
) -> None:
    variants = variants_of(operator)
    if variants.out is not None:
        (wanted,) = expected
        shape = (*wanted.shape[:-1], wanted.shape[-1] + 2) if wanted.ndim else (2,)
        wide = torch.zeros(shape, dtype=wanted.dtype)
        out = wide[..., 1:-1] if wanted.ndim else wide[1]
        given = _copied(tensors)
        operator.call(given, {**attributes, "out": out}, kernel=variants.out)
        same = _agree(operator, out, wanted)
        assert same, f"{operator.type}: its out variant gives {out.tolist()}, but the kernel gives {wanted.tolist()}"
        _require_unchanged(operator, "its out variant", given, tensors)
    if variants.host is not None and all(item.numel() for items in tensors.values() for item in items):
        numbers = {slot: [item.flatten()[0] for item in items] for slot, items in tensors.items()}
        (wanted,) = _leaves(operator.call(numbers, {}))
        if not wanted.is_floating_point():
            hosts = {slot: [item.item() for item in items] for slot, items in numbers.items()}
            ((number,),) = operator.call(hosts, {}, kernel=variants.host).values()
            one = torch.full((), number, dtype=wanted.dtype)
            assert torch.equal(one, wanted), f"{operator.type}: its host function gives {number}, but the kernel gives {wanted.item()}"
    if variants.number is not None and expected[0].ndim == 0:
        given = _copied(tensors)
        ((number,),) = operator.call(given, attributes, kernel=variants.number).values()
        one = torch.full((), number, dtype=expected[0].dtype)
        same = torch.equal(one, expected[0]) or bool(one.isnan() & expected[0].isnan())
        assert same, f"{operator.type}: its number function gives {number}, but the kernel gives {expected[0].item()}"
        _require_unchanged(operator, "its number function", given, tensors)
    for slot, (pack, kernel) in variants.prepacked.items():
        given = _copied(tensors)
        packed = pack(given[slot][0], **attributes)
        actual = _leaves(operator.call(given, {**attributes, "packed": packed}, kernel=kernel))
        same = all(_agree(operator, *pair) for pair in zip(actual, expected, strict=True))
        assert same, f"{operator.type}: its prepacked kernel gives {actual}, but the kernel gives {expected}"
        _require_unchanged(operator, "its prepacked kernel", given, tensors)
    for slots, kernel in variants.in_place.items():
        given = _copied(tensors)
        taken = [item for slot in slots for item in given.get(slot, ())]
        fits = all(one.shape == other.shape and one.dtype == other.dtype for one, other in zip(taken, expected, strict=False))
        if not all(given.get(slot) for slot in slots) or not fits:
            continue
        actual = _leaves(operator.call(given, attributes, kernel=kernel))
        what = f"{operator.type}: its in-place variant for {slots}"
        same = all(_agree(operator, *pair) for pair in zip(actual, expected, strict=True))
        assert same, f"{what} gives {actual}, but the kernel gives {expected}"
        assert all(one.data_ptr() == other.data_ptr() for one, other in zip(taken, actual, strict=False)), f"{what} returns other memory"
        _require_unchanged(operator, what, {slot: items for slot, items in given.items() if slot not in slots}, tensors)


def _agree(operator: Operator, actual: torch.Tensor, expected: torch.Tensor) -> bool:
    """Return whether a variant agrees with the kernel: bit-identically or, for an operator that rounds by position, approximately."""
    if operator.sensitive_to != "place" or not expected.is_floating_point():
        return torch.equal(actual, expected)
    near = 64 * torch.finfo(expected.dtype).eps
    return actual.shape == expected.shape and torch.allclose(actual, expected, rtol=near, atol=near, equal_nan=True)


def _copied(tensors: dict[str, list[torch.Tensor]]) -> dict[str, list[torch.Tensor]]:
    return {slot: [item.clone() for item in items] for slot, items in tensors.items()}


def _leaves(results: dict[str, list[torch.Tensor]]) -> list[torch.Tensor]:
    """Return the results of a kernel, in the order of its outputs."""
    return [item for items in results.values() for item in items]


def _memory(tensors: list[torch.Tensor]) -> set[int]:
    """Return the addresses of the storage of tensors; empty tensors have none."""
    return {tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.numel()}


def _require_unchanged(operator: Operator, what: str, given: dict[str, list[torch.Tensor]], before: dict[str, list[torch.Tensor]]) -> None:
    changed = [slot for slot, items in given.items() if not all(map(torch.equal, items, before[slot]))]
    assert not changed, f"{operator.type}: {what} changes {', '.join(changed)}"


suggest_names(__name__)
