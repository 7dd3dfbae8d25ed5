"""Tables that are looked up, updated by rows: as PyTorch's sparse gradients do, and as whole gradients do where that is the same."""

import re
import warnings

import numpy
import pytest
import torch
from tolerances import PYTORCH

import oarlock as ol

ROWS, WIDTH, STEPS = 12, 3, 50
RANDOM = numpy.random.default_rng(5)
FEEDS = [{"ids": RANDOM.integers(0, ROWS - 2, (4, 2)), "wanted": RANDOM.normal(size=(4, WIDTH))} for _ in range(STEPS)]
START = RANDOM.normal(size=(ROWS, WIDTH))


def program_of(optimizer, *, sparse: bool = True, loop: bool = False) -> tuple[ol.Program, ol.Var]:
    """A table, and a matrix that its rows are multiplied with; two rows of the table are never asked for."""
    with ol.Program(seed=0) as program:
        ids = ol.layer.data("ids", shape=[2], dtype="int64")
        wanted = ol.layer.data("wanted", shape=[WIDTH], dtype="float64")
        if loop:
            turned, start = ol.op.transpose(ids, axes=(1, 0)), wanted * 0.0
            rnn = ol.rnn()
            with rnn.step():
                h = rnn.memory(init=start)
                rnn.update_memory(h, rnn.previous_memory(h) + look_up(rnn.step_input(turned), sparse=sparse))
            rnn()
            total = rnn.final_memory(h)
        else:
            total = ol.op.reduce_sum(look_up(ids, sparse=sparse), axis=1)
        w = ol.layer.create_parameter([WIDTH, WIDTH], name="w", dtype="float64")
        cost = ol.layer.mean(ol.op.square(ol.op.tanh(ol.op.linear(total, w)) - wanted))
        optimizer.minimize(cost)
    return program, cost


def look_up(ids: ol.Var, *, sparse: bool) -> ol.Var:
    return ol.layer.embedding(ids, (ROWS, WIDTH), dtype="float64", params=["words"], sparse=sparse)


def run(program, cost, executor=None, feeds=FEEDS) -> dict[str, numpy.ndarray]:
    scope, executor = ol.init(program, ol.Scope()), executor or ol.Executor()
    scope["words"], scope["w"] = START.copy(), numpy.eye(WIDTH)
    for feed in feeds:
        executor.run(program, feed, [cost], scope=scope, training=True)
    return {var.name: scope[var.name].numpy() for var in program.main.vars.values() if var.persistable}


def theirs(table_optimizer, matrix_optimizer) -> dict[str, numpy.ndarray]:
    words = torch.nn.Embedding(ROWS, WIDTH, sparse=True, dtype=torch.float64)
    w = torch.nn.Parameter(torch.eye(WIDTH, dtype=torch.float64))
    with torch.no_grad():
        words.weight.copy_(torch.tensor(START))
    optimizers = [table_optimizer(words.parameters()), matrix_optimizer([w])]
    for feed in FEEDS:
        for optimizer in optimizers:
            optimizer.zero_grad()
        total = words(torch.tensor(feed["ids"])).sum(1)
        ((torch.tanh(total @ w) - torch.tensor(feed["wanted"])) ** 2).mean().backward()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns of its own sparse tensors
            for optimizer in optimizers:
                optimizer.step()
    return {"words": words.weight.detach().numpy(), "w": w.detach().numpy()}


LIKE_PYTORCH = {
    "SGD": (ol.optimizer.SGD(0.3), lambda p: torch.optim.SGD(p, lr=0.3), lambda p: torch.optim.SGD(p, lr=0.3)),
    "Adagrad": (ol.optimizer.Adagrad(0.1), lambda p: torch.optim.Adagrad(p, lr=0.1), lambda p: torch.optim.Adagrad(p, lr=0.1)),
    "SparseAdam": (
        ol.optimizer.Adam(0.05, epsilon=1e-15, lazy=True),
        lambda p: torch.optim.SparseAdam(list(p), lr=0.05, eps=1e-15),
        lambda p: torch.optim.Adam(p, lr=0.05, eps=1e-15),
    ),
}


@pytest.mark.parametrize("name", LIKE_PYTORCH)
def test_fifty_steps_are_those_of_sparse_gradients_in_pytorch(name):
    ours, *others = LIKE_PYTORCH[name]
    expected = theirs(*others)
    program, cost = program_of(ours)
    found = run(program, cost)
    for key in expected:
        assert not numpy.allclose(found[key], {"words": START, "w": numpy.eye(WIDTH)}[key], atol=1e-3)
        numpy.testing.assert_allclose(found[key], expected[key], rtol=PYTORCH[0], atol=PYTORCH[1])
    assert numpy.array_equal(found["words"][-2:], START[-2:]), "what nobody asks for rests"


def require_same(one, other, tolerance=PYTORCH) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        numpy.testing.assert_allclose(value, other[name], rtol=tolerance[0], atol=tolerance[1], err_msg=name)


def types_in(program) -> set[str]:
    return {op.type for op in program.main.ops}


SAME_AS_TABLES = {
    "SGD": lambda: ol.optimizer.SGD(0.3),
    "Adagrad": lambda: ol.optimizer.Adagrad(0.1),
    "by value": lambda: ol.optimizer.SGD(0.3, clip=ol.optimizer.ClipByValue(0.05)),
    "by norm": lambda: ol.optimizer.SGD(0.3, clip=ol.optimizer.ClipByNorm(0.1)),
    "by global norm": lambda: ol.optimizer.Adagrad(0.3, clip=ol.optimizer.ClipByGlobalNorm(0.1)),
    "an average": lambda: ol.optimizer.SGD(0.3, average=ol.optimizer.ExponentialAverage(0.9)),
    "groups": lambda: ol.optimizer.Groups(
        [("words", ol.optimizer.SGD(0.3))], ol.optimizer.Adam(0.01), clip=ol.optimizer.ClipByGlobalNorm(0.1)
    ),
}


@pytest.mark.parametrize("loop", [False, True], ids=["at once", "in a loop"])
@pytest.mark.parametrize("name", SAME_AS_TABLES)
def test_rows_lead_where_a_table_of_gradients_does(name, loop):
    found = []
    for sparse in (True, False):
        program, cost = program_of(SAME_AS_TABLES[name](), sparse=sparse, loop=loop)
        assert types_in(program).isdisjoint({"scatter_add"}) is (sparse or loop)
        found.append(run(program, cost, feeds=FEEDS[:4]))
        for executor in (ol.Executor(interpret=True), ol.Executor(passes=())):
            require_same(run(program, cost, executor, feeds=FEEDS[:4]), found[-1])
    require_same(*found)


ELEMENTWISE = {
    "Momentum": lambda **options: ol.optimizer.Momentum(0.1, nesterov=True, **options),
    "dampened": lambda **options: ol.optimizer.Momentum(0.1, dampening=0.5, **options),
    "Adam": lambda **options: ol.optimizer.Adam(0.05, **options),
    "amsgrad": lambda **options: ol.optimizer.Adam(0.05, amsgrad=True, **options),
    "AdamW": lambda **options: ol.optimizer.AdamW(0.05, **options),
    "Adamax": lambda **options: ol.optimizer.Adamax(0.05, **options),
    "NAdam": lambda **options: ol.optimizer.NAdam(0.05, **options),
    "RAdam": lambda **options: ol.optimizer.RAdam(0.05, **options),
    "Adadelta": lambda **options: ol.optimizer.Adadelta(0.5, **options),
    "RMSProp": lambda **options: ol.optimizer.RMSProp(0.01, **options),
    "Rprop": lambda **options: ol.optimizer.Rprop(0.01, **options),
    "Ftrl": lambda **options: ol.optimizer.Ftrl(0.1, **options),
    "Lion": lambda **options: ol.optimizer.Lion(0.01, **options),
    "penalties": lambda **options: ol.optimizer.SGD(0.1, weight_decay=0.1, l1=0.01, **options),
    "decoupled": lambda **options: ol.optimizer.Momentum(0.1, weight_decay=0.1, decoupled_weight_decay=True, **options),
}
EVERY_ROW = [{"ids": RANDOM.permutation(ROWS).reshape(-1, 2), "wanted": RANDOM.normal(size=(ROWS // 2, WIDTH))} for _ in range(6)]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_lazy_steps_of_every_row_are_those_that_are_not_lazy(name):
    lazy, whole = (program_of(ELEMENTWISE[name](lazy=lazy), sparse=lazy) for lazy in (True, False))
    assert {"coalesce", "put_rows"} <= types_in(lazy[0])
    assert "scatter_add" not in types_in(lazy[0])
    require_same(run(*lazy, feeds=EVERY_ROW), run(*whole, feeds=EVERY_ROW))


def test_lazy_rows_rest_and_keep_what_is_beside_them():
    """Of every optimizer that moves a row by what its gradients were: rows that are asked for once, then no more."""
    once = [{"ids": numpy.array([[0, 1]]), "wanted": numpy.ones((1, WIDTH))}]
    later = [{"ids": numpy.array([[2, 3]]), "wanted": numpy.ones((1, WIDTH))}] * 3
    for name, optimizer in ELEMENTWISE.items():
        program, cost = program_of(optimizer(lazy=True))
        before, after = run(program, cost, feeds=once), run(program, cost, feeds=once + later)
        states = [key for key in after if key.startswith("words")]
        assert len(states) > 1 or name == "penalties"
        for key in states:
            assert numpy.array_equal(before[key][:2], after[key][:2]), f"{name}: {key}"
            assert numpy.array_equal(before[key][4:], after[key][4:])
        assert not numpy.array_equal(before["words"][2:4], after["words"][2:4])


def test_weights_decay_where_they_are_looked_up_alone():
    optimizer = ol.optimizer.SGD(0.5, weight_decay=0.2, lazy=True)
    plain, decayed = (run(*program_of(each), feeds=FEEDS[:1]) for each in (ol.optimizer.SGD(0.5), optimizer))
    asked = numpy.unique(FEEDS[0]["ids"])
    expected = plain["words"].copy()
    expected[asked] -= 0.5 * 0.2 * START[asked]
    numpy.testing.assert_allclose(decayed["words"], expected, rtol=PYTORCH[0], atol=PYTORCH[1])
    assert len(asked) < ROWS


WHOLE = {
    "Adam": (
        lambda: ol.optimizer.Adam(0.05),
        "Adam changes every row in each step; pass lazy=True to update only the rows that were looked up",
    ),
    "decay": (
        lambda: ol.optimizer.SGD(0.1, weight_decay=0.1),
        "SGD decays every row in each step; pass lazy=True to update only the rows that were looked up",
    ),
    "accumulation": (lambda: ol.optimizer.SGD(0.1, accumulate=2), "SGD accumulates the gradients of 2 steps"),
    "Lamb": (lambda: ol.optimizer.Lamb(0.05), "Lamb changes every row in each step"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_needs_a_whole_gradient_says_so_and_has_it(name):
    optimizer, reason = WHOLE[name]
    message = f'the gradient of "words" is dense although a lookup requests rows: {reason}'
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        program, cost = program_of(optimizer())
    assert caught[0].filename == __file__
    require_same(run(program, cost, feeds=FEEDS[:6]), run(*program_of(optimizer(), sparse=False), feeds=FEEDS[:6]))


@pytest.mark.parametrize("kind", [ol.optimizer.Lamb, ol.optimizer.Lars, ol.optimizer.Muon])
def test_an_optimizer_that_looks_at_all_rows_is_not_lazy(kind):
    with pytest.raises(ol.ArgumentError, match=f"^{kind.__name__}: its updates depend on all rows of a table, so lazy cannot be used\n"):
        kind(0.1, lazy=True)


def test_clipping_of_ones_own_is_given_tables():
    seen = []

    def halved(pairs):
        seen.extend(pairs)
        return [(parameter, gradient * 0.5) for parameter, gradient in pairs]

    program, cost = program_of(ol.optimizer.SGD(0.2, clip=halved))
    assert all(isinstance(gradient, ol.Var) for _, gradient in seen)
    require_same(run(program, cost, feeds=FEEDS[:4]), run(*program_of(ol.optimizer.SGD(0.1)), feeds=FEEDS[:4]) | rate_of(0.2))


def rate_of(rate: float) -> dict[str, numpy.ndarray]:
    return {"sgd_0.learning_rate": numpy.array(rate)}


def test_rows_are_clipped_as_the_settings_of_the_table_say():
    found = []
    for sparse in (True, False):
        with ol.Program(seed=0) as program:
            ids = ol.layer.data("ids", shape=[2], dtype="int64")
            wanted = ol.layer.data("wanted", shape=[WIDTH], dtype="float64")
            total = ol.op.reduce_sum(look_up(ids, sparse=sparse), axis=1)
            program.main.var("words").update_settings = ol.optimizer.UpdateSettings(clip_value=0.05, clip_norm=0.1, rate_factor=0.5)
            ol.layer.create_parameter([1], name="w", dtype="float64")
            cost = ol.layer.mean(ol.op.square(total - wanted))
            ol.optimizer.SGD(0.3).minimize(cost)
        scope = ol.init(program, ol.Scope())
        scope["words"] = START.copy()
        for feed in FEEDS[:5]:
            ol.Executor().run(program, feed, [cost], scope=scope, training=True)
        found.append(scope["words"].numpy())
    numpy.testing.assert_allclose(*found, rtol=PYTORCH[0], atol=PYTORCH[1])
    assert not numpy.allclose(found[0], START)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("optimizer", [ol.optimizer.SGD(0.1), ol.optimizer.Adam(0.1, lazy=True)], ids=["SGD", "Adam"])
def test_rows_of_any_float_are_updated(dtype, optimizer):
    with ol.Program(seed=0) as program:
        ids = ol.layer.data("ids", shape=[], dtype="int64")
        rows = ol.layer.embedding(ids, (5, 4), dtype=dtype, params=["words"], sparse=True)
        cost = ol.op.cast(ol.layer.mean(ol.op.square(rows)), dtype="float32")
        optimizer.minimize(cost)
    scope = ol.init(program, ol.Scope())
    before = scope["words"].clone()
    for asked in ([1, 3, 1], []):
        ol.Executor().run(program, {"ids": numpy.array(asked, dtype=numpy.int64)}, [], scope=scope, training=True)
    moved = (scope["words"] != before).any(1).tolist()
    assert moved == [False, True, False, True, False]


def test_a_saved_program_goes_on_lazily(tmp_path):
    program, _ = program_of(ol.optimizer.Adam(0.05, lazy=True))
    ol.save_model(program, ol.init(program, ol.Scope()), tmp_path / "lazy.safetensors")
    loaded = ol.load_model(tmp_path / "lazy.safetensors")
    assert next(op for op in loaded.program.main.ops if op.type == "gather").attributes["sparse"] is True
    assert {"coalesce", "put_rows"} <= types_in(loaded.program)
