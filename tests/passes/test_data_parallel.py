"""Workers that run a program together compute what one worker does of all rows."""

from random import Random

import pytest
import torch
from generated.making import make
from generated.workers import check_workers
from thread_workers import run_together
from worker_models import batches_of, branches, digits, gpt, looping, of_classes, of_sentences, of_text, ragged
from worker_steps import require_equal

import oarlock as ol
from oarlock.passes import data_parallel

SIZES = ([3, 3], [4, 1], [0, 5], [2, 0])


@pytest.mark.parametrize("sizes", [SIZES, [[2, 3, 1], [0, 0, 4], [1, 1, 1]]], ids=["two", "three"])
def test_batch_norm_and_dropout(sizes):
    require_equal(digits, batches_of(of_classes, sizes))


def test_rows_that_take_two_ways_some_of_them_on_one_worker_alone():
    require_equal(branches, batches_of(of_classes, SIZES))


def test_a_recurrent_network_over_sentences_of_any_lengths():
    require_equal(ragged, batches_of(of_sentences, SIZES))


def test_a_loop_as_long_as_a_mean_of_all_rows_says():
    require_equal(looping, batches_of(of_classes, [[3, 3], [4, 1], [2, 3]]))


def test_a_character_gpt():
    require_equal(gpt, batches_of(of_text, SIZES))


def test_only_gradients_and_means_of_rows_are_exchanged():
    for build in (gpt, branches, ragged):
        program = build()
        data_parallel(program)
        gathered = [op for block in program.blocks for op in block.ops if op.type == "all_gather" and op.inputs["x"][0].shape != (1,)]
        assert not gathered, (build.__name__, [str(op) for op in gathered])


@pytest.mark.parametrize("number", range(12))
def test_programs_that_nobody_wrote(number):
    check_workers(make(20, number), Random(number))


def refusal(program: ol.Program) -> str:
    with pytest.raises(ol.ProgramError) as raised:
        data_parallel(program)
    return raised.value.message


def test_a_program_is_parted_once():
    program = digits()
    data_parallel(program)
    assert refusal(program) == "the workers of this program exchange tensors already"


def test_a_program_without_rows_is_refused():
    with ol.Program() as program:
        ol.layer.create_parameter([2], name="w")
    assert refusal(program) == "no input of this program leads with rows, so workers have none of their own"


def test_all_workers_exchange_the_same_whatever_each_fetches():
    batches = batches_of(of_classes, [[3, 3], [2, 4]])

    def work(workers) -> list[tuple]:
        program, scope = digits(), ol.Scope()
        data_parallel(program)
        ol.init(program, scope)
        fetch = [["loss", "accuracy"], []][workers.index]
        for feeds in batches:
            ol.Executor(workers=workers).run(program, feeds[workers.index], fetch, scope=scope)
            ol.Executor(workers=workers).eval(program, fetch[:1], feeds[workers.index], scope=scope)
        return [what for what, _ in workers.log]

    first, second = run_together(2, work)
    assert first == second
    assert len(first) > 4


def of_columns(write):
    """A model of which a layer has the rows of a batch inside another axis: 3 parts of n elements each."""

    def build() -> ol.Program:
        with ol.Program(seed=0) as program:
            x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
            columns = ol.op.reshape(ol.op.transpose(ol.layer.fc(x, 3), (1, 0)), ("3*n",))
            back = ol.op.transpose(ol.op.reshape(write(columns), (3, "n")), (1, 0))
            cost = ol.layer.cross_entropy(back, y)
            ol.optimizer.Momentum(0.1, 0.9).minimize(cost)
            program.targets = {"loss": cost}
        return program

    return build


def matrix() -> ol.Var:
    return ol.layer.create_parameter([1, 1], dtype="float64")


def gathered(program: ol.Program) -> list[str]:
    """The values of rows that workers exchange, not only their numbers."""
    return [str(op) for block in program.blocks for op in block.ops if op.type == "all_gather" and op.inputs["x"][0].shape != (1,)]


@pytest.mark.parametrize(
    ("write", "exchanges"),
    [
        (ol.op.tanh, False),
        (lambda x: ol.op.reshape(ol.op.linear(ol.op.reshape(x, ("3*n", 1)), matrix()), ("3*n",)), False),
        (lambda x: ol.op.reshape(ol.op.matmul(ol.op.reshape(x, ("3*n", 1)), matrix()), ("3*n",)), True),
        (lambda x: ol.op.cumsum(x, axis=0), True),
        (lambda x: x * ol.op.cumsum(x, axis=0), True),
        (lambda x: x - ol.layer.mean(ol.op.square(x)), False),
        (lambda x: ol.op.dropout(x, 0.5), True),
    ],
    ids=["alone", "a layer", "a product that no rule covers", "whole", "whole and alone", "a mean", "random"],
)
def test_rows_inside_another_axis(write, exchanges):
    build = of_columns(write)
    require_equal(build, batches_of(of_classes, SIZES))
    program = build()
    data_parallel(program)
    assert bool(gathered(program)) == exchanges


class Attending(torch.nn.Module):
    """PyTorch's own layers: they put words before rows, take three slices of one product, and pool images."""

    def __init__(self):
        super().__init__()
        block = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.blocks = torch.nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.filter = torch.nn.Conv2d(1, 3, 3, padding=1)

    def forward(self, x):
        images = self.filter(self.blocks(x.reshape(-1, 1, 8).expand(-1, 4, 8).contiguous()).unsqueeze(1))
        return torch.nn.functional.adaptive_avg_pool2d(images, 1).flatten(1)


def test_an_imported_transformer_exchanges_gradients_in_one_op():
    torch.manual_seed(0)
    module = Attending().double()

    layer = ol.from_torch(module, torch.zeros(2, 8, dtype=torch.float64), dynamic="n")

    def build() -> ol.Program:
        with ol.Program(seed=0) as program:
            x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
            cost = ol.layer.cross_entropy(layer(x), y)
            ol.optimizer.Momentum(0.1, 0.9).minimize(cost)
            program.targets = {"loss": cost}
        return program

    require_equal(build, batches_of(of_classes, SIZES))
    program = build()
    assert data_parallel(program) == 3  # the number of rows that count, the cost, and all gradients
    assert gathered(program) == []


def test_a_cost_is_whole_for_who_fetches_it_though_it_is_no_target():
    (feeds,) = batches_of(of_classes, [[3, 2]])

    def work(workers) -> float:
        program, scope = digits(), ol.Scope()
        cost, program.targets = program.targets["loss"], {}
        data_parallel(program)
        ol.init(program, scope)
        (value,) = ol.Executor(workers=workers).run(
            program, feeds[workers.index], [program.main.var(cost.name.removesuffix(".part"))], scope=scope
        )
        return float(value)

    first, second = run_together(2, work)
    assert first == second


def test_numbers_of_no_row_stay_when_they_are_gathered():
    """The largest of an empty sequence is at -1; the gradient is not asked for, so the numbers are read by what no rule covers."""

    def build() -> ol.Program:
        with ol.Program(seed=0) as program:
            x = ol.layer.data("x", [], dtype="float64", ragged=1)
            (at,) = ol.op.sequence_max(x, x.block.splits_of(x.shape[0])).op.outputs["at"]
            program.targets = {"at": ol.op.cumsum(at, axis=0)}
        return program

    batches = [[{"x": [[1.0, 3.0], []]}, {"x": [[], [2.0], []]}]]
    require_equal(build, batches)


def test_draws_of_a_batch_that_begins_later_are_those_of_one_process():
    def build() -> ol.Program:
        with ol.Program(seed=0) as program:
            x = ol.layer.data("x", [8], dtype="float64")
            ol.layer.data("y", [], dtype="int64")
            program.targets = {"drawn": ol.layer.mean(ol.op.square(ol.op.dropout(x, 0.5, first_row=5)))}
        return program

    require_equal(build, batches_of(of_classes, SIZES))


def test_the_mean_of_complex_numbers_keeps_their_imaginary_parts():
    def build() -> ol.Program:
        with ol.Program(seed=0) as program:
            x = ol.layer.data("x", [8], dtype="float64")
            ol.layer.data("y", [], dtype="int64")
            program.targets = {"mean": ol.op.mean(ol.op.complex(x, ol.op.square(x)))}
        return program

    require_equal(build, batches_of(of_classes, SIZES))


def test_a_program_that_asks_for_the_number_of_its_worker_is_refused():
    with ol.Program() as program:
        ol.layer.data("x", [2])
        ol.op.worker_index()
    assert refusal(program) == "the workers of this program exchange tensors already"
