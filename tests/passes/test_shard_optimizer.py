"""Workers that each keep a share of the optimizer's state compute what one worker does that keeps all of it."""

from collections.abc import Callable, Sequence

import numpy
import pytest
import torch
from thread_workers import run_together
from worker_models import batches_of, branches, digits, gpt, of_classes, of_text
from worker_steps import require_same, steps_alone, steps_together, with_whole_state

import oarlock as ol
from oarlock.ir.operation import Role
from oarlock.ir.traversal import walk
from oarlock.op.shares import gather_shares, put_share, reduce_to_shares, take_share
from oarlock.passes import data_parallel, mixed_precision, shard_optimizer

TWO = [[3, 3], [4, 1], [0, 5], [2, 0]]
THREE = [[2, 3, 1], [0, 0, 4], [1, 1, 1], [2, 2, 2]]
FOUR = [[2, 1, 3, 1], [1, 0, 0, 2], [1, 1, 1, 1], [0, 0, 1, 1]]


def require_equal(build: Callable[[], ol.Program], make: Callable, sizes: Sequence[Sequence[int]], *, within: float = 1e-12) -> set[str]:
    """The names of what is kept in shares, after all workers were found to have computed what one does."""
    batches, kept = batches_of(make, sizes), dict[str, tuple]()

    def rewrite(program: ol.Program) -> None:
        data_parallel(program)
        kept.update(shard_optimizer(program, workers=len(batches[0])))

    for interpret in (True, False):
        together = steps_together(build, batches, interpret=interpret, rewrite=rewrite)
        require_same(steps_alone(build, batches, interpret=interpret), with_whole_state(together, kept), within)
    return set(kept)


@pytest.mark.parametrize(
    ("build", "make", "sizes"),
    [
        pytest.param(build, make, sizes, id=f"{name}-{count}", marks=[pytest.mark.slow] if name == "gpt" and count != "three" else [])
        for name, build, make in (("digits", digits, of_classes), ("branches", branches, of_classes), ("gpt", gpt, of_text))
        for count, sizes in (("two", TWO), ("three", THREE), ("four", FOUR))
    ],
)
def test_shares_are_updated_as_the_whole_is(build, make, sizes):
    program = build()
    states = {var.name for var in program.persistables() if var.name.partition("@")[2].startswith(("MOMENT", "VELOCITY"))}
    assert require_equal(build, make, sizes) == states


def a_layer(optimizer: Callable[[], ol.optimizer.Optimizer], *, bias: bool = True) -> Callable[[], ol.Program]:
    def build() -> ol.Program:
        with ol.Program(seed=0) as program:
            x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
            cost = ol.layer.cross_entropy(ol.layer.fc(ol.op.tanh(ol.layer.fc(x, 5, bias=bias)), 3, bias=bias), y)
            optimizer().minimize(cost)
            program.targets = {"loss": cost}
        return program

    return build


OPTIMIZERS = [
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Lamb",
    "Lars",
    "Lion",
    "Momentum",
    "NAdam",
    "RAdam",
    "RMSProp",
    "Rprop",
]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_that_updates_element_by_element(name):
    kept = require_equal(a_layer(lambda: getattr(ol.optimizer, name)(0.05)), of_classes, TWO)
    assert {name.partition("@")[0] for name in kept} == {"fc_0.w", "fc_0.b", "fc_1.w", "fc_1.b"}


def test_penalties_decay_clipping_and_averages():
    def optimizer() -> ol.optimizer.Optimizer:
        average = ol.optimizer.ExponentialAverage(0.9)
        clip = ol.optimizer.ClipByNorm(0.05)
        return ol.optimizer.Adam(0.05, weight_decay=0.1, decoupled_weight_decay=True, l1=0.01, clip=clip, average=average, amsgrad=True)

    kept = require_equal(a_layer(optimizer), of_classes, FOUR)
    assert len(kept) == 4 * 4


def test_gradients_are_accumulated_in_shares_too():
    clip = ol.optimizer.ClipByGlobalNorm(0.1)
    kept = require_equal(a_layer(lambda: ol.optimizer.Momentum(0.1, 0.9, accumulate=3, clip=clip)), of_classes, [[2, 1]] * 7)
    assert {name.partition("@")[2] for name in kept} == {"ACCUMULATED", "VELOCITY"}


def test_what_needs_a_whole_matrix_is_given_it():
    kept = require_equal(a_layer(lambda: ol.optimizer.Muon(0.05), bias=False), of_classes, THREE)
    assert kept == {"fc_0.w@VELOCITY", "fc_1.w@VELOCITY"}


def test_state_that_is_not_the_optimizers_or_read_whole_stays_whole():
    assert require_equal(a_layer(lambda: ol.optimizer.LBFGS()), of_classes, [[3, 3]], within=1e-9) == set()
    assert require_equal(a_layer(lambda: ol.optimizer.SGD(0.1)), of_classes, TWO) == set()


def test_a_program_in_mixed_precision():
    """Sums of half precision come in another order, so the workers differ from one by what that rounds."""

    def build() -> ol.Program:
        with ol.Program(seed=0) as program:
            x, y = ol.layer.data("x", [8]), ol.layer.data("y", [], dtype="int64")
            cost = ol.layer.cross_entropy(ol.layer.fc(ol.op.tanh(ol.layer.fc(x, 5)), 3), y)
            mixed_precision(program)
            ol.optimizer.Momentum(0.05, 0.9).minimize(cost)
            program.targets = {"loss": cost}
        return program

    def make(random: numpy.random.Generator, rows: int) -> dict:
        given = of_classes(random, rows)
        return {"x": given["x"].astype("float32"), "y": given["y"]}

    assert len(require_equal(build, make, [[2, 1, 2], [1, 2, 2]], within=2e-2)) == 4


def test_elements_that_fill_up_a_share_are_no_elements():
    """1 / (0 + 0) is where nothing is; the norm of what is there does not see it."""

    def divided(pairs: Sequence) -> list:
        found = []
        for parameter, gradient in pairs:
            signs = ol.op.divide(gradient, ol.op.sqrt(ol.op.square(gradient)))
            found.append((parameter, ol.op.multiply(signs, ol.op.reduce_sum(ol.op.square(signs)))))
        return found

    build = a_layer(lambda: ol.optimizer.Momentum(1e-3, 0.9, clip=divided))
    require_equal(build, of_classes, [[3, 1, 2, 2], [1, 2, 1, 1]])


def test_a_worker_keeps_its_part_of_the_memory():
    program = gpt()
    parameters = {var.name: numpy.prod(var.shape, dtype=int) for var in program.persistables() if var.parameter}
    data_parallel(program)
    shard_optimizer(program, workers=4)
    kept = {var.name: var.shape[0] for var in program.persistables() if var.name.endswith("@VELOCITY")}
    assert kept == {f"{name}@VELOCITY": -(-size // 4) for name, size in parameters.items()}


def test_as_many_bytes_are_exchanged_as_before():
    """A sum over workers is a sum to shares and a gathering of shares, each of half of its bytes."""
    build = a_layer(lambda: ol.optimizer.Adam(0.1, clip=ol.optimizer.ClipByGlobalNorm(1.0)))

    def exchanged(workers) -> list[tuple[str, tuple[int, ...]]]:
        program, scope = build(), ol.Scope()
        data_parallel(program)
        shard_optimizer(program, workers=2)
        ol.init(program, scope)
        ol.Executor(workers=workers).run(program, of_classes(numpy.random.default_rng(0), 2), [], scope=scope)
        return workers.log

    elements = sum(-(-numpy.prod(var.shape, dtype=int) // 2) for var in build().persistables() if var.parameter)
    log, other = run_together(2, exchanged)
    assert log == other
    rows, loss, norm = [("all_reduce", (0,))] * 3
    assert sorted(log[1:]) == sorted([("reduce_scatter", (2, elements)), norm, loss, ("all_gather", (1, elements))])
    assert log[0] == rows


def test_who_asks_for_a_gradient_is_given_it_whole():
    def build() -> ol.Program:
        program = a_layer(lambda: ol.optimizer.Momentum(0.1, 0.9))()
        program.targets["gradient"] = program.main.var("fc_0.w@GRAD")
        return program

    assert require_equal(build, of_classes, THREE)


def refusal(program: ol.Program, **settings: object) -> str:
    with pytest.raises(ol.errors.OarlockError) as raised:
        shard_optimizer(program, **{"workers": 2, **settings})
    return f"{type(raised.value).__name__}: {raised.value.message}"


def test_refusals():
    program = digits()
    assert (
        refusal(program) == "ProgramError: the workers of this program exchange nothing yet, so each would update by a gradient of its own"
    )
    data_parallel(program)
    assert refusal(program, workers=0) == "ArgumentError: workers must be an integer >= 1, not 0"
    assert refusal(program, bucket_megabytes=0) == "ArgumentError: bucket_megabytes is a number above 0, not 0"
    assert refusal("digits") == "ArgumentError: shard_optimizer takes a program, not 'digits'"
    shard_optimizer(program, workers=2)
    assert refusal(program) == "ProgramError: the workers of this program keep shares already"


def test_another_number_of_workers_than_the_program_is_for():
    program, scope = digits(), ol.Scope()
    data_parallel(program)
    shard_optimizer(program, workers=2)
    ol.init(program, scope)
    before = {var.name: scope[var.name].clone() for var in program.persistables()}
    with pytest.raises(ol.errors.OarlockError, match="the program is for 2 workers, but this run has 1"):
        ol.Executor().run(program, of_classes(numpy.random.default_rng(0), 3), ["loss"], scope=scope)
    assert all(torch.equal(scope[name], value) for name, value in before.items())


def test_what_updates_is_still_an_update():
    program = digits()
    data_parallel(program)
    shard_optimizer(program, workers=2)
    assert {op.role for op in walk(program.main) if op.type in ("take_share", "gather_shares")} == {Role.UPDATE}
    assert {op.role for op in walk(program.main) if op.type == "reduce_to_shares"} == {Role.BACKWARD}
    assert ol.Program.from_bytes(program.to_bytes()).to_bytes() == program.to_bytes()


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_operators_of_shares(count):
    """Each as a program of one call, beside what NumPy makes of all workers' tensors."""
    random = numpy.random.default_rng(count)
    given = random.normal(size=(count, 5, 2))
    size = -(-10 // count)
    padded = numpy.concatenate([given.reshape(count, 10), numpy.zeros((count, count * size - 10))], 1).reshape(count, count, size)

    def work(workers) -> list[numpy.ndarray]:
        with ol.Program() as program:
            x = ol.layer.data("x", [5, 2], dtype="float64", batch=None)
            share = take_share(x, workers=count)
            (summed,) = reduce_to_shares([x], workers=count)
            (whole,) = gather_shares([share], [x], workers=count)
            put = put_share(share, x, workers=count)
            x.stop_gradient = False
            weights = ol.op.full_like(summed, value=2.0, dtype="float64")
            (dx,) = ol.gradients([ol.op.reduce_sum(ol.op.multiply(summed, weights))], [x])
        return ol.Executor(workers=workers).run(program, {"x": given[workers.index]}, [share, summed, whole, put, dx], scope=ol.Scope())

    for index, (share, summed, whole, put, dx) in enumerate(run_together(count, work)):
        numpy.testing.assert_array_equal(share, padded[index, index])
        numpy.testing.assert_allclose(summed, padded.sum(0)[index], rtol=1e-15)
        numpy.testing.assert_array_equal(whole.reshape(-1), numpy.concatenate([padded[i, i] for i in range(count)])[:10])
        assert put.sum() == pytest.approx(share.sum())
        numpy.testing.assert_array_equal(dx, numpy.full((5, 2), 2.0))


def test_every_worker_writes_the_same_program():
    """Processes hash variables by where these lie, so an order of a set is not that of another worker."""

    programs = [digits() for _ in range(4)]  # all at once, so that each has its places in memory
    for program in programs:
        data_parallel(program)
    first, *others = [(list(shard_optimizer(program, workers=2)), str(program)) for program in programs]
    assert all(other == first for other in others)
