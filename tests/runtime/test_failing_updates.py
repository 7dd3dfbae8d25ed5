"""An update that fails changes nothing: what may fail comes before the first value is written over."""

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.backend.torch.variants import variants_of
from oarlock.op import update
from oarlock.registry import standard

FEED = {"x": numpy.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)}
OPTIMIZERS = {"sgd": ol.optimizer.SGD, "momentum": ol.optimizer.Momentum, "adam": ol.optimizer.Adam}
EXECUTORS = {
    "plan": {},
    "without passes": {"passes": ()},
    "grouped": {"passes": ("multi_tensor_updates",)},
    "products taken": {"passes": ("fuse_updates",)},
    "interpreter": {"interpret": True},
    "checked": {"check": True},
}
RATES = {"too large": 1e39, "infinite": numpy.inf, "no number": numpy.nan}


def network(optimizer):
    """Three layers, each parameter with a rate of its own, so that one update can fail and all others cannot."""
    with ol.Program(seed=3) as program:
        hidden = ol.layer.data("x", shape=[3])
        for number in range(3):
            hidden = ol.layer.fc(hidden, 3, act="tanh", name=f"f{number}")
        cost = program.targets["cost"] = ol.layer.mean(ol.op.square(hidden))
        for var in program.parameters():
            OPTIMIZERS[optimizer](0.1).minimize(cost, parameters=[var])
    return program


def bits(scope):
    return {name: scope.var(name).held.numpy().tobytes() for name in scope}


@pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "run"])
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_each_update_of_a_tail_that_fails_in_turn_changes_nothing(optimizer, executor, prepared):
    program = network(optimizer)
    scope = ol.init(program, ol.Scope())
    chosen = ol.Executor(**EXECUTORS[executor])
    step = (
        chosen.prepare(program, ["cost"], scope=scope)
        if prepared
        else lambda feed: chosen.run(program, feed, ["cost"], scope=scope, training=True)
    )
    rates = [name for name in scope if name.endswith(".learning_rate")]
    assert len(rates) == 6
    for number, name in enumerate(rates):
        step(FEED)
        scope[name] = numpy.array(list(RATES.values())[number % len(RATES)])
        before = bits(scope)
        with pytest.raises(ol.KernelError, match="no state was changed") as raised:
            step(FEED)
        assert "the learning rate" in raised.value.message
        assert bits(scope) == before
        scope[name] = numpy.array(0.1)
    before = bits(scope)
    step(FEED)
    after = bits(scope)
    assert all(after[name] != before[name] for name in before if name not in rates), "every update is made again"


def test_every_update_that_asks_for_a_rate_says_before_what_it_refuses():
    asking = {name: operator for name, operator in vars(update).items() if getattr(operator, "type", None) == name}
    with_rate = {name for name, operator in asking.items() if operator.signature.input("learning_rate") is not None}
    assert len(with_rate) == 7
    assert {name for name, operator in asking.items() if operator.preconditions} == with_rate


@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["sgd", "multi_tensor_sgd", "sgd_addmm"])
def test_a_form_in_place_refuses_nothing_that_the_precondition_takes(name, dtype, rate):
    """The largest rate that is taken raises nowhere; what is refused is refused by the kernel in the same words."""
    operator = standard.get(name)
    ((check, _),) = operator.preconditions.items()
    tensors = [torch.ones(2, 2, dtype=dtype) for _ in range(3)]
    given = {"sgd": tensors[:2], "multi_tensor_sgd": [tensors[:1], tensors[1:2]], "sgd_addmm": tensors}[name]
    largest = torch.tensor(torch.finfo(dtype).max, dtype=torch.float64)
    check(largest, dtype)
    next(iter(variants_of(operator).in_place.values()))(*given, largest)
    refused = torch.tensor(rate, dtype=torch.float64)
    if dtype is torch.float64 and rate == 1e39:
        check(refused, dtype)
        return
    with pytest.raises(ValueError, match="is not a finite") as said:
        check(refused, dtype)
    with pytest.raises(ValueError, match="is not a finite") as by_kernel:
        operator.kernel(*given, refused)
    assert str(said.value) == str(by_kernel.value)


def test_an_op_whose_attribute_no_result_holds_writes_over_nothing():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        for name in ("a", "b"):
            held = program.main.new_var(name, ol.DType.FLOAT32, (3, 3), persistable=True)
            program.main.commit(held, update.addmm_tn(held, x, x, scale=0.5 if name == "a" else 1e39))
    scope = ol.Scope()
    for name in ("a", "b"):
        scope[name] = numpy.ones((3, 3), "float32")
    before = bits(scope)
    for options in EXECUTORS.values():
        with pytest.raises(ol.KernelError):
            ol.Executor(**options).run(program, FEED, scope=scope, training=True)
        assert bits(scope) == before
