"""Every operator and every gradient operator in half precision: at its cases, and at axes so long that squares and sums leave its range."""

import re

import pytest
import torch
from op.arguments import DERIVED, FORWARD, Arguments, arguments_of, cases_of, compute, derive, root, root_arguments

from oarlock.registry import Case, GradCheck, Operator
from oarlock.registry.case import shapes_of_signature

HALF = {torch.float16: 2e-2, torch.bfloat16: 1e-1}
"""How far a result may be off, relative to itself and to the largest."""

LONG, LARGE = 300, 30.0
"""A sum of that many squares is 270,000, where float16 ends at 65,504."""

AT_CASES = 4
NOT_AT_RANDOM = {"cholesky", "causal_softmax", "put_share", "rms_norm_grad"}
"""Operators for which few numbers at random, or few shapes, are legal, or one input is computed of another."""


def compare(operator: Operator, arguments: Arguments, dtype: torch.dtype) -> None:
    """The result in half precision is what is computed of the same numbers in float32, wherever half precision holds that."""
    wide = arguments.replaced(lambda _, tensor: tensor.float() if tensor.dtype is dtype else tensor)
    halves, expected = compute(operator, arguments), compute(operator, wide)
    for slot, items in halves.items():
        for number, (half, single) in enumerate(zip(items, expected[slot], strict=True)):
            if half.dtype is not dtype:
                assert half.dtype is single.dtype, f"{operator.type}: {slot} is {half.dtype}"
                continue
            wanted = single.to(dtype).float()
            fits = wanted.isfinite()
            largest = float(wanted[fits].abs().max()) if bool(fits.any()) else 0.0
            bound = HALF[dtype]
            shapes = {name: [tuple(tensor.shape) for tensor in tensors] for name, tensors in arguments.tensors.items()}
            where = f"{operator.type}: {slot} {number} of {shapes}"
            near = torch.isclose(half.float()[fits], wanted[fits], rtol=bound, atol=bound * max(largest, 1.0))
            assert near.all(), f"{where}: {half[fits][~near][:3].tolist()} is {wanted[fits][~near][:3].tolist()} in float32"


def is_of_complex(operator: Operator) -> bool:
    """Whether it takes or gives complex numbers alone, whose parts are never in half precision."""
    return any(slot.dtype in ("complex", "float.complex") for slot in (*operator.signature.inputs, *operator.signature.outputs))


OPERATORS = [pytest.param(operator, id=operator.type) for operator in FORWARD if not is_of_complex(operator)]


def family(forward: Operator) -> list[Operator]:
    """An operator and its gradient operators, of every order."""
    return [forward, *(operator for operator in DERIVED if root(operator) is forward)]


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("forward", OPERATORS)
def test_the_cases_of_an_operator_run_in_half_precision(forward: Operator, dtype: torch.dtype):
    for operator in family(forward):
        real = [case for _, case in cases_of(operator, Case, GradCheck) if not re.search(r"\dj|complex", repr(case))]
        for case in real[-AT_CASES:]:
            compare(operator, arguments_of(operator, case, dtype), dtype)


def bounds_of(operator: Operator) -> tuple[float, float]:
    """Where numbers are drawn from: far from 0, unless the operator says that only others are legal."""
    given = [(case.low, case.high) for case in operator.declared_cases if isinstance(case, GradCheck)]
    return next((each for each in given if each != (-1.0, 1.0)), (-LARGE, LARGE))


def long_arguments(forward: Operator, dtype: torch.dtype) -> list[Arguments]:
    """Arguments of one long axis each, where the signature tells shapes."""
    required = any(spec.required and spec.name != "random_id" for spec in forward.attributes.values())
    if required or forward.infer_function is not None or forward.type in NOT_AT_RANDOM:
        return []
    low, high = bounds_of(forward)
    found = []
    for sizes in ((LONG, 4, 6, 7, 8, 9), (4, LONG, 6, 7, 8, 9), (4, 6, LONG, 7, 8, 9)):
        for shapes in list(shapes_of_signature(forward.signature, sizes))[1:2]:
            found.append(root_arguments(forward, GradCheck(low=low, high=high, **shapes), dtype))
    return found


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("forward", [item for item in OPERATORS if long_arguments(item.values[0], torch.float16)])
def test_sums_over_long_axes_stay_within_half_precision(forward: Operator, dtype: torch.dtype):
    for arguments in long_arguments(forward, dtype):
        for operator in family(forward):
            compare(operator, derive(operator, arguments), dtype)
