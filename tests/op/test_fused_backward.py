"""Fused operators compute together the results that their parts compute apart."""

import pytest
import torch
from op.arguments import DTYPES, Arguments, arguments_of, by_slot, cases_of, compute, positional
from tolerances import CLAIMS, VALUES

from oarlock.errors import DeclarationError
from oarlock.registry import Case, Catalogue, GradCheck, fused_backward, operator, standard
from oarlock.registry.fused_operator import FusedBackward

JOINT = list(standard.fused_operators.values())


def cases_of_parts(operator: FusedBackward) -> list[tuple[str, list[Arguments]]]:
    """For each case that every part of one root shares, or that one part has, the arguments of the parts that it gives."""
    found = []
    for dtype in DTYPES:
        by_name: dict[str, list[Arguments]] = {}
        for part in operator.parts:
            for name, case in cases_of(part, Case, GradCheck):
                label = f"{operator.type}-{name.rpartition('-')[2]}-{DTYPES[dtype]}"
                by_name.setdefault(label, []).append((part, arguments_of(part, case, dtype)))
        found += by_name.items()
    return found


def arguments_from(operator: FusedBackward, given: list) -> Arguments | None:
    """The fused operator's arguments, out of its parts'; None where these do not tell all of them."""
    tensors, shapes, attributes = {}, {}, {}
    for part, arguments in given:
        attributes |= part.convert_attributes(arguments.attributes)
        for slot in part.signature.inputs:
            name = operator.reads[part][slot.name]
            if slot.name in arguments.tensors:
                (shapes if slot.shape_only else tensors).setdefault(name, arguments.tensors[slot.name])
    for slot in operator.signature.inputs:
        if slot.shape_only and slot.name not in tensors and slot.name in shapes:
            tensors[slot.name] = shapes[slot.name]
    if any(slot.name not in tensors and not slot.optional for slot in operator.signature.inputs):
        return None
    return Arguments(tensors, attributes)


USES = [
    pytest.param(operator, arguments, id=label)
    for operator in JOINT
    for label, given in cases_of_parts(operator)
    if (arguments := arguments_from(operator, given)) is not None
]


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in JOINT])
def test_every_joint_operator_is_tried(operator: FusedBackward):
    assert any(param.values[0] is operator for param in USES)


@pytest.mark.parametrize(("operator", "arguments"), USES)
def test_a_joint_kernel_computes_what_the_kernels_of_its_parts_compute(operator: FusedBackward, arguments: Arguments):
    before = arguments.replaced(lambda _, tensor: tensor.clone())
    actual = by_slot(operator, operator.kernel(*positional(operator, arguments), **arguments.attributes))
    for part in operator.parts:
        tensors = {slot: arguments.tensors[name] for slot, name in operator.reads[part].items() if name in arguments.tensors}
        chosen = {name: value for name, value in arguments.attributes.items() if name in part.attributes}
        (expected,) = compute(part, Arguments(tensors, chosen)).values()
        (found,) = actual[part.type]
        relative, absolute = VALUES[expected[0].dtype] if expected[0].dtype is torch.float32 else CLAIMS
        torch.testing.assert_close(found, expected[0], rtol=relative, atol=absolute, equal_nan=True)
        addresses = {item.untyped_storage().data_ptr() for items in arguments.tensors.values() for item in items if item.numel()}
        assert found.untyped_storage().data_ptr() not in addresses, f"{part.type} is not fresh memory"
    for slot, items in arguments.tensors.items():
        assert all(map(torch.equal, items, before.tensors[slot])), f"{slot} was written"


def test_a_joint_operator_rounds_by_place_where_one_of_its_parts_does():
    rounding = {operator.type: {part.sensitive_to for part in operator.parts} for operator in JOINT}
    assert rounding["conv2d_backward_of_parameters"] == {"place", "layout"}
    for each in JOINT:
        expected = next(kind for kind in ("place", "layout", None) if kind in rounding[each.type])
        assert each.sensitive_to == expected, each.type


def one_output(catalogue: Catalogue):
    @operator("x: float[*b], scale: float[*b] -> y: float[*b]", catalogue=catalogue)
    def scaled(x, scale, *, times: int = 1):
        return x * scale * times

    return scaled


def test_a_joint_kernel_that_takes_what_no_part_reads_or_lacks_what_one_reads_is_refused():
    catalogue = Catalogue()
    scaled = one_output(catalogue)

    @fused_backward(scaled)
    def lacks(x, *, times):
        return (x,)

    @fused_backward(scaled)
    def takes_more(x, scale, more, *, times):
        return (x,)

    @fused_backward(scaled)
    def forgets(x, scale):
        return (x,)

    with pytest.raises(DeclarationError, match="lacks: no input provides scale, which scaled reads"):
        _ = lacks.signature
    with pytest.raises(DeclarationError, match="takes_more: its parts do not read more, or not as declared"):
        _ = takes_more.signature
    with pytest.raises(DeclarationError, match=r"forgets: its attributes are \[\], but those of its parts are \['times'\]"):
        _ = forgets.attributes


def test_a_joint_operator_is_no_part_of_a_forward_catalogue():
    assert standard.find("conv2d_backward") is standard.fused_operators["conv2d_backward"]
    assert standard.forward_only().find("conv2d_backward") is None
    assert "conv2d_backward" not in [operator.type for operator in standard]
