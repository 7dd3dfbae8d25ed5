"""The influences on the bits of a result, as each operator declares them: passes, plans and tests rely on that."""

import re
from collections.abc import Callable
from functools import partial

import pytest
import torch
from op.arguments import Arguments, compute
from op.arranging import ARRANGEMENTS, OPERATORS, arranged, at_every_use, column_slice, same_bits, uses_of
from torch.utils._python_dispatch import TorchDispatchMode

from oarlock.registry import Operator, standard

# Gaps

SUMS_NOTHING = [item for item in OPERATORS if not (item.aliases or item.axis_attribute or item.summed_outputs or item.effects)]


def rounds_by_layout(operator: Operator, make: Callable[[], Arguments]) -> bool:
    """Whether gaps in the memory of one of the inputs make a difference."""
    plain = compute(operator, arranged(make(), torch.clone))
    for slot in make().tensors:
        arguments = make().replaced(lambda name, tensor, slot=slot: column_slice(tensor).copy_(tensor) if name == slot else tensor.clone())
        found = compute(operator, arguments)
        if not all(same_bits(one, other) for name in plain for one, other in zip(plain[name], found[name], strict=True)):
            return True
    return False


@at_every_use([item for item in SUMS_NOTHING if item.sensitive_to is None])
def test_an_operator_gives_the_same_bits_whether_there_are_gaps_in_memory_or_not(operator: Operator, make: Callable[[], Arguments]):
    assert not rounds_by_layout(operator, make)


@pytest.mark.parametrize("operator", [pytest.param(item, id=item.type) for item in OPERATORS if item.sensitive_to == "layout"])
def test_what_rounds_by_layout_is_seen_to(operator: Operator):
    seen = any(rounds_by_layout(operator, make) for _, make in uses_of(operator))
    if not seen and torch.backends.cpu.get_cpu_capability() == "DEFAULT":
        pytest.skip("without AVX2, vectors of its elements are rounded as single elements are")
    assert seen


# What libraries of products compute


class _Called(TorchDispatchMode):
    """Collects the names of the kernels of PyTorch that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, kernel, types, args=(), kwargs=None):
        self.names.add(kernel.overloadpacket.__name__.removesuffix("_"))
        return kernel(*args, **(kwargs or {}))


BY_LIBRARIES = re.compile(
    r"mm|addmm|b?addbmm|baddbmm|bmm|mv|addmv|dot|vdot|addr|.*convolution.*|.*attention.*|.*linear.*|.*linalg.*|.*fft.*|mkl.*|_mkl.*"
)
"""Kernels that hand their work to a BLAS or to oneDNN."""
EXACT = ("linear_int8",)
"""Operators whose products are of integers, which are added up exactly in any order."""


@pytest.mark.parametrize("operator", [pytest.param(item, id=item.type) for item in OPERATORS])
def test_what_a_library_of_products_computes_rounds_by_place_and_nothing_else_does(operator: Operator):
    """On each processor libraries choose other loops, so that the bits which one of them gives show nothing of this."""
    called = _Called()
    for _, make in uses_of(operator):
        arguments = make()
        with called:
            compute(operator, arguments)
    is_by_library = any(map(BY_LIBRARIES.fullmatch, called.names)) and operator.type not in EXACT
    assert (operator.sensitive_to == "place") is is_by_library, called.names


def moved(tensor: torch.Tensor, distance: int) -> torch.Tensor:
    """A dense tensor with the same strides, elsewhere: as far beyond a multiple of 64 bytes, and `distance` times 64 further."""
    size = tensor.element_size()
    beyond = tensor.data_ptr() % 64 // size + 64 // size * distance
    count = sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride(), strict=True)) + 1 if tensor.numel() else 0
    memory = torch.empty(beyond + count, dtype=tensor.dtype)
    assert memory.data_ptr() % 64 == 0
    return memory[beyond:].as_strided(tensor.shape, tensor.stride()).copy_(tensor)


@at_every_use([item for item in OPERATORS if item.sensitive_to == "place"])
def test_a_kernel_gives_the_same_bits_wherever_its_tensors_lie_alike(operator: Operator, make: Callable[[], Arguments]):
    """So whatever is run again, on one machine and with one setting, ends in the same bits."""
    for arrange in ARRANGEMENTS:
        given = arranged(make(), arrange)
        expected = compute(operator, given)
        for distance in (1, 7, 64, 1000):
            found = compute(operator, arranged(given, partial(moved, distance=distance)))
            assert all(same_bits(one, other) for slot in expected for one, other in zip(found[slot], expected[slot], strict=True))


def test_a_test_at_every_use_says_at_which_it_fails():
    tried = []

    @at_every_use([standard.get("tanh")])
    def fails_at_many_rows(operator: Operator, make: Callable[[], Arguments]) -> None:
        (x,) = make().tensors["x"]
        tried.append(x.shape)
        assert x.numel() < 60

    with pytest.raises(AssertionError) as caught:
        fails_at_many_rows(standard.get("tanh"))
    assert len(tried) > 3
    assert "many_rows" in caught.value.__notes__[0]
