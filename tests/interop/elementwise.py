"""Rules of element-wise functions beside PyTorch, and their exports beside ONNX Runtime, in units in the last place.

    PYTHONPATH=src:tests python -m interop.elementwise --seed 0 --count 1000000

Every float16, `--count` numbers of float32 whose bits are random, so that all exponents are as likely, and the special ones. A rule is
called with the numbers that its overload's schema asks for; an operator of ours with the attributes of its first case.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from interop.onnx.onnx_sessions import session_of
from op.arguments import FORWARD, Arguments, arguments_of, build, cases_of, compute

import oarlock as ol
from oarlock.interop.onnx.export_rule import has_rule
from oarlock.interop.torch.arguments import promote_arguments
from oarlock.interop.torch.rules.registry import RESULT, Rule, load_rules
from oarlock.registry import Case, GradCheck, Operator
from oarlock.registry.signature import TensorType
from oarlock.tensor.dtype import from_torch

__all__ = ["EXPORT_BOUNDS", "RULE_BOUNDS", "Difference", "elementwise_overloads", "exported_operators", "of_export", "of_rule", "spread"]

inf, nan = float("inf"), float("nan")
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 6.0, 20.0, inf, -inf, nan, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38,
           -3.4028235e38, 3.1415927, 1e-3, -1e-3, 88.7, -88.7, -104.0)  # fmt: skip
MODULES = ("functions", "arithmetic", "activations", "comparison")
"""The files of rules of which most go element by element."""

OTHERS = {
    **dict.fromkeys(("softmax", "log_softmax", "_softmax", "_log_softmax", "_safe_softmax", "glu"), "along an axis"),
    **dict.fromkeys(("alias", "clone", "contiguous", "lift_fresh_copy", "positive", "resolve_conj", "resolve_neg", "detach", "detach_copy"),
                    "its argument itself"),
    **dict.fromkeys(("to", "_to_copy", "view"), "a dtype is its argument"),
    **dict.fromkeys(("view_as_real", "view_as_real_copy", "view_as_complex", "view_as_complex_copy", "real", "imag", "conj", "_conj",
                     "conj_physical", "complex", "polar"), "of complex numbers"),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift", "bitwise_right_shift", "__and__",
                     "__or__", "__xor__", "__lshift__", "__rshift__", "gcd", "lcm"), "of integers"),
    **dict.fromkeys(("equal", "where.Scalar"), "none is of a tensor"),
    "log_sigmoid_forward": "log_sigmoid, and a buffer",
    "_prelu_kernel": "prelu with the axes of its slopes",
}  # fmt: skip
"""Names of ATen in these files that are not compared here, and why."""

NUMBERS: dict[str, object] = {"rounding_mode": "trunc", "n": 1, "decimals": 2, "min": -0.5, "max": 0.75}
"""Arguments that are no tensors, by name; others that have no default are 0.5."""

SINGLE: dict[str, slice | int] = {"aten::prelu": slice(1), "aten::masked_fill": 0}
"""The part of the second tensor that a function takes, which others take whole."""

RULE_BOUNDS: dict[str, tuple[float, float, str]] = {
    "ldexp": (0.0, 2.0**20, "2 to a power by exp2, where PyTorch takes pow: it may be a denormal, which has few digits"),
    "special_ndtr": (inf, inf, "exact far below 0, where PyTorch's 1 + erf is 0: compared in float64 by another test"),
    "pow": (inf, 1.0, "of float16, PyTorch has infinity for the root of -infinity alone, and NaN in float32"),
}
"""By how many units a rule may differ, in float16 and in float32, and why; others by one."""

_CANCELS = "its terms cancel where the result is nearly 0, in PyTorch as well"
_CLAMPED = "ONNX Runtime's Sigmoid is 0 below -18"
EXPORT_BOUNDS: dict[str, tuple[float, str]] = {
    "addcmul": (inf, _CANCELS),
    "copysign": (inf, "nothing in ONNX tells the sign of NaN"),
    **dict.fromkeys(("cosh", "sinh"), (inf, "PyTorch's is infinite from 89 on, where the result still has a float32")),
    **dict.fromkeys(("fmod", "remainder", "floor_divide"), (inf, "PyTorch's is NaN where the quotient is huge, and rounds another way")),
    "gelu": (inf, _CANCELS),
    **dict.fromkeys(("hardsigmoid", "log_loss", "logaddexp", "logaddexp2", "lerp"), (inf, _CANCELS)),
    "hardswish": (inf, "PyTorch's overflows where 6 x does"),
    **dict.fromkeys(("sigmoid", "silu"), (inf, _CLAMPED)),
    "mish": (4096.0, "its softplus is a denormal below -88"),
}
"""By how many units of float32 an exported operator may differ, and why; others by eight."""


@dataclass(frozen=True)
class Difference:
    """The largest difference, in units in the last place, infinite where one is NaN and the other is not; and where it is."""

    units: float
    where: str


def spread(dtype: torch.dtype, count: int, seed: int) -> torch.Tensor:
    """Every float16, or `count` numbers of float32 with random bits and as many near 1; and the special ones."""
    special = torch.tensor(SPECIAL).to(dtype)
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.float16:
        every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.float16)
        return torch.cat([every[torch.randperm(len(every), generator=generator)], special.roll(seed)])
    bits = torch.randint(-(2**31), 2**31, (count,), generator=generator, dtype=torch.int64).to(torch.int32)
    numbers = bits.view(torch.float32)
    numbers = torch.where(numbers.isnan(), nan, numbers)  # NaN of other bits may signal, and is not the same to all functions
    return torch.cat([numbers, torch.randn(count, generator=generator), special.roll(seed)])


def _in_order(x: torch.Tensor) -> torch.Tensor:
    """Integers that count floats from below, -0 and 0 as one."""
    integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    bits = x.contiguous().view(integer).to(torch.int64)
    return torch.where(bits < 0, -(2 ** (8 * x.element_size() - 1)) - bits, bits)


def difference(ours: torch.Tensor, theirs: torch.Tensor, inputs: list[torch.Tensor], least: float = 0.0) -> Difference:
    """How far two results are apart; those below `least` are 0. Raises AssertionError for two dtypes or shapes."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), (
        f"{ours.dtype}{list(ours.shape)} and {theirs.dtype}{list(theirs.shape)}"
    )
    if not ours.is_floating_point():
        units = torch.where(ours != theirs, inf, 0.0)
    else:
        apart = (_in_order(ours) - _in_order(theirs)).abs().double()
        same = (ours.isnan() & theirs.isnan()) | ((ours.abs() < least) & (theirs.abs() < least))
        apart = torch.where(same, 0.0, apart)
        units = torch.where(ours.isnan() ^ theirs.isnan(), inf, apart)
    worst = int(units.argmax())
    given = ", ".join(str(x.flatten()[worst % x.numel()].item()) for x in inputs)
    return Difference(units[worst].item(), f"({given}): {ours[worst].item()}, not {theirs[worst].item()}")


# Rules of imports beside PyTorch


def elementwise_overloads() -> Iterator[tuple[str, Rule]]:
    """The overloads of element-wise functions that have a rule, with it."""
    for overload, rule in sorted(load_rules().items()):
        file = rule.function.__module__.rpartition(".")[2]
        if (
            overload.startswith("aten.")
            and file in MODULES
            and not {overload.split(".")[1], overload.removeprefix("aten.")} & OTHERS.keys()
        ):
            yield overload, rule


def of_rule(overload: str, rule: Rule, dtype: torch.dtype, count: int, seed: int) -> Difference:
    """Compare a rule with PyTorch, on the same numbers."""
    _, name, variant = overload.split(".")
    function = getattr(getattr(torch.ops.aten, name), variant)
    given = dict(_arguments(function._schema, dtype, count, seed))
    try:
        expected = function(**given)
    except NotImplementedError:  # of half precision
        wide = {name: value.float() if isinstance(value, torch.Tensor) else value for name, value in given.items()}
        expected = function(**wide).to(dtype)
    expected = expected if isinstance(expected, torch.Tensor) else expected[0]
    tensors = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
    with ol.Program() as program:
        inputs = {name: ol.layer.data(name, list(x.shape), str(from_torch(x.dtype)), batch=None) for name, x in tensors.items()}
        arguments = promote_arguments({**given, **inputs}, rule.promote, to_float=rule.to_float) if rule.promote else {**given, **inputs}
        if RESULT in rule.parameters:
            arguments[RESULT] = TensorType(from_torch(expected.dtype), tuple(expected.shape))  # type: ignore[arg-type]
        made: Any = rule.function(**arguments)
    made = made if isinstance(made, ol.Var) else made[0]
    (found,) = ol.Executor().run(program, tensors, [made], scope=ol.Scope(), return_numpy=False)
    assert isinstance(found, torch.Tensor)
    return difference(found, expected, list(tensors.values()))


def _arguments(schema: Any, dtype: torch.dtype, count: int, seed: int) -> Iterator[tuple[str, object]]:
    tensors = 0
    for argument in schema.arguments:
        kind = str(argument.type)
        if kind == "Tensor" or (kind == "Optional[Tensor]" and argument.name in ("min", "max")):
            x = spread(dtype, count, seed + tensors)
            x = x > 0 if argument.name in ("mask", "condition") else x
            yield argument.name, x[SINGLE[schema.name]] if argument.name in ("weight", "value") and schema.name in SINGLE else x
            tensors += 1
        elif argument.name in NUMBERS and kind != "Optional[Tensor]":
            yield argument.name, NUMBERS[argument.name]
        elif not argument.has_default_value():
            yield argument.name, 0.5


# Exports beside ONNX Runtime


def exported_operators() -> list[Operator]:
    """The operators that go element by element on floats and give one result."""
    return [operator for operator in FORWARD if has_rule(operator.type) and _is_elementwise(operator)]


def _is_elementwise(operator: Operator) -> bool:
    inputs, outputs = operator.signature.inputs, operator.signature.outputs
    floats = ("float", "real", "inexact", "number", "T")
    each = all(slot.axes is not None and len(slot.axes) == 1 and slot.axes[0].kind in ("group", "broadcast") for slot in inputs)
    return (
        each
        and len(outputs) == 1
        and bool(inputs)
        and all(slot.dtype in floats and not slot.variadic for slot in inputs)
        and "complex" not in outputs[0].dtype
    )


def of_export(operator: Operator, count: int, seed: int) -> Difference | None:
    """Compare an exported operator under ONNX Runtime with its kernel, on the same float32 numbers; None where ONNX has no words for it."""
    case = next(case for _, case in cases_of(operator, Case, GradCheck))
    attributes = arguments_of(operator, case, torch.float32).attributes
    slots = [slot for slot in operator.signature.inputs if not slot.shape_only]
    tensors = {slot.name: [spread(torch.float32, count, seed + number)] for number, slot in enumerate(slots)}
    built = build(operator, Arguments(tensors, attributes))
    output = built.op.writes[0]
    try:
        session = session_of(output)
    except ol.ProgramError:
        return None
    found = torch.from_numpy(session.run(dict(built.feed))[output.name].copy())
    expected = compute(operator, Arguments(tensors, attributes))[operator.signature.outputs[0].name][0]
    return difference(found, expected, list(built.feed.values()), least=2.0**-118)  # runtimes may count denormals as 0


def main() -> int:
    """Compare everything, and print what differs by more than it may."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1_000_000, help="numbers of float32")
    arguments = parser.parse_args()
    rules = [(overload, dtype, of_rule(overload, rule, dtype, arguments.count, arguments.seed), rule_bound(overload, dtype))
             for overload, rule in elementwise_overloads() for dtype in (torch.float16, torch.float32)]  # fmt: skip
    exports = [
        (operator.type, "export", of_export(operator, arguments.count, arguments.seed), export_bound(operator))
        for operator in exported_operators()
    ]
    compared = [(name, kind, found, bound) for name, kind, found, bound in (*rules, *exports) if found is not None]
    for name, kind, found, bound in compared:
        if found.units > 0:
            print(f"{'WRONG ' if found.units > bound else ''}{name} {kind}: {found.units:g} units of {bound:g}, at {found.where}")
    wrong = sum(found.units > bound for _, _, found, bound in compared)
    print(f"{len(rules)} rules and dtypes, {len(compared) - len(rules)} exports, {arguments.count} numbers: {wrong} beyond their bounds")
    return int(wrong > 0)


def rule_bound(overload: str, dtype: torch.dtype) -> float:
    """By how many units the rule of an overload may differ."""
    half, single, _ = RULE_BOUNDS.get(overload.split(".")[1], (1.0, 1.0, ""))
    return single if dtype is torch.float32 else half


def export_bound(operator: Operator) -> float:
    """By how many units an exported operator may differ."""
    return EXPORT_BOUNDS[operator.type][0] if operator.type in EXPORT_BOUNDS else 8.0


if __name__ == "__main__":
    sys.exit(main())
