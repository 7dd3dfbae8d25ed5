"""The number of rows that workers have is exchanged once, and known where it is asked for; or nobody has rows of his own."""

from collections.abc import Callable

import pytest
from worker_models import batches_of, of_classes
from worker_steps import require_equal

import oarlock as ol
from oarlock.ir.traversal import walk
from oarlock.passes import data_parallel


def classifier(write: Callable[[ol.Var], ol.Var]) -> ol.Program:
    """A choice among three classes by what `write` makes of rows of 4 numbers, float64[n, 4]."""
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        cost = ol.layer.cross_entropy(ol.layer.fc(write(ol.layer.fc(x, 4)), 3), y)
        ol.optimizer.SGD(0.1).minimize(cost)
        program.targets = {"loss": cost}
    return program


def is_positive(x: ol.Var) -> ol.Var:
    return ol.op.reduce_sum(x, axis=1) > 0.0


def divided(x: ol.Var, condition: ol.Var, write: Callable[[ol.Var], ol.Var]) -> ol.Var:
    """The rows for which the condition holds go through `write`."""
    networks = ol.ifelse()
    with networks.true_block():
        networks.output(write(x))
    with networks.false_block():
        networks.output(x)
    return networks(condition)


def where_small(x: ol.Var, write: Callable[[ol.Var], ol.Var]) -> ol.Var:
    """`write` in a branch, which always runs."""
    return ol.cond(ol.layer.mean(x) < 100.0, lambda: write(x), lambda: x)


def divided_by_what_is_computed_whole(x: ol.Var) -> ol.Var:
    """The gradient is the first to have rows of a worker of those that were divided."""
    condition = ol.op.flatten(ol.op.reshape(is_positive(x), shape=["n", 1]), start=0)
    return divided(x, condition, lambda rows: ol.layer.fc(rows, 4))


def sums_so_far(x: ol.Var) -> ol.Var:
    """Of this no rule knows that it has to do with rows, so it is computed whole."""
    return ol.op.cumsum(x, axis=0)


def whole_in_a_branch(x: ol.Var) -> ol.Var:
    """The gradient block is given what is whole."""
    return where_small(x, lambda x: divided(x, is_positive(x), lambda rows: ol.op.tanh(sums_so_far(rows))))


def whole_again_in_a_gradient_block(x: ol.Var) -> ol.Var:
    """The gradient block is given nothing that is whole, and gathers."""
    return where_small(x, lambda x: divided(x, is_positive(x), sums_so_far))


def twice_the_rows_in_a_gradient_block(x: ol.Var) -> ol.Var:
    """The gradient block has twice the rows, and nothing that has as many."""

    def write(x: ol.Var) -> ol.Var:
        few = ol.op.gather(x, ol.op.nonzero(is_positive(x)))
        return x + ol.layer.mean(ol.op.tanh(sums_so_far(ol.layer.concat([few, ol.op.square(few)], axis=0))), axis=0)

    return where_small(x, write)


def divided_twice(x: ol.Var) -> ol.Var:
    return divided(x, is_positive(x), lambda rows: divided(rows, ol.op.reduce_sum(rows, axis=1) > 1.0, sums_so_far))


def twice_the_rows(x: ol.Var) -> ol.Var:
    return x + ol.layer.mean(sums_so_far(ol.layer.concat([x, ol.op.square(x)], axis=0)), axis=0)


def pairs_in_two_parts(x: ol.Var) -> ol.Var:
    """An axis of 4 * n elements: two parts of n rows of two elements."""
    parts = ol.op.reshape(ol.op.transpose(ol.op.reshape(x, ("n", 2, 2)), (1, 0, 2)), ("4*n",))
    whole = ol.op.reshape(sums_so_far(ol.op.tanh(parts)), (2, "n", 2))
    return ol.op.reshape(ol.op.transpose(whole, (1, 0, 2)), ("n", 4))


def the_last_size_is_found(x: ol.Var) -> ol.Var:
    """A worker without rows has no elements to find it by."""
    return ol.op.reshape(ol.op.reshape(x, ("n", 2, -1)), ("n", -1))


@pytest.mark.parametrize(
    "write",
    [
        pairs_in_two_parts,
        the_last_size_is_found,
        divided_by_what_is_computed_whole,
        whole_in_a_branch,
        whole_again_in_a_gradient_block,
        twice_the_rows_in_a_gradient_block,
        divided_twice,
        twice_the_rows,
    ],
)
def test_rows_that_only_some_blocks_know(write):
    require_equal(lambda: classifier(write), batches_of(of_classes, [[3, 3], [4, 1], [0, 5], [2, 0]]))


def counts_exchanged(write: Callable[[ol.Var], ol.Var]) -> list[str]:
    program = classifier(write)
    data_parallel(program)
    return [op.writes[0].name for op in walk(program.main) if op.type == "all_gather" and op.reads[0].shape == (1,)]


def test_twice_the_rows_are_counted_as_twice_what_was_exchanged():
    assert counts_exchanged(twice_the_rows) == ["x.counts"]
