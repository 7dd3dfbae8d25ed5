"""Workers that divide parameters between them compute what one worker does with the whole of them."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Literal

import numpy
import pytest
import torch
from thread_workers import run_together

import oarlock as ol
from oarlock.passes import data_parallel, tensor_parallel

ROWS = (5, 3, 1, 4)
Shard = Literal["columns", "rows"] | None


def value_of(scope: ol.Scope, name: str) -> numpy.ndarray:
    value = scope[name]
    assert isinstance(value, torch.Tensor)
    return value.numpy()


def steps(program: ol.Program, feeds: Sequence[dict], interpret: bool, workers=None) -> tuple[list, dict]:
    scope = ol.init(program, ol.Scope(), workers=workers)
    executor = ol.Executor(interpret=interpret, workers=workers)
    values = [executor.run(program, feed, list(program.targets), scope=scope) for feed in feeds]
    return values, {var.name: value_of(scope, var.name) for var in program.persistables()}


def joined(program: ol.Program, states: Sequence[dict], name: str) -> numpy.ndarray:
    """The whole value of a variable: the shares of all workers one after another, or what each of them has."""
    sharding = program.main.var(name).sharding
    parts = [state[name] for state in states]
    if sharding is None:
        for part in parts[1:]:
            numpy.testing.assert_array_equal(part, parts[0], err_msg=name)
        return parts[0]
    return numpy.concatenate(parts, sharding.axis)


def require_equal(build: Callable[[], ol.Program], feeds: Sequence[dict], workers: int, *, within: float = 1e-12) -> ol.Program:
    """The program that the workers ran, where they computed what one worker did, by the interpreter and by a plan."""
    divided = build()
    tensor_parallel(divided, workers=workers)
    for interpret in (True, False):
        values, state = steps(build(), feeds, interpret)
        found = run_together(workers, partial(steps, divided, feeds, interpret))
        for others, _ in found:
            for expected, got in zip(values, others, strict=True):
                for one, other in zip(expected, got, strict=True):
                    numpy.testing.assert_allclose(other, one, rtol=within, atol=within)
        for name, value in state.items():
            own = joined(divided, [others for _, others in found], name)
            numpy.testing.assert_allclose(own, value, rtol=within, atol=within, err_msg=name)
    return divided


def of_classes(rows: Sequence[int] = ROWS) -> list[dict]:
    random = numpy.random.default_rng(0)
    return [{"x": random.normal(size=(n, 8)), "y": random.integers(0, 4, size=n)} for n in rows]


def mlp() -> ol.Program:
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        x = ol.layer.fc(x, 8, act="tanh")
        hidden = ol.op.dropout(ol.layer.fc(x, 12, act="relu", shard="columns"), 0.3)
        logits = ol.layer.fc(ol.op.tanh(hidden), 4, shard="rows")
        cost = ol.layer.mean(ol.op.softmax_with_cross_entropy(logits, y))
        clip = ol.optimizer.ClipByGlobalNorm(0.1)
        ol.optimizer.Adam(1e-2, clip=clip, weight_decay=0.1, average=ol.optimizer.ExponentialAverage(0.9)).minimize(cost)
        program.targets = {"loss": cost, "logits": logits}
    return program


@pytest.mark.parametrize("workers", [2, 4])
def test_a_layer_by_columns_and_one_by_rows(workers):
    require_equal(mlp, of_classes(), workers)


def test_one_worker_has_all_shares():
    require_equal(mlp, of_classes(), 1)


def looked_up(shard: Shard) -> Callable[[], ol.Program]:
    def build() -> ol.Program:
        with ol.Program(seed=0) as program:
            ids, y = ol.layer.data("ids", [3], dtype="int64"), ol.layer.data("y", [], dtype="int64")
            words = ol.layer.embedding(ids, (12, 8), dtype="float64", shard=shard)
            logits = ol.layer.fc(ol.op.reshape(words, shape=("n", 24)), 8, shard="columns")
            cost = ol.layer.cross_entropy(logits, y)
            ol.optimizer.Momentum(0.1, 0.9, clip=ol.optimizer.ClipByNorm(0.5)).minimize(cost)
            program.targets = {"loss": cost, "logits": logits}
        return program

    return build


def of_ids() -> list[dict]:
    random = numpy.random.default_rng(0)
    return [{"ids": random.integers(0, 12, size=(n, 3)), "y": random.integers(0, 8, size=n)} for n in ROWS]


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("shard", ["rows", "columns", None])
def test_a_table_by_rows_and_by_columns(shard, workers):
    require_equal(looked_up(shard), of_ids(), workers)


def of_text(length: int = 5) -> list[dict]:
    random = numpy.random.default_rng(0)
    return [{name: random.integers(0, 12, size=(n, length)) for name in ("ids", "next")} for n in ROWS[:3]]


def gpt(**options) -> Callable[[], ol.Program]:
    def build() -> ol.Program:
        with ol.Program(seed=0) as program:
            ids, following = (ol.layer.data(name, [5], dtype="int64") for name in ("ids", "next"))
            x = ol.layer.embedding(ids, (12, 8), dtype="float64", shard="rows")
            x = ol.layer.learned_positions(x, 5)
            how = {"layers": 2, "heads": 4, "norm_first": True, "final_norm": True, "causal": True, "shard": True}
            x = ol.layer.transformer_encoder(x, act="gelu", **how, **options)
            cost = ol.layer.cross_entropy(ol.layer.fc(x, 12, shard="columns"), following)
            rate = ol.optimizer.schedule.CosineDecay(1e-2, 20)
            # momentum: the gradients of the keys' biases are 0 but for rounding, which Adam would make steps of
            ol.optimizer.Momentum(rate, 0.9, weight_decay=0.1, clip=ol.optimizer.ClipByGlobalNorm(1.0)).minimize(cost)
            program.targets = {"loss": cost}
        return program

    return build


ROTARY = {"dropout": 0.1, "attention_dropout": 0.0, "rotary": True, "kv_heads": 4}


@pytest.mark.parametrize(
    ("options", "workers"),
    [
        pytest.param({"dropout": 0.0}, 4, id="4"),
        pytest.param({"dropout": 0.0}, 2, id="2", marks=pytest.mark.slow),
        pytest.param({"dropout": 0.1}, 2, id="dropout-2"),
        pytest.param({"dropout": 0.1}, 4, id="dropout-4", marks=pytest.mark.slow),
        pytest.param(ROTARY, 2, id="rotary-2"),
        pytest.param(ROTARY, 4, id="rotary-4", marks=pytest.mark.slow),
    ],
)
def test_a_transformer_with_its_heads_divided(options, workers):
    require_equal(gpt(**options), of_text(), workers)


def test_programs_are_printed_before_and_after(golden):
    for name, build in (("mlp", mlp), ("lookup", looked_up("rows"))):
        program = build()
        golden(f"tensor_parallel_{name}_before.txt", program.to_text(source=False))
        tensor_parallel(program, workers=2)
        text = program.to_text(source=False)
        golden(f"tensor_parallel_{name}_after.txt", text)
        assert ol.parse_program(text).to_text() == text
        assert ol.Program.from_bytes(program.to_bytes()).to_text(source=False) == text


def exchanges(program: ol.Program) -> list[str]:
    names = ("all_reduce", "all_gather", "reduce_scatter")
    return [op.type for block in program.blocks for op in block.ops if op.type in names]


def test_a_block_of_a_transformer_exchanges_two_sums_forward_and_two_back():
    with ol.Program() as program:
        x = ol.layer.fc(ol.layer.data("x", [5, 8]), 8)
        y = ol.layer.transformer_encoder_layer(x, heads=4, shard=True)
        ol.optimizer.Adam(1e-2).minimize(ol.layer.mean(y))
    assert tensor_parallel(program, workers=4) == 4
    assert exchanges(program) == ["all_reduce"] * 4


def bytes_of(program: ol.Program, scope: ol.Scope) -> int:
    """How much a worker holds of what is declared in shares."""
    held = (scope[var.name] for var in program.persistables() if var.sharding is not None)
    return sum(value.numel() * value.element_size() for value in held if isinstance(value, torch.Tensor))


@pytest.mark.parametrize("build", [mlp, looked_up("rows"), looked_up("columns"), gpt(dropout=0.0)], ids=["mlp", "rows", "columns", "gpt"])
def test_each_worker_holds_its_share_of_parameters_and_state(build):
    program = build()
    whole = bytes_of(program, ol.init(program, ol.Scope()))
    for workers in (2, 4):
        divided = build()
        tensor_parallel(divided, workers=workers)
        held = run_together(workers, lambda each, divided=divided: bytes_of(divided, ol.init(divided, ol.Scope(), workers=each)))
        assert held == [whole // workers] * workers


def test_one_process_computes_what_it_would_without_the_declaration():
    program, other = mlp(), mlp()
    for var in other.persistables():
        var.sharding = None
    for (values, state), (others, states) in [(steps(program, of_classes(), False), steps(other, of_classes(), False))]:
        assert all(numpy.array_equal(one, two) for one, two in zip(values, others, strict=True) for one, two in zip(one, two, strict=True))
        assert all(numpy.array_equal(state[name], states[name]) for name in state)


def of_sequences() -> list[dict]:
    random = numpy.random.default_rng(0)
    return [{"xs": random.normal(size=(n, 3, 4)), "y": random.integers(0, 4, size=n)} for n in ROWS[:3]]


def cell(x: ol.Var, state: ol.Var) -> ol.Var:
    wide = ol.layer.fc(ol.layer.concat([x, state], axis=1), 12, act="tanh", shard="columns", name="wide")
    return ol.op.tanh(ol.layer.fc(wide, 8, shard="rows", name="narrow"))


def recurrent() -> ol.Program:
    with ol.Program(seed=0) as program:
        xs, y = ol.layer.data("xs", [3, 4], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        by_step = ol.op.transpose(xs, axes=(1, 0, 2))
        rnn = ol.rnn()
        with rnn.step():
            x = rnn.step_input(by_step)
            state = rnn.memory(shape=[8])
            after = cell(x, rnn.previous_memory(state))
            rnn.update_memory(state, after)
            rnn.output(after)
        logits = ol.layer.fc(ol.op.reduce_sum(rnn(), axis=0), 4, shard="columns")
        cost = ol.layer.cross_entropy(logits, y)
        ol.optimizer.SGD(0.1, accumulate=2).minimize(cost)
        program.targets = {"loss": cost}
    return program


def while_small() -> ol.Program:
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        state = ol.layer.fc(x, 8, shard="columns")
        loop = ol.while_loop(ol.layer.mean(ol.op.square(state)) > 0.3, max_trips=9)
        with loop.block():
            after = cell(ol.op.narrow(x, axis=1, start=(0,), length=(4,)), state)
            loop.carry(state, after)
            loop.update_condition(ol.layer.mean(ol.op.square(after)) > 0.3)
        cost = ol.layer.cross_entropy(ol.layer.fc(loop(), 4, shard="rows"), y)
        ol.optimizer.Momentum(0.1, 0.9).minimize(cost)
        program.targets = {"loss": cost}
    return program


def two_ways() -> ol.Program:
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        networks = ol.ifelse()
        with networks.true_block():
            networks.output(ol.layer.fc(x, 4, shard="columns"))
        with networks.false_block():
            networks.output(ol.layer.fc(ol.op.dropout(ol.layer.fc(x, 8, act="tanh", shard="columns"), 0.3), 4, shard="rows"))
        cost = ol.layer.cross_entropy(networks(y < 2), y)
        ol.optimizer.Adagrad(0.1).minimize(cost)
        program.targets = {"loss": cost}
    return program


@pytest.mark.parametrize("build", [recurrent, while_small, two_ways])
def test_shares_inside_loops_and_branches(build):
    require_equal(build, of_sequences() if build is recurrent else of_classes(), 2)


def images() -> ol.Program:
    """Operators that compute shares whole: a convolution, batch normalization, a softmax; rows of a table's gradient."""
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        words = ol.layer.embedding(y, (4, 8), dtype="float64", shard="rows", sparse=True, padding_index=1)
        image = ol.op.reshape(ol.layer.fc(ol.op.add(x, words), 16, bias=False, shard="columns"), shape=("n", 4, 2, 2))
        made = ol.layer.conv2d(image, 4, 2, bias=False, weight=ol.layer.ParameterOptions(shard=0))
        made = ol.layer.batch_norm(ol.op.reshape(made, shape=("n", 4)))
        weight = ol.layer.create_parameter([4, 4], dtype="float64", options=ol.layer.ParameterOptions(shard=1), name="tied")
        logits = ol.op.matmul(ol.op.softmax(ol.op.matmul(made, weight)), ol.op.matrix_transpose(weight))
        cost = ol.layer.mean(ol.op.softmax_with_cross_entropy(logits, y)) + ol.layer.mean(ol.op.square(weight))
        ol.optimizer.RMSProp(0.01, lazy=True, clip=ol.optimizer.ClipByValue(0.1)).minimize(cost)
        program.targets = {"loss": cost}
    return program


@pytest.mark.parametrize("workers", [2, 4])
def test_what_no_rule_covers_is_computed_whole(workers):
    require_equal(images, of_classes(), workers)


def random_network(number: int) -> ol.Program:
    random = Random(number)
    with ol.Program(seed=number) as program:
        h, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        made = [h]
        for _ in range(random.randint(2, 5)):
            size = random.choice([4, 8, 12])
            shard: Shard = random.choice(["columns", "rows", "columns", "rows", None])
            h = ol.layer.fc(h, size, act=random.choice([None, "relu", "tanh", "softmax"]), bias=random.random() < 0.7, shard=shard)
            how = random.randrange(8)
            if how == 0:
                h = ol.op.dropout(h, 0.3)
            elif how == 1:
                h = ol.layer.layer_norm(h)
            elif how == 2:
                h = ol.op.reshape(ol.op.transpose(ol.op.reshape(h, shape=("n", 4, size // 4)), axes=(0, 2, 1)), shape=("n", size))
            elif how == 3:
                h = ol.op.concat([h, random.choice(made)], axis=1)
            elif how == 4:
                h = ol.op.add(h, ol.op.reduce_sum(h, axis=random.choice([0, 1]), keepdim=True))
            elif how == 5:
                h = ol.op.multiply(h, ol.layer.mean(h, axis=1, keepdim=True))
            elif how == 6:
                h = ol.op.where(ol.op.greater(h, ol.op.full_like(h, value=0.0, dtype="float64")), h, ol.op.square(h))
            made.append(h)
        logits = ol.layer.fc(h, 4, shard=random.choice(["columns", "rows"]))
        cost = ol.layer.mean(ol.op.softmax_with_cross_entropy(logits, y)) + ol.layer.mean(ol.op.square(h))
        optimizer = random.choice([ol.optimizer.SGD, ol.optimizer.Momentum, ol.optimizer.Adagrad])
        optimizer(0.05, clip=random.choice([None, ol.optimizer.ClipByGlobalNorm(0.2)])).minimize(cost)
        program.targets = {"loss": cost, "logits": logits}
    return program


@pytest.mark.parametrize("number", [*range(6), *(pytest.param(number, marks=pytest.mark.slow) for number in range(6, 12))])
def test_networks_that_nobody_wrote(number):
    require_equal(partial(random_network, number), of_classes(), 2 + 2 * (number % 2))


# Refusals


def message(raising: Callable[[], object]) -> str:
    with pytest.raises(ol.OarlockError) as raised:
        raising()
    return raised.value.message


def test_sizes_that_the_workers_do_not_divide_are_refused():
    program = mlp()
    text = program.to_text()
    with pytest.raises(ol.ProgramError) as raised:
        tensor_parallel(program, workers=5)
    assert raised.value.message == '"fc_1.w" is to be in equal shares along axis 1, and 5 workers do not divide 12'
    assert raised.value.hint == "15 is the next size that they divide"
    assert program.to_text() == text


def test_programs_that_cannot_be_divided_are_refused():
    program = mlp()
    tensor_parallel(program, workers=2)
    assert message(lambda: tensor_parallel(program, workers=2)) == "the workers of this program exchange tensors already"
    assert message(lambda: data_parallel(program)) == "the workers of this program exchange tensors already"
    with ol.Program() as plain:
        ol.layer.fc(ol.layer.data("x", [2]), 2)
    assert message(lambda: tensor_parallel(plain, workers=2)) == "no parameter of this program is declared in shares"
    with ol.Program() as divided:
        ol.layer.fc(ol.layer.data("x", [2]), 2, shard="columns")
    tensor_parallel(divided, workers=2)
    assert message(lambda: tensor_parallel(divided, workers=2)) == '"fc_0.w" is divided between workers already'
    assert message(lambda: tensor_parallel(mlp(), workers=0)) == "tensor_parallel: workers must be an integer >= 1, not 0"
    assert message(lambda: tensor_parallel("x", workers=2)) == "tensor_parallel takes a program, not 'x'"  # type: ignore[arg-type]


def test_another_number_of_workers_is_refused_where_a_run_begins():
    program = mlp()
    tensor_parallel(program, workers=2)
    assert message(lambda: ol.init(program, ol.Scope())) == '"fc_1.w" is divided between 2 workers, but there is 1'


def test_shares_that_no_layer_has_are_refused():
    def declared(**options) -> Callable[[], object]:
        def build() -> None:
            with ol.Program():
                ol.layer.fc(ol.layer.data("x", [2]), 4, **options)

        return build

    assert message(declared(shard="heads")) == 'fc: shard must be "columns", "rows" or None, not \'heads\''
    assert (
        message(declared(weight=ol.layer.ParameterOptions(shard=2)))
        == '"fc_0.w" has shape [2, 4], so workers cannot divide it along axis 2'
    )
    assert message(lambda: ol.layer.ParameterOptions(shard=-1)) == "ParameterOptions: shard must be an axis, counted from 0, not -1"
    with ol.Program():
        x = ol.layer.data("x", [4])
        ol.layer.fc(x, 4, params=["w", "b"])
        again = message(lambda: ol.layer.fc(x, 4, params=["w", "b"], shard="rows"))
    assert again == '"w" is needed in shares along axis 0, but is already declared differently'


def test_an_id_that_no_worker_has_makes_the_run_fail():
    program = looked_up("rows")()
    tensor_parallel(program, workers=2)
    feed = {"ids": numpy.array([[0, 11, 12]]), "y": numpy.array([0])}
    with pytest.raises(ol.KernelError, match="row 12 is out of range: 2 workers have 12 rows"):
        run_together(2, partial(steps, program, [feed], False))
