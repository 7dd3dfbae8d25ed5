"""Refusals that a signature makes, tried on every operator: nobody has to state it as a case.

And what nothing refuses runs: shapes at random, all of them known, are refused when the op is written, or they are legal.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest
import torch
from op.arguments import FORWARD, Arguments, Built, append, arguments_of, cases_of, compute, declare

import oarlock as ol
from oarlock.registry import Case, GradCheck, Operator
from oarlock.registry.dtype_class import CLASSES
from oarlock.registry.signature import Axis, Slot
from oarlock.tensor.dtype import from_torch

MANY = ("group", "rank", "broadcast")
FLOATS = (torch.float32, torch.float64)
Misfit = tuple[str, str, Arguments]  # a name, a part of the message, and the arguments that do not fit


def typical(operator: Operator) -> Arguments:
    """The arguments of the case that gives the most axes, of those that give no input empty tensors alone."""
    found = [arguments_of(operator, case) for _, case in cases_of(operator, Case, GradCheck)]
    full = [each for each in found if all(any(item.numel() for item in items) for items in each.tensors.values())]
    return max(full, key=lambda each: sum(item.ndim for items in each.tensors.values() for item in items))


def with_tensor(arguments: Arguments, slot: str, tensor: torch.Tensor, number: int = 0) -> Arguments:
    """The same arguments, but for one tensor."""
    items = [tensor if at == number else item for at, item in enumerate(arguments.tensors[slot])]
    return Arguments({**arguments.tensors, slot: items}, arguments.attributes)


def given(operator: Operator, arguments: Arguments) -> list[tuple[Slot, torch.Tensor]]:
    """Each input slot that has a tensor, and its first one."""
    return [(slot, arguments.tensors[slot.name][0]) for slot in operator.signature.inputs if arguments.tensors.get(slot.name)]


def places(slot: Slot, tensor: torch.Tensor) -> Iterator[tuple[Axis, int]]:
    """Each axis of a slot, and where it stands in a tensor that has it; of one that stands for many, the first."""
    at = 0
    for axis in slot.axes or ():
        width = tensor.ndim - len(slot.axes) + 1 if axis.kind in MANY else 1
        if width:
            yield axis, at
        at += width


def of_sizes(operator: Operator, arguments: Arguments) -> Iterator[Misfit]:
    """A size that a name has twice is another in one place."""
    uses = [
        (axis, slot.name, number, at)
        for slot in operator.signature.inputs
        for number, tensor in enumerate(arguments.tensors.get(slot.name, ()))
        for axis, at in places(slot, tensor)
        if axis.kind in ("group", "rank") or (axis.kind == "size" and axis.name.isidentifier())
    ]
    for axis, slot, number, at in uses:
        if [each[0] for each in uses].count(axis) > 1:
            tensor = arguments.tensors[slot][number]
            longer = torch.cat([tensor, tensor.narrow(at, 0, 1)], at)
            message = f"{axis} is " if axis.kind in MANY else f"dimension {axis.name} is "
            yield f"{axis}-of-{slot}.{number}", message, with_tensor(arguments, slot, longer, number)


def of_ranks(operator: Operator, arguments: Arguments) -> Iterator[Misfit]:
    """An input has too few axes, or too many."""
    for slot, tensor in given(operator, arguments):
        fixed = sum(axis.kind not in MANY for axis in slot.axes or ())
        wrong = [] if slot.axes is None else [fixed - 1] if fixed < len(slot.axes) else [fixed - 1, fixed + 1]
        for count in (each for each in wrong if each >= 0):
            changed = with_tensor(arguments, slot.name, tensor.new_ones((1,) * count))
            yield f"{count}-axes-of-{slot.name}", f"{slot.name} has {count} dimension", changed


def of_dtypes(operator: Operator, arguments: Arguments) -> Iterator[Misfit]:
    """An input has a dtype of another kind, or another than the one beside it."""
    slots = given(operator, arguments)
    for slot, tensor in slots:
        kind = slot.dtype
        if len(kind) > 1 and kind not in ("any", "shape"):
            other = tensor.to(torch.int8 if kind == "bool" else torch.bool)
            described = CLASSES[kind][0] if kind in CLASSES else str(from_torch(tensor.dtype))
            yield f"dtype-of-{slot.name}", f"{slot.name} must be {described}, not ", with_tensor(arguments, slot.name, other)
        shared = kind in CLASSES or len(kind) == 1
        if shared and sum(len(arguments.tensors[each.name]) for each, _ in slots if each.dtype == slot.dtype) > 1:
            others = {"integer": (torch.int8, torch.int64), "complex": (torch.complex64, torch.complex128)}.get(kind, FLOATS)
            other = tensor.to(others[0] if tensor.dtype == others[1] else others[1])
            yield f"other-dtype-of-{slot.name}", "they must have the same dtype", with_tensor(arguments, slot.name, other)


def of_broadcasts(operator: Operator, arguments: Arguments) -> Iterator[Misfit]:
    """Two inputs that are broadcast have sizes that do not fit."""
    first, *others = [(slot.name, tensor) for slot, tensor in given(operator, arguments) if "*#" in slot.shape_text] or [("", None)]
    for name, tensor in others:
        two = with_tensor(arguments, first[0], first[1].new_ones(2))
        yield f"broadcast-of-{name}", "are different sizes", with_tensor(two, name, tensor.new_ones(3))


def of_axes(operator: Operator, arguments: Arguments) -> Iterator[Misfit]:
    """An attribute names an axis that is not there, or one of no elements, where there must be one."""
    if "axis" not in operator.attributes:
        return
    (slot, tensor), *_ = given(operator, arguments)
    if operator.type != "split_like":  # whose results have the shapes of what it is given beside
        for number in (tensor.ndim + (operator.type == "stack"), -tensor.ndim - 1):
            yield (
                f"axis-{number}",
                f"axis {number} is not an axis of ",
                Arguments(arguments.tensors, {**arguments.attributes, "axis": number}),
            )
    if "!" in operator.signature.outputs[0].shape_text:
        empty = with_tensor(arguments, slot.name, tensor[:0])
        for value, where in ((0, " along axis 0"), (None, "")):
            if value is not None or operator.attributes["axis"].default is None:
                message = f"{slot.name} has no elements{where}, but needs at least one"
                yield f"no-element{where}", message, Arguments(empty.tensors, {**arguments.attributes, "axis": value})


def of_splits(operator: Operator, arguments: Arguments) -> Iterator[Misfit]:
    """Row splits are not there, begin elsewhere than with 0, fall, or end elsewhere than where the elements do."""
    for slot, splits in given(operator, arguments):
        name = slot.name
        if not name.endswith("splits"):
            continue
        if slot.axes[0].name == "n+1":
            yield f"no-{name}", f"{name} has size 0, but n+1 must be at least 1", with_tensor(arguments, name, splits[:0])
        if operator.checks_values:
            wrong = {"late": (0, 1), "falling": (1, int(splits[-1]) + 1), "long": (-1, int(splits[-1]) + 1)}
            if operator.type == "sequence_elements":  # it is not given the elements that the splits are of
                del wrong["long"]
            for kind, (at, value) in wrong.items():
                changed = splits.clone()
                changed[at] = value
                yield f"{kind}-{name}", "row splits of ", with_tensor(arguments, name, changed)


Kind = Callable[[Operator, Arguments], Iterator[Misfit]]
KINDS: Sequence[Kind] = (of_sizes, of_ranks, of_dtypes, of_broadcasts, of_axes, of_splits)
TYPICAL = [(operator, typical(operator)) for operator in FORWARD if operator.signature.inputs]


TAKING_ANYTHING = {
    *(
        "arange",
        "assign",
        "broadcast",
        "broadcast_to",
        "cast",
        "flatten",
        "full_like",
        "move",
        "numel",
        "random_normal_like",
        "random_uniform_like",
    ),
    *(
        "diagonal",
        "flip",
        "optimization_barrier",
        "pad",
        "reshape",
        "reshape_like",
        "roll",
        "split_like",
        "stop_gradient",
        "take_share",
        "tile",
        "transpose",
        "view",
    ),
}
"""One input of any shape and any dtype, and maybe the shape of others: their signatures refuse nothing. What `reshape` and
`transpose` refuse themselves is stated in their cases."""


def implied(operator: Operator) -> set[Kind]:
    """The kinds of misfits that there are for a signature, read off its text alone."""
    inputs = [part.partition(": ")[::2] for part in str(operator.signature).partition(" -> ")[0].split(", ")]
    twice = [item for name, type in inputs for item in [(name, type)] * (2 if name.startswith("*") else 1)]
    dtypes = [type.partition("[")[0] for _, type in twice]
    axes = [type.partition("[")[2].rstrip("]").split() for _, type in twice if "[" in type]
    names = [
        axis.rstrip("!")
        for each in axes
        for axis in (item.replace("~", "") for item in each)
        if re.fullmatch(r"(\*|\.\.\.)?[a-z]+!?", axis)
    ]
    splits = [type for name, type in inputs if name.endswith("splits")]
    found = {
        of_sizes: len(names) > len(set(names)),
        of_ranks: any(len(each) != 1 or not each[0].startswith(("*", "...")) for each in axes),
        of_dtypes: any(len(dtype) > 1 and dtype not in ("any", "shape") for dtype in dtypes) or dtypes.count("T") > 1,
        of_broadcasts: sum(each == ["*#s"] for each in axes) > 1,
        of_axes: "axis" in operator.attributes and operator.type != "split_like",
        of_splits: bool(splits) and (operator.checks_values or splits == ["int64[n+1]"]),
    }
    return {kind for kind, is_implied in found.items() if is_implied}


@pytest.mark.parametrize(("operator", "arguments"), [pytest.param(*each, id=each[0].type) for each in TYPICAL])
def test_every_operator_has_a_misfit_of_each_kind_that_its_signature_implies(operator: Operator, arguments: Arguments):
    found = {kind for kind in KINDS if any(kind(operator, arguments))}
    assert {kind.__name__ for kind in found} == {kind.__name__ for kind in implied(operator)}
    assert bool(found) is (operator.type not in TAKING_ANYTHING)


@pytest.mark.parametrize(
    ("operator", "message", "arguments"),
    [
        pytest.param(operator, message, misfit, id=f"{operator.type}-{name}")
        for operator, arguments in TYPICAL
        for kind in KINDS
        for name, message, misfit in kind(operator, arguments)
    ],
)
def test_what_does_not_fit_the_signature_is_refused(operator: Operator, message: str, arguments: Arguments):
    built = declare(arguments)
    with pytest.raises(ol.OarlockError) as refusal:
        append(operator, built, arguments.attributes)
        built.run(built.op.writes)
    assert message in str(refusal.value)


@pytest.mark.parametrize(("operator", "arguments"), [pytest.param(*each, id=each[0].type) for each in TYPICAL])
def test_what_is_changed_into_a_misfit_fits(operator: Operator, arguments: Arguments):
    compute(operator, arguments)


# Shapes at random, all of them known

SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 6)
TRIES, ENOUGH = 40, 15  # the first for operators of which few shapes are legal
Shapes = dict[str, list[list[int]]]


def shapes_at_random(operator: Operator, shapes: Shapes, random: Random) -> Shapes:
    """Shapes that agree on the names of the signature, those of a case, or any; then up to two are changed."""
    way = random.random()
    if way < 0.4:
        pool: dict[object, list[int]] = {}
        known = {slot.name: slot.axes for slot in operator.signature.inputs if slot.axes is not None and slot.name in shapes}
        shapes = shapes | {name: [sizes_of(axes, pool, random) for _ in shapes[name]] for name, axes in known.items()}
    elif way < 0.5:
        shapes = {name: [random.choices(SIZES, k=random.randint(0, 3)) for _ in items] for name, items in shapes.items()}
    shapes = {name: [list(shape) for shape in items] for name, items in shapes.items()}
    for _ in range(random.randint(0 if way < 0.5 else 1, 2)):
        name = random.choice(list(shapes))
        if operator.signature.input(name).variadic and random.random() < 0.3:
            shapes[name] = [*shapes[name], random.choice(shapes[name] or [[]])] if random.random() < 0.5 else shapes[name][:1]
        if not shapes[name]:  # of any number of inputs, none
            continue
        number, change = random.randrange(len(shapes[name])), random.random()
        shape = shapes[name][number]
        if change < 0.2 or not shape:
            shape.insert(random.randint(0, len(shape)), random.choice(SIZES))
        elif change < 0.4:
            shape.pop(random.randrange(len(shape)))
        elif change < 0.5:
            shapes[name][number] = list(random.choice(shapes[random.choice(list(shapes))] or [[]]))
        else:
            shape[random.randrange(len(shape))] = random.choice(SIZES)
    return shapes


def sizes_of(axes: Sequence[Axis], pool: dict[object, list[int]], random: Random) -> list[int]:
    """A shape that has the axes. What a name stands for is in `pool`, or goes there."""
    sizes: list[int] = []
    for axis in axes:
        count = random.randint(0, 3) if axis.kind in MANY else 1
        drawn = random.choices(SIZES, k=count)
        name = axis.name.removesuffix("+1")
        found = drawn if axis.kind == "each" else [int(name)] if name.isdigit() else pool.setdefault(name, drawn)
        sizes += [size + axis.name.endswith("+1") for size in found]
    return sizes


def attributes_at_random(operator: Operator, attributes: dict[str, object], random: Random) -> dict[str, object]:
    """The attributes, of which some numbers are others."""
    changed = dict(attributes)
    for name, spec in sorted(operator.attributes.items()):
        value = attributes.get(name, spec.default)
        if name == "random_id" or random.random() > 0.3:
            continue
        if isinstance(value, bool):
            changed[name] = not value
        elif isinstance(value, int) or (value is None and name in ("axis", "stop")):
            changed[name] = random.randint(-4, 4)
        elif isinstance(value, tuple):
            changed[name] = (*value[:-1], *random.choices((-1, 0, 1, 2, 3), k=random.randint(0, 2)))
    return changed


OF_MATRICES = {
    *("inverse", "solve_columns", "solve_triangular_columns", "cholesky", "slogdet", "det", "cofactors"),
    *("qr", "svd", "eigh", "lu", "pinv", "matrix_exp"),
}


def legal(operator: Operator, arguments: Arguments, shapes: Shapes, attributes: dict[str, object]) -> Arguments:
    """Arguments of the shapes, with values that are legal wherever any are: so a run that fails does so for the shapes."""
    cut = next((shapes[name] for name in ("like", "x", "xs", "dxs", "log_p", "emissions", "hypothesis") if shapes.get(name)), [])

    def value(slot: Slot, number: int, shape: list[int]) -> torch.Tensor:
        dtype = next((item.dtype for item in arguments.tensors[slot.name]), torch.float64)
        inexact = dtype.is_floating_point or dtype.is_complex
        if inexact and operator.type in OF_MATRICES and len(shape) > 1:  # that have an inverse
            return (torch.full(shape[-2:], 0.5, dtype=dtype) + torch.eye(*shape[-2:])).expand(shape).contiguous()
        if inexact:
            return torch.full(shape, 0.5, dtype=dtype)
        elements = shapes.get(slot.name.removesuffix("_splits")) or [] if slot.name.endswith("_splits") else cut
        if slot.name.endswith("splits") and len(shape) == 1 and number < len(elements):  # as evenly as can be
            return torch.arange(shape[0]) * (elements[number] or [0])[0] // max(1, shape[0] - 1)
        if operator.type == "merge" and slot.name == "condition" and len(shape) == 1:  # as often true as rows are given for that
            return torch.arange(shape[0]) < (shapes["yes"][0] or [0])[0]
        if slot.name == "label_splits" and len(shape) == 1:
            return torch.arange(shape[0]) * (shapes["label"][0] or [0])[0] // max(1, shape[0] - 1)
        ignored = attributes.get("ignore_index", -100) if "ignore_index" in operator.attributes else 0
        number = ignored if slot.name == "label" else slot.dtype != "int64"  # one is no divisor of 0
        return torch.full(shape, number, dtype=dtype)

    slots = [(operator.signature.input(name), items) for name, items in shapes.items()]
    return Arguments({slot.name: [value(slot, *each) for each in enumerate(items)] for slot, items in slots}, attributes)


def with_gradients(operator: Operator, built: Built) -> list[ol.Var]:
    """The fetches: all that the op writes, and the gradients of what it returns."""
    returned = [var for slot, items in built.op.outputs.items() if slot not in operator.intermediate for var in items]
    floats = [var for var in returned if var.dtype.is_floating]
    inputs = [var for slot, items in built.inputs.items() if operator.differentiates(slot) for var in items if var.dtype.is_floating]
    written = list(built.op.writes)
    if not (operator.gradients and floats and inputs):
        return written
    with built.program:
        found = [each for each in ol.gradients(floats, inputs) if each is not None]
    return [*written, *found]


TOLD_BY_WORKERS = {
    "all_gather",
    "broadcast",
    "gather_shares",
    "pad_shard",
    "put_share",
    "reduce_scatter",
    "reduce_to_shares",
    "rows_of_share",
    "shard",
    "take_share",
}
"""Operators whose sizes follow from how many workers there are, and from what each has, which a program does not know."""


@pytest.mark.parametrize(
    "operator", [pytest.param(operator, id=operator.type) for operator, _ in TYPICAL if operator.type not in TOLD_BY_WORKERS]
)
def test_known_shapes_are_refused_when_the_op_is_written_or_they_run(operator: Operator):
    random, ran = Random(operator.type), 0
    cases = [arguments_of(operator, case) for _, case in cases_of(operator, Case, GradCheck)]
    for tried in range(TRIES):
        if ran and tried >= ENOUGH:
            break
        case = random.choice(cases)
        shapes = shapes_at_random(operator, {name: [list(item.shape) for item in items] for name, items in case.tensors.items()}, random)
        arguments = legal(operator, case, shapes, attributes_at_random(operator, case.attributes, random))
        built = declare(arguments)
        try:
            append(operator, built, arguments.attributes)
        except ol.OarlockError:
            continue
        fetch = with_gradients(operator, built)
        ol.Executor(interpret=True, check=True, passes=()).run(built.program, built.feed, fetch, scope=ol.Scope())
        ran += 1
    assert ran
