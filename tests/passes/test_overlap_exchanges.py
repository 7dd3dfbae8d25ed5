"""Exchanges under way while workers compute."""

import numpy
import pytest
from rewritten import rewritten
from thread_workers import run_together

import oarlock as ol
from oarlock.registry import standard
from oarlock.registry.collective import exchanged, is_collective
from oarlock.registry.type_check import require_legal


def network(width: int) -> ol.Program:
    """A step of two layers of `width`, for several workers: with 600, the gradients of the second one are a bucket."""
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8]), ol.layer.data("y", [1])
        hidden = ol.layer.fc(ol.layer.fc(x, width, act="tanh", name="low"), width, act="tanh", name="high")
        cost = ol.layer.mean(ol.op.square(ol.layer.fc(hidden, 1, name="out") - y))
        ol.optimizer.SGD(0.1).minimize(cost)
        program.targets = {"loss": cost}
    ol.passes.data_parallel(program)
    return program


def lines_of(program: ol.Program) -> list[str]:
    """The ops after the pass; `rewritten` holds them to be legal."""
    return rewritten(program, [*program.targets.values(), *exchanged(program.main.ops, standard)], "overlap_exchanges")[0]


def position(lines: list[str], *words: str) -> int:
    return next(number for number, line in enumerate(lines) if all(word in line for word in words))


def test_an_exchange_begins_when_its_tensors_are_there_and_ends_where_the_sum_is_read():
    lines = lines_of(network(600))
    rows, loss, bucket, *_ = [line for line in lines if "all_reduce_start(" in line]
    assert "xs=size_" in rows
    assert position(lines, rows) < position(lines, "low.out", "= linear("), "before anything is computed"
    assert "x.total" in lines[position(lines, "x.total:", "= all_reduce_done(") + 1], "where somebody reads it"
    assert position(lines, loss) < position(lines, "out.w@GRAD"), "before the gradients"
    assert all(name in bucket for name in ("out.w@GRAD", "out.b@GRAD", "high.w@GRAD"))
    assert position(lines, bucket) + 1 == position(lines, "tanh_0@GRAD", "linear_dx(w=high.w"), (
        "what the layer below needs is computed meanwhile"
    )
    done = position(lines, "high.w@GRAD:", "all_reduce_done(")
    assert position(lines, bucket) < position(lines, "low.w@GRAD.part", "linear_dw(") < done < position(lines, "high.w@NEXT:", "= sgd(")


def test_exchanges_begin_in_the_order_that_they_had():
    program = network(600)
    before = [op.writes[0].name for op in program.main.ops if is_collective(op, standard)]
    lines = [line for line in lines_of(program) if "= all_reduce_start(" in line or "= all_reduce(" in line]
    assert len(lines) == len(before)
    for name, line in zip(before, lines, strict=True):
        assert line.startswith((f"{name}@EXCHANGE", f"{name}:", f"[{name}:", f"{name.partition('@')[0]}@EXCHANGE")), (name, line)


def test_what_is_read_at_once_is_waited_for_at_once():
    with ol.Program() as program:
        (summed,) = ol.op.all_reduce([ol.op.tanh(ol.layer.data("x", [], batch=None))])
        program.targets = {"y": ol.op.exp(summed)}
    lines, applied = rewritten(program, list(program.targets.values()), "overlap_exchanges")
    assert applied == {"overlap_exchanges": 0}
    assert sum("all_reduce(" in line for line in lines) == 1


def test_workers_have_the_same_bits_as_without_it():
    random = numpy.random.default_rng(0)
    feeds = [{"x": random.random((rows, 8), "float32"), "y": random.random((rows, 1), "float32")} for rows in (5, 3)]

    def work(workers, passes: tuple[str, ...]) -> list[bytes]:
        program, scope = network(600), ol.Scope()
        ol.init(program, scope)
        executor = ol.Executor(passes=passes, workers=workers)
        losses = [executor.run(program, feeds[workers.index], ["loss"], scope=scope)[0].tobytes() for _ in range(2)]
        return losses + [scope[var.name].numpy().tobytes() for var in program.persistables()]

    overlapped, plain = (run_together(2, lambda workers, passes=passes: work(workers, passes)) for passes in (("overlap_exchanges",), ()))
    assert overlapped[0] == overlapped[1] == plain[0]


def started() -> ol.Var:
    return ol.op.all_reduce_start([ol.op.full(shape=[2], value=1.0)])


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda: ol.op.exp(started()), "is read by exp"),
        (started, "is a target"),
        (
            lambda: ol.cond(ol.op.full(shape=[], value=1.0, dtype="bool"), started, lambda: ol.op.full(shape=[2], value=0.0)),
            "is an output of",
        ),
    ],
    ids=["an op", "a target", "a block"],
)
def test_what_reads_an_exchange_that_is_under_way_is_refused(build, why):
    with ol.Program() as program:
        program.targets = {"y": build()}
    with pytest.raises(
        ol.VerifyError, match=rf'"all_reduce_start_0[^"]*" .*{why}.* while workers still write it: use the result of all_reduce_done'
    ):
        require_legal(program, standard)
