"""The values that several workers fetch: of rows each its own, of a sum the sum over all workers, or an error that says why not."""

import numpy
import pytest
from thread_workers import ThreadWorkers, run_together

import oarlock as ol
from oarlock.passes import data_parallel, shard_optimizer

X = numpy.random.default_rng(0).normal(size=(4, 2))
CUTS = [0, 0, 3, 4]


def sums() -> tuple[ol.Program, dict[str, ol.Var]]:
    """A cost that is a sum, and other sums: one that only another sum reads."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", [2], dtype="float64")
        w = ol.layer.create_parameter([2], dtype="float64", name="w")
        rows = ol.op.tanh(x * w)
        part = ol.op.reduce_sum(rows, axis=0, name="part")
        total = ol.op.add(part, ol.op.reduce_sum(x, axis=0), name="total")
        cost = ol.op.reduce_sum(rows, name="cost")
        ol.optimizer.SGD(0.1).minimize(cost)
    return program, {"rows": rows, "part": part, "total": total, "cost": cost, "count": count_of(program, x)}


def count_of(program: ol.Program, x: ol.Var) -> ol.Var:
    with program:
        return ol.op.numel(x)


def alone(name: str) -> numpy.ndarray:
    program, found = sums()
    return ol.Executor().run(program, {"x": X}, [found.get(name, name)], scope=ol.init(program, ol.Scope()))[0]  # type: ignore[return-value]


def together(fetch: object, program: ol.Program, *, interpret: bool = False) -> list[numpy.ndarray]:
    def work(workers: ThreadWorkers) -> numpy.ndarray:
        feed = {"x": X[CUTS[workers.index] : CUTS[workers.index + 1]]}
        executor = ol.Executor(workers=workers, interpret=interpret)
        return executor.run(program, feed, [fetch], scope=ol.init(program, ol.Scope()))[0]  # type: ignore[list-item]

    return run_together(3, work)


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("name", ["cost", "total", "count", "w@GRAD"])
def test_a_sum_is_that_of_all_workers(name, by_name, interpret):
    program, found = sums()
    fetched = name if name == "w@GRAD" else found[name].name if by_name else found[name]
    data_parallel(program)
    for value in together(fetched, program, interpret=interpret):
        numpy.testing.assert_allclose(value, alone(name), rtol=1e-12)


def test_rows_are_those_of_each_worker():
    program, found = sums()
    data_parallel(program)
    numpy.testing.assert_allclose(numpy.concatenate(together(found["rows"], program)), alone("rows"), rtol=1e-12)


def test_a_target_is_whole_though_only_another_sum_reads_it():
    program, found = sums()
    program.targets = {"mine": found["part"]}
    data_parallel(program)
    for fetched in ("mine", "part", found["part"]):
        for value in together(fetched, program):
            numpy.testing.assert_allclose(value, alone("part"), rtol=1e-12)


def test_the_part_of_a_worker_has_a_name_of_its_own():
    program, _ = sums()
    data_parallel(program)
    numpy.testing.assert_allclose(sum(together("part.part", program)), alone("part"), rtol=1e-12)


@pytest.mark.parametrize("by_name", [False, True])
def test_a_sum_that_is_not_exchanged_is_refused(by_name):
    program, found = sums()
    fetched = "part" if by_name else found["part"]
    data_parallel(program)
    scope = ol.init(program, ol.Scope())
    for run in (
        lambda: ol.Executor().run(program, {"x": X}, [fetched], scope=scope),
        lambda: ol.Executor().prepare(program, fetch=[fetched], scope=scope),
    ):
        with pytest.raises(ol.errors.UndefinedVarError) as raised:
            run()
        assert raised.value.message == '"part" is a sum over the rows of all workers, and each worker has only a part of it'
        assert raised.value.hint == 'make "part" a target before data_parallel, or fetch the part of this worker, "part.part"'


def test_a_prepared_step_fetches_the_sum_of_all_workers():
    program, found = sums()
    data_parallel(program)

    def work(workers: ThreadWorkers) -> float:
        step = ol.Executor(workers=workers).prepare(program, fetch=[found["cost"]], scope=ol.init(program, ol.Scope()))
        return float(step({"x": X[CUTS[workers.index] : CUTS[workers.index + 1]]})[0])

    numpy.testing.assert_allclose(run_together(3, work), [alone("cost")] * 3, rtol=1e-12)


def test_gradients_and_costs_are_whole_after_the_optimizer_is_shared():
    program, found = sums()
    data_parallel(program)
    shard_optimizer(program, workers=3)
    for fetched, name in (("w@GRAD", "w@GRAD"), (found["cost"], "cost")):
        for value in together(fetched, program):
            numpy.testing.assert_allclose(value, alone(name), rtol=1e-12)


def test_a_sum_that_a_loop_makes_is_that_of_all_workers():
    def build() -> tuple[ol.Program, ol.Var]:
        with ol.Program(seed=1) as program:
            x = ol.layer.data("x", [2], dtype="float64")
            columns, rnn = ol.op.transpose(x, (1, 0)), ol.rnn()
            with rnn.step():
                rnn.output(ol.op.reduce_sum(rnn.step_input(columns)))
            return program, rnn()  # type: ignore[return-value]

    program, sums = build()
    (expected,) = ol.Executor().run(program, {"x": X}, [sums], scope=ol.Scope())
    program, sums = build()
    data_parallel(program)
    for value in together(sums, program):
        numpy.testing.assert_allclose(value, expected, rtol=1e-12)
