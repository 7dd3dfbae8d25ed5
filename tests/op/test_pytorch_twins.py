"""Operators and compositions against the function of PyTorch that each is: values in every dtype, gradients of two orders in float64."""

import pytest
import torch
from op.breadth_twins import BREADTH, WHOLE
from op.fourier_twins import FOURIER
from op.loss_twins import LOSSES
from op.matrix_twins import MATRICES
from op.pytorch_twins import FLOATS, INTEGERS, Twin
from tolerances import AUTOGRAD, VALUES

import oarlock as ol
from oarlock.tensor.dtype import from_torch

HALF = (torch.float16, torch.bfloat16)  # which are the parts of no complex numbers
EVERY = pytest.mark.parametrize("twin", [pytest.param(twin, id=twin.name) for twin in [*FLOATS, *LOSSES, *BREADTH, *MATRICES, *FOURIER]])
NARROW = {torch.float16: (1e-2, 1e-2), torch.bfloat16: (1e-1, 1e-1)}


def tensors_of(twin: Twin, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """The arguments of a twin: tuples are shapes of numbers at random."""
    generator = torch.Generator().manual_seed(len(twin.name))
    found = []
    for given in twin.inputs:
        if isinstance(given, tuple):
            found.append((torch.rand(given, dtype=torch.float64, generator=generator) * (twin.high - twin.low) + twin.low).to(dtype))
        else:
            tensor = torch.tensor(given, dtype=torch.float64 if "." in str(given) or "inf" in str(given) else None)
            found.append(tensor.to(dtype) if tensor.is_floating_point() else tensor)
    if twin.bends:
        found[0] = torch.cat([found[0].flatten(), torch.tensor(twin.bends, dtype=dtype)])
    return found


class Written:
    """A twin of ours as a program: its value, and gradients of the sum of its elements times `weights`, of two orders."""

    def __init__(self, twin: Twin, tensors: list[torch.Tensor]):
        self.feed: dict[str, torch.Tensor] = {}
        with ol.Program() as self.program:
            self.inputs = [self.fed(f"x{number}", tensor) for number, tensor in enumerate(tensors)]
            self.y = twin.ours(*self.inputs)
        self.floats = [var for var in self.inputs[: len(tensors) - twin.still] if var.dtype.is_floating]

    def fed(self, name: str, tensor: torch.Tensor) -> ol.Var:
        self.feed[name] = tensor
        return ol.layer.data(name, list(tensor.shape), str(from_torch(tensor.dtype)), batch=None)

    def differentiate(self, targets: list[ol.Var], weights: list[torch.Tensor]) -> list[ol.Var | None]:
        with self.program:
            given = [self.fed(f"weight{len(self.feed)}", weight) for weight in weights]
        return ol.gradients(targets, self.floats, given)

    def run(self, fetch: list[ol.Var | None]) -> list[torch.Tensor | None]:
        kept = [var for var in fetch if var is not None]
        values = iter(ol.Executor().run(self.program, self.feed, kept, scope=ol.Scope(), return_numpy=False))
        return [None if var is None else next(values) for var in fetch]


def require_close(actual, expected, tolerance, where: str) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance[0], atol=tolerance[1], equal_nan=True, msg=lambda text: f"{where}: {text}")


@pytest.mark.filterwarnings("ignore:reduction", "ignore:index_reduce")  # PyTorch advises another mean
@pytest.mark.parametrize(
    ("twin", "dtype"),
    [
        pytest.param(twin, dtype, id=f"{twin.name}-{dtype}")
        for twins in ([*FLOATS, *LOSSES, *BREADTH, *MATRICES], FOURIER)
        for twin in twins
        for dtype in (torch.float64, torch.float32, *(HALF if twins is not FOURIER else ()))
    ],
)
def test_values_are_those_of_pytorch(twin: Twin, dtype: torch.dtype):
    tensors = tensors_of(twin, dtype)
    written = Written(twin, tensors)
    try:
        expected = twin.theirs(*tensors)
    except NotImplementedError:  # of half precision
        expected = twin.theirs(*(tensor.double() if tensor.is_floating_point() else tensor for tensor in tensors)).to(dtype)
    (found,) = written.run([written.y])
    assert (found.dtype, tuple(found.shape)) == (expected.dtype, tuple(expected.shape))
    require_close(found, expected, VALUES.get(dtype) or NARROW[dtype], "values")


@EVERY
@pytest.mark.filterwarnings("ignore:reduction", "ignore:index_reduce")
def test_gradients_are_those_of_pytorch(twin: Twin):
    tensors = tensors_of(twin)
    count = len(tensors) - twin.still
    given = [tensor.clone().requires_grad_(number < count and tensor.is_floating_point()) for number, tensor in enumerate(tensors)]
    leaves = [tensor for tensor in given if tensor.requires_grad]
    y = twin.theirs(*given)
    generator = torch.Generator().manual_seed(7)
    weight = torch.rand(y.shape, dtype=torch.float64, generator=generator) + 0.5
    written = Written(twin, tensors)
    firsts = written.differentiate([written.y], [weight])
    expected = [None] * len(leaves)
    if y.requires_grad:
        expected = list(torch.autograd.grad((y * weight).sum(), leaves, allow_unused=True, create_graph=twin.orders > 1))
    compare(written.run(firsts), expected, leaves, "gradient")
    pairs = [(ours, theirs) for ours, theirs in zip(firsts, expected, strict=True) if ours is not None and theirs is not None]
    pairs = [(ours, theirs) for ours, theirs in pairs if theirs.requires_grad]
    if twin.orders < 2 or not pairs:
        return
    weights = [torch.rand(theirs.shape, dtype=torch.float64, generator=generator) + 0.5 for _, theirs in pairs]
    seconds = written.differentiate([ours for ours, _ in pairs], weights)
    cost = sum((theirs * each).sum() for (_, theirs), each in zip(pairs, weights, strict=True))
    compare(written.run(seconds), torch.autograd.grad(cost, leaves, allow_unused=True), leaves, "second gradient")


def compare(found, expected, leaves, where: str) -> None:
    """Where one has no gradient, the other has none or zeros."""
    for number, (ours, theirs, leaf) in enumerate(zip(found, expected, leaves, strict=True)):
        zeros = torch.zeros_like(leaf)
        require_close(
            zeros if ours is None else ours, zeros if theirs is None else theirs.detach(), AUTOGRAD, f"{where} of float input {number}"
        )


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8], ids=str)
@pytest.mark.parametrize("twin", [pytest.param(twin, id=twin.name) for twin in [*INTEGERS, *WHOLE]])
def test_integers_are_those_of_pytorch(twin: Twin, dtype: torch.dtype):
    tensors = [torch.tensor(given).to(dtype) for given in twin.inputs]
    if dtype.is_signed and "shift" not in twin.name:
        tensors[0] = tensors[0] - 3
    written = Written(twin, tensors)
    (found,) = written.run([written.y])
    expected = twin.theirs(*tensors)
    assert found.dtype == expected.dtype
    assert torch.equal(found, expected)


def test_what_is_no_number_is_found():
    x = torch.tensor([1.0, float("nan"), float("inf"), -float("inf"), 0.0])
    for name in ("isnan", "isinf", "isfinite"):
        written = Written(Twin(name, getattr(ol.op, name), getattr(torch, name)), [x])
        assert torch.equal(written.run([written.y])[0], getattr(torch, name)(x))


def test_a_number_that_is_none_goes_through_as_in_pytorch():
    x, y = torch.tensor([1.0, float("nan"), 2.0]), torch.tensor([float("nan"), 1.0, 1.0])
    for name in ("minimum", "maximum"):
        written = Written(Twin(name, getattr(ol.op, name), getattr(torch, name)), [x, y])
        assert torch.equal(written.run([written.y])[0].isnan(), getattr(torch, name)(x, y).isnan())


def test_bools_are_those_of_pytorch():
    x, y = torch.tensor([[True], [False]]), torch.tensor([True, False])
    for ours, theirs in ((ol.op.logical_xor, torch.logical_xor), (lambda x, y: ol.op.where(x, y, x), lambda x, y: torch.where(x, y, x))):
        written = Written(Twin("bools", ours, theirs), [x, y])
        assert torch.equal(written.run([written.y])[0], theirs(x, y))


def test_where_nothing_is_likely_no_gradient_flows():
    """PyTorch gives NaN there."""
    x = torch.full((1, 2), -torch.inf, dtype=torch.float64)
    written = Written(Twin("logsumexp", lambda x: ol.op.logsumexp(x, axis=1), lambda x: torch.logsumexp(x, 1)), [x])
    found = written.run([written.y, *written.differentiate([written.y], [torch.ones(1, dtype=torch.float64)])])
    assert [each.tolist() for each in found] == [[-torch.inf], [[0.0, 0.0]]]


@pytest.mark.parametrize("count", [1, 4, 5])
def test_frequencies_are_those_of_pytorch(count: int):
    with ol.Program() as program:
        found = [each(count, spacing=0.5, dtype="float64") for each in (ol.op.fftfreq, ol.op.rfftfreq)]
    values = ol.Executor().run(program, {}, found, scope=ol.Scope(), return_numpy=False)
    expected = [each(count, 0.5, dtype=torch.float64) for each in (torch.fft.fftfreq, torch.fft.rfftfreq)]
    torch.testing.assert_close(values, expected, rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64], ids=str)
def test_pythons_operators_take_the_bits_of_integers_and_the_truth_of_bools(dtype: torch.dtype):
    x, y = torch.tensor([1, 0, 7, 2]).to(dtype), torch.tensor([1, 1, 2, 0]).to(dtype)
    calls = [lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y, lambda x, y: ~x, lambda x, y: x & True]
    shifts = [lambda x, y: x << y, lambda x, y: x >> 1, lambda x, y: 2 << x]
    for call in calls if dtype is torch.bool else calls[:-1] + shifts:
        written = Written(Twin("bits", call, call), [x, y])
        assert torch.equal(written.run([written.y])[0], call(x, y))
