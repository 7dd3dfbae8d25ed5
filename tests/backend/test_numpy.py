"""NumPy computes what PyTorch does: at every case of every operator that it has, and in whole programs."""

import numpy
import pytest
import torch
from generated.making import make
from generated.running import differentiate, feed_of, scope_of
from op.arguments import by_slot, positional
from op.arranging import OPERATORS, uses_of

import oarlock as ol
from oarlock.backend.numpy.kernel_call import call, has_kernel
from oarlock.backend.numpy.kernels import KERNELS, kernel_of
from oarlock.registry import Catalogue, standard

NEAR = {torch.float64: (1e-10, 1e-12), torch.float32: (1e-4, 1e-5)}
COMPUTED = [operator for operator in OPERATORS if has_kernel(operator)]


def test_there_are_many():
    assert len(KERNELS) >= 80
    assert {type for catalogue, type in KERNELS if catalogue is standard} == {operator.type for operator in COMPUTED}


@pytest.mark.parametrize("operator", [pytest.param(operator, id=operator.type) for operator in COMPUTED])
def test_an_operator_gives_what_its_kernel_gives(operator):
    tried = 0
    for _, make_arguments in uses_of(operator):
        given = make_arguments()
        attributes = operator.convert_attributes(given.attributes)
        expected = by_slot(operator, operator.kernel(*positional(operator, given), **attributes))
        found = call(operator, given.tensors, attributes, None)
        for slot, tensors in expected.items():
            for actual, wanted in zip(found[slot], tensors, strict=True):
                assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape), slot
                assert torch.allclose(actual, wanted, *NEAR.get(wanted.dtype, (0, 0)), equal_nan=True), slot
        tried += 1
    assert tried


def run(program, feed, fetch, scope, **options):
    return ol.Executor(**options).eval(program, fetch, feed, scope=scope)


def test_generated_programs_compute_the_same():
    whole = 0
    for number in range(40):
        case = make(1, number)
        program, gradients = differentiate(case.program, case)
        names = [*(name for name, _ in case.targets), *(var.name for var in gradients if var is not None)]
        feed, scope = feed_of(program, case.arrays), scope_of(program, case.arrays)
        try:
            found = run(program, feed, names, scope, backend="numpy")
        except ol.ProgramError as error:
            if "NumPy has no kernel for" not in error.message:
                raise
            continue
        whole += 1
        for actual, expected in zip(found, run(program, feed, names, scope, interpret=True), strict=True):
            numpy.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    assert whole >= 20


def test_a_model_trains():
    losses = {}
    for backend in (None, "numpy"):
        with ol.Program(seed=3) as program:
            x, label = ol.layer.data("x", [5]), ol.layer.data("label", [], dtype="int64")
            h = ol.layer.layer_norm(ol.layer.fc(x, 8, act="tanh"))
            cost = ol.layer.mean(ol.layer.cross_entropy(ol.layer.fc(h, 3), label))
            ol.optimizer.Adam(0.05).minimize(cost)
        scope, random = ol.init(program, ol.Scope()), numpy.random.default_rng(0)
        step = ol.Executor(backend=backend).prepare(program, [cost], scope=scope)
        feeds = [{"x": random.normal(size=(6, 5)).astype("float32"), "label": random.integers(0, 3, size=6)} for _ in range(20)]
        losses[backend] = [float(step(feed)[0]) for feed in feeds]
    assert losses["numpy"] == pytest.approx(losses[None], rel=1e-3)
    assert losses["numpy"] != losses[None], "another backend rounds otherwise"


def test_what_it_does_not_compute_is_named():
    with ol.Program() as program:
        y = ol.op.max_pool2d(ol.layer.data("x", [1, 4, 4]), size=(2, 2), stride=(2, 2))
    scope = ol.init(program, ol.Scope())
    with pytest.raises(ol.ProgramError, match="^NumPy has no kernel for max_pool2d\n") as caught:
        ol.Executor(backend="numpy").run(program, {"x": numpy.zeros((1, 1, 4, 4), "float32")}, [y], scope=scope)
    hint = 'omit backend="numpy", or declare a kernel with @oarlock.backend.numpy.kernels.kernel_of(operator)'
    assert caught.value.hint == hint
    assert not has_kernel(ol.registry.standard.get("max_pool2d"))


def test_it_computes_at_the_processor(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ol.ArgumentError, match='^backend="numpy" needs ol.CPUPlace'):
        ol.Executor(ol.GPUPlace(0), backend="numpy")


def test_an_operator_of_ones_own_is_not_ours_by_its_name():
    @ol.operator("x: float[*b] -> y: float[*b]", catalogue=Catalogue())
    def relu(x):
        return x

    assert has_kernel(ol.op.relu)
    assert not has_kernel(relu)


def test_an_operator_of_ones_own_has_a_kernel_where_one_is_declared():
    catalogue = Catalogue()
    for kind in ("operators", "gradient_operators"):
        getattr(catalogue, kind).update(getattr(standard, kind))

    @ol.operator("x: float[n k], like: shape[m k], scale?: float[k] -> y: float[n k]", catalogue=catalogue)
    def stretched(x, like, scale=None, *, power: float = 2.0):
        y = x.pow(power) * like[0]
        return y if scale is None else y * scale

    @stretched.gradient("x")
    def stretched_dx(x, like_shape, dy, scale=None, *, power):
        raise AssertionError("this is not NumPy")

    with ol.Program() as program:
        x, like = (ol.layer.data(name, shape=[3], dtype="float64") for name in ("x", "like"))
        y = stretched(x, like, power=3.0)
        dx = stretched_dx(x, like, y, power=3.0)
    feed = {"x": numpy.arange(6.0).reshape(2, 3), "like": numpy.zeros((2, 3))}
    executor = ol.Executor(backend="numpy", catalogue=catalogue)
    with pytest.raises(ol.ProgramError, match="^NumPy has no kernel for stretched, stretched_dx\n"):
        executor.run(program, feed, [y, dx], scope=ol.Scope())

    @kernel_of(stretched)
    def stretched_by_numpy(x, like, scale=None, *, power):
        assert isinstance(x, numpy.ndarray)
        assert scale is None
        return x**power * like[0]

    with pytest.raises(ol.ProgramError, match="^NumPy has no kernel for stretched_dx\n"):
        executor.run(program, feed, [y, dx], scope=ol.Scope())

    @kernel_of(stretched_dx)
    def stretched_dx_by_numpy(x, like_shape, dy, scale=None, *, power):
        return power * x ** (power - 1) * like_shape[0] * dy

    found, slope = executor.run(program, feed, [y, dx], scope=ol.Scope())
    numpy.testing.assert_array_equal(found, 2 * feed["x"] ** 3)
    numpy.testing.assert_array_equal(slope, 6 * feed["x"] ** 2 * found)
