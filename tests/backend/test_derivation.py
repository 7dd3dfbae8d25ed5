"""Variants that are derived from kernels of anyone's, and those that must not be."""

import pytest
import torch
import torch as th

import oarlock as ol
from oarlock.backend.torch.variants import variants_of
from oarlock.registry import Catalogue, operator, standard
from oarlock.tensor.memory_format import copies

aten = torch.ops.aten

CATALOGUE = Catalogue()
FACTOR = 2.0


@operator("x: float[*b], y: float[*b] -> z: float[*b]", catalogue=CATALOGUE)
def scaled_sum(x, y):
    return torch.add(x, y, alpha=FACTOR)


@operator("x: float[n n] -> y: float[n n]", catalogue=CATALOGUE)
def symmetric(x):
    return torch.add(x, x.t())


@operator("x: float[*b] -> y: float[*b]", catalogue=CATALOGUE)
def twice_named(x):
    return torch.mul(x, x)


@operator("x: float[*b] -> y: float[*b]", catalogue=CATALOGUE)
def with_a_local_out(x):
    out = x + 1
    return torch.mul(out, x)


@operator("x: float[*b], y: float[*b] -> z: float[*b]", catalogue=CATALOGUE)
def into_memory_of_its_own(x, y):
    return aten.tanh_backward.grad_input(x, y, grad_input=torch.empty_like(y))


@operator("x: float[*b] -> y: float[*b]", catalogue=CATALOGUE)
def with_a_function_inside(x):
    def one_more(value):
        return torch.add(value, 1)

    return torch.mul(one_more(x), 3)


@operator("x: float[*b] -> y: float[*b]", catalogue=CATALOGUE)
def reassigned(x):
    x = x + 1
    return torch.exp(x)


@operator("x: float[*b], y?: float[*b] -> z: float[*b]", catalogue=CATALOGUE)
def chosen(x, y=None, *, negated: bool = False):
    """One of several."""
    if negated:
        return torch.neg(x)
    return torch.sqrt(x) if y is None else torch.mul(x, y)


@operator("x: float[*b] -> y: float[*b]", catalogue=CATALOGUE)
def computed(x):
    return x * 2 + 1


@operator("x: float[*b] -> y: bool[*b]", catalogue=CATALOGUE)
def is_large(x):
    return torch.gt(x, 1)


@operator("x: float[*b] -> y: float[*b]", catalogue=CATALOGUE)
def reassigned_later(x):
    if x.dim() == 9:
        return torch.exp(x)
    x = x + 1
    return torch.exp(x)


@operator("x: float[*b], y: float[*b] -> z: float[*b]", catalogue=CATALOGUE)
def by_another_name(x, y):
    return th.mul(x, y)


@operator(" -> y: float64[2]", catalogue=CATALOGUE)
def halves():
    return torch.full((2,), fill_value=0.5, dtype=torch.float64)


@operator("x: int64[], y: int64[] -> z: bool[]", catalogue=CATALOGUE)
def both_set(x, y):
    return torch.logical_and(x, y)


@operator("x: bool[*b], y: bool[*b] -> z: bool[*b]", catalogue=CATALOGUE)
def either(x, y):
    return torch.add(x, y)


@operator("x: float[...s] -> y: float[]", catalogue=CATALOGUE)
def total(x):
    return torch.sum(x)


X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
Y = torch.tensor([[5.0, 7.0], [11.0, 13.0]])

WRITES = [
    (scaled_sum, (X, Y), {}),
    (symmetric, (X,), {}),
    (twice_named, (X,), {}),
    (with_a_function_inside, (X,), {}),
    (reassigned, (X,), {}),
    (reassigned_later, (X,), {}),
    (by_another_name, (X, Y), {}),
    (chosen, (X,), {"negated": False}),
    (chosen, (X, Y), {"negated": False}),
    (chosen, (X, Y), {"negated": True}),
    (is_large, (X,), {}),
]


@pytest.mark.parametrize(("kernel", "given", "attributes"), WRITES, ids=lambda value: getattr(value, "type", ""))
def test_a_variant_that_writes_into_a_tensor_gives_what_the_kernel_gives(kernel, given, attributes):
    expected = kernel.kernel(*given, **attributes)
    out = torch.empty_like(expected)
    assert variants_of(kernel).out(*given, out=out, **attributes) is out
    assert torch.equal(out, expected)


@pytest.mark.parametrize("kernel", [with_a_local_out, computed, total, halves, into_memory_of_its_own], ids=lambda value: value.type)
def test_there_is_none_that_writes_where_a_name_is_taken_or_no_function_does(kernel):
    assert variants_of(kernel).out is None


@pytest.mark.parametrize(
    ("kernel", "slots"), [(scaled_sum, {("x",)}), (twice_named, {("x",)}), (chosen, {("x",)})], ids=lambda value: getattr(value, "type", "")
)
def test_a_variant_in_place_gives_what_the_kernel_gives(kernel, slots):
    found = variants_of(kernel).in_place
    assert found.keys() == slots
    for attributes in [{"negated": False}, {"negated": True}] if kernel is chosen else [{}]:
        given = (X, Y) if kernel is scaled_sum else (X,)
        x, *others = (tensor.clone() for tensor in given)
        result = found[("x",)](x, *others, **attributes)
        assert result is x
        assert torch.equal(result, kernel.kernel(*given, **attributes))


@pytest.mark.parametrize(
    "kernel",
    [symmetric, with_a_local_out, with_a_function_inside, reassigned, reassigned_later, computed, is_large, total, into_memory_of_its_own],
    ids=lambda value: value.type,
)
def test_there_is_none_in_place_where_what_is_read_may_be_gone(kernel):
    assert variants_of(kernel).in_place == {}


def test_a_variant_sees_what_its_kernel_sees(monkeypatch):
    out = torch.empty_like(X)
    monkeypatch.setitem(globals(), "FACTOR", 10.0)
    assert torch.equal(variants_of(scaled_sum).out(X, Y, out=out), scaled_sum.kernel(X, Y))
    assert torch.equal(out, X + 10 * Y)


def test_a_kernel_without_source_has_none():
    scope = {"torch": torch}
    exec("def relu_of(x):\n    return torch.tanh(x)\n", scope)
    made = operator("x: float[*b] -> y: float[*b]", catalogue=CATALOGUE)(scope["relu_of"])
    assert (variants_of(made).out, variants_of(made).in_place) == (None, {})


def test_pytorch_may_be_called_otherwise_in_the_module_of_a_kernel():
    (expression,) = variants_of(by_another_name).expressions[by_another_name.kernel]
    assert expression.text == "torch.mul(x, y)"


@pytest.mark.parametrize("kernel", [both_set, either], ids=lambda value: value.type)
def test_numbers_of_the_host_are_taken_only_where_python_gives_the_same(kernel):
    """Of integers Python's `and` goes bit by bit, and of bools its sum is a number."""
    assert variants_of(kernel).host is None


def test_a_plan_has_the_variants_of_ones_own_operators():
    catalogue = Catalogue()
    for known in standard:
        catalogue.add(known)
    for own in (by_another_name, reassigned_later, halves):
        catalogue.add(own)
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], dtype="float64")
        y = reassigned_later(by_another_name(ol.op.tanh(x), ol.op.sigmoid(x))) + halves()
    feed = {"x": [[0.5, -0.25], [1.0, 2.0]]}
    values = [
        ol.Executor(catalogue=catalogue, **options).run(program, feed, [y], scope=ol.Scope())[0] for options in ({}, {"interpret": True})
    ]
    assert values[0].tobytes() == values[1].tobytes()


def doubled(x, shift, out=None):
    return torch.add(x, x, alpha=shift, out=out)


def require_small(x):
    if (x > 100).any():
        raise ValueError("it is large")


@operator("x: float[*b] -> y: float[*b]", catalogue=CATALOGUE)
def by_ours(x):
    return doubled(x, 3)


@operator("x: float[...s], y: float[...s] -> next: float[...s], next_y: float[...s]", catalogue=CATALOGUE)
def swapped(x, y):
    require_small(x)
    x, y = copies([x, y])
    x.add_(y)
    y.mul_(2)
    return x, y


@operator("x: float[...s], y: float[...s] -> next: float[...s], next_y: float[...s]", catalogue=CATALOGUE)
def one_copied(x, y):
    (x,) = copies([x])
    return x.add_(y), y * 2


swapped.precondition(require_small, "x")


def test_a_function_of_ours_is_handed_where_to_write():
    out = torch.empty_like(X)
    assert variants_of(by_ours).out(X, out=out) is out
    assert torch.equal(out, by_ours.kernel(X))


def test_a_kernel_that_updates_copies_updates_what_it_is_given():
    expected = swapped.kernel(X, Y)
    x, y = X.clone(), Y.clone()
    found = variants_of(swapped).in_place
    assert found.keys() == {("x", "y")}
    results = found[("x", "y")](x, y)
    assert results[0] is x
    assert results[1] is y
    assert all(map(torch.equal, results, expected))
    assert variants_of(one_copied).in_place == {}


def test_what_a_plan_has_checked_is_not_checked_again():
    x = torch.full((2,), 1000.0)
    with pytest.raises(ValueError, match="large"):
        swapped.kernel(x, x)
    variants_of(swapped).in_place[("x", "y")](x, x.clone())
    assert x.tolist() == [2000.0, 2000.0]
