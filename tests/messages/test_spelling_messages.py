"""Spellings that come naturally: accepted where they mean one thing, else refused with what to write."""

import numpy
import pytest

import oarlock as ol


@pytest.fixture
def x() -> ol.Var:
    return ol.layer.data("x", shape=[4])


@pytest.fixture(autouse=True)
def program():
    with ol.Program() as program:
        yield program


ONES = numpy.ones((4, 2), "float32")

NATURAL = {
    'gemm(x, w, 2.0, "relu")': (
        lambda x: ol.op.gemm(x, ol.op.full(shape=(4, 2), value=1.0, dtype="float32"), 2.0, "relu")[1],
        lambda x: numpy.maximum(2.0 * (x @ ONES), 0.0),
    ),
    "fc(w, x, act=ol.op.relu)": (
        lambda x: ol.layer.fc(ol.op.full(shape=(4, 2), value=1.0, dtype="float32"), x, act=ol.op.relu),
        lambda x: numpy.maximum(x @ ONES, 0.0),
    ),
    "clip(x, lower=0.0)": (lambda x: ol.op.clip(x, lower=0.0), lambda x: numpy.clip(x, 0.0, None)),
    "clip(x, 0, 1.5)": (lambda x: ol.op.clip(x, 0, 1.5), lambda x: numpy.clip(x, 0, 1.5)),
    "dropout(x, 0.5)": (lambda x: ol.layer.dropout(x, 0.5), lambda x: x),
    "reshape(x, (2, 4))": (lambda x: ol.layer.reshape(x, (4, 2)), lambda x: x.reshape(4, 2)),
    "concat(a, b)": (lambda x: ol.layer.concat(x, x), lambda x: numpy.concatenate([x, x])),
    "concat(a, b, 1)": (lambda x: ol.layer.concat(x, x, 1), lambda x: numpy.concatenate([x, x], 1)),
    "concat([a, b], 1)": (lambda x: ol.layer.concat([x, x], 1), lambda x: numpy.concatenate([x, x], 1)),
    "reshape(x, -1)": (lambda x: ol.op.reshape(x, -1), lambda x: x.reshape(-1)),
    "flip(x, 1)": (lambda x: ol.op.flip(x, 1), lambda x: x[:, ::-1]),
    "sort(x, 1, True)": (lambda x: ol.op.sort(x, 1, True)[0], lambda x: numpy.sort(x, 1)[:, ::-1]),
    "celu(x, 0.5)": (lambda x: ol.op.celu(x, 0.5) - ol.op.celu(x, alpha=0.5), lambda x: 0 * x),
    "threshold(x, 0.1, value=2.0)": (lambda x: ol.op.threshold(x, 0.1, value=2.0), lambda x: numpy.where(x > 0.1, x, 2)),
    "broadcast_to(x, (3, 2, 4))": (lambda x: ol.op.broadcast_to(x, (3, "n", 4)), lambda x: numpy.stack([x] * 3)),
    "narrow(x, 1, 1, 2)": (lambda x: ol.op.narrow(x, 1, 1, 2), lambda x: x[:, 1:3]),
    "max_pool1d(x, 2, 2)": (
        lambda x: ol.op.max_pool1d(ol.op.reshape(x, ("n", 1, 4)), 2, 2),
        lambda x: x.reshape(-1, 1, 2, 2).max(-1),
    ),
    "add(1, x)": (lambda x: ol.op.add(1, x), lambda x: 1 + x),
    "multiply(x, 2.5)": (lambda x: ol.op.multiply(x, 2.5), lambda x: x * 2.5),
}


@pytest.mark.parametrize("spelling", NATURAL)
def test_what_means_one_thing_is_taken(spelling, x, program):
    write, expected = NATURAL[spelling]
    y = write(x)
    value = numpy.linspace(-2, 2, 8, dtype="float32").reshape(2, 4)
    (computed,) = ol.Executor().run(program, {"x": value}, [y], scope=ol.Scope())
    assert numpy.array_equal(computed, expected(value).astype("float32"))


REFUSED = {
    "sizes one by one": (
        lambda x: ol.layer.reshape(x, 2, 2),
        "reshape: 3 arguments given, but it takes 1 input and shape",
        "pass the numbers as one tuple: reshape(x, shape=(2, 2))",
    ),
    "axes one by one": (
        lambda x: ol.layer.transpose(x, 1, 0),
        "transpose: 3 arguments given, but it takes 1 input and axes",
        "pass the numbers as one tuple: transpose(x, axes=(1, 0))",
    ),
    "more than a function takes": (
        lambda x: ol.op.celu(x, 0.5, 1.0),
        "celu: 3 arguments given, but it takes x and alpha",
        None,
    ),
    "a fraction for whole numbers in a row": (
        lambda x: ol.op.flip(x, 1.5),
        "flip: attribute axes must be tuple[int, ...], not 1.5",
        None,
    ),
    "more than there are attributes": (
        lambda x: ol.layer.dropout(x, 0.5, x),
        "dropout: 3 arguments given, but it takes 1 input and rate",
        None,
    ),
    "no scale for gemm": (
        lambda x: ol.op.gemm(x, ol.op.full(shape=(4, 2), value=1.0, dtype="float32"), None),
        "gemm: scale is a number or a variable that holds one, not NoneType None",
        None,
    ),
    "no scale for fc": (
        lambda x: ol.layer.fc(x, 2, scale=None),
        "fc: scale is a number or a variable that holds one, not NoneType None",
        None,
    ),
    "an activation for gemm that there is not": (
        lambda x: ol.op.gemm(x, ol.op.full(shape=(4, 2), value=1.0, dtype="float32"), 2.0, "rellu"),
        "no activation is called 'rellu'",
        'did you mean "relu"?',
    ),
    "a number for an activation": (lambda x: ol.layer.fc(x, 2, act=3), "no activation is called 3", None),
    "what is no attribute behind the inputs": (lambda x: ol.op.add(x, x, x), "add: 3 inputs given, but it takes 2", None),
    "an attribute twice": (lambda x: ol.layer.dropout(x, 0.5, rate=0.1), "dropout: rate is given twice", None),
    "a number for what does not broadcast": (
        lambda x: ol.op.layer_norm(x, 1e-3),
        "layer_norm: scale must be a variable of the program, not float 0.001",
        "pass attributes by name if inputs are omitted: layer_norm(..., epsilon=0.001)",
    ),
    "numbers alone": (lambda x: ol.op.add(1, 2), "add: x must be a variable of the program, not int 1", None),
    "a number that the dtype does not hold": (
        lambda x: ol.op.add(ol.op.cast(x, dtype="int64"), 0.5),
        'add: "cast_0" is int64, which cannot represent 0.5',
        'use ol.op.cast(x, dtype="float32") to convert it',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_is_refused_with_what_to_write(case, x):
    write, message, hint = REFUSED[case]
    with pytest.raises(ol.OarlockError) as raised:
        write(x)
    assert (raised.value.message, raised.value.hint) == (message, hint)


def test_a_constant_of_what_is_refused_is_taken_back(x, program):
    before = program.to_bytes()
    with pytest.raises(ol.ArgumentError):
        ol.op.clip(x, 0.0, "one")
    assert program.to_bytes() == before


def test_a_variable_of_another_program_is_not_written_to():
    with ol.Program() as closed:
        v = ol.layer.data("v", shape=[3])
    with ol.Program() as other:
        for write in (lambda: ol.layer.fc(v, 2), lambda: v + 1, lambda: ol.op.tanh(v)):
            before = (closed.to_bytes(), other.to_bytes())
            with pytest.raises(ol.ProgramError) as raised:
                write()
            assert (closed.to_bytes(), other.to_bytes()) == before
        assert raised.value.message == 'tanh: "v" belongs to a program that is not open, but another program is'
        assert raised.value.hint == "close the other program first, or open this one: with var.block.program"
        with v.block.program:
            assert ol.op.tanh(v).block is closed.main, "as that says"
    assert [op.type for op in closed.main.ops] == ["tanh"]


def test_what_runs_and_trains_inside_an_open_program_writes_to_its_own(program):
    with ol.Program():
        cost = ol.layer.mean(ol.op.square(ol.layer.fc(ol.layer.data("x", shape=[2]), 1)))
        result = ol.train(cost, {"x": numpy.ones((4, 2), "float32")}, progress=False)
        ol.infer(cost, {"x": numpy.ones((4, 2), "float32")}, result)
    with ol.Program() as other:
        ol.train(cost, {"x": numpy.ones((4, 2), "float32")}, progress=False)
    assert other.main.ops == []


def test_a_fetch_that_nothing_is_called_lists_what_there_is(x, program):
    y = ol.layer.fc(x, 2)
    for number in range(20):
        y = ol.op.tanh(y, name=f"layer_{number}")
    program.targets = {"last": y}
    with pytest.raises(ol.UndefinedVarError) as raised:
        ol.Executor().run(program, {}, ["layer_z"], scope=ol.Scope())
    assert raised.value.message == '"layer_z" is not visible in main'
    few = "layer_9, layer_8, layer_7, layer_6, layer_5, layer_4, layer_3, layer_2, layer_1, layer_0, layer_19, layer_18"
    assert raised.value.given == (f"there are: {few}, and 13 more",)
    assert raised.value.hint.startswith('did you mean "layer_')


def test_what_is_fetched_stands_first_where_nothing_is_like_the_name(x, program):
    y = ol.layer.fc(x, 2, act="tanh")
    ol.optimizer.SGD(0.1).minimize(ol.layer.mean(y, name="cost"))
    program.targets = {"predict": y}
    listed = "there are: predict, cost, tanh_0, fc_0.out, x, fc_0.w, fc_0.b, "
    desc = ol.prune(program, ["cost"]).main.compile()
    for ask, start in (
        (lambda: ol.prune(program, ["nothere"]), listed),
        (lambda: ol.Executor().run(program, {}, ["nothere"], scope=ol.Scope()), listed),
        (lambda: ol.eval("nothere", {}, program=program), listed),
        (lambda: program.main.var("nothere"), listed.replace("predict, ", "")),
        (lambda: ol.prune(desc, ["nothere"]), "there are: cost, tanh_0, fc_0.out, x, fc_0.w, fc_0.b"),
    ):
        with pytest.raises(ol.UndefinedVarError) as raised:
            ask()
        assert raised.value.message == '"nothere" is not visible in main'
        assert raised.value.given[0].startswith(start)


def test_a_path_that_leads_nowhere_lists_what_there_is_where_it_ends(x, program):
    loop = ol.rnn()
    with loop.step():
        loop.output(ol.op.tanh(ol.op.square(loop.step_input(x), name="squared"), name="z"))
    loop()
    with pytest.raises(ol.UndefinedVarError) as raised:
        ol.Executor().run(program, {}, ["main/rnn_0/0/qqq"], scope=ol.Scope())
    assert raised.value.message == '"main/rnn_0/0/qqq" is not a variable of this program'
    (given,) = raised.value.given
    assert given.startswith("there are: main/rnn_0/0/z, main/rnn_0/0/squared, main/rnn_0/0/")
    with pytest.raises(ol.UndefinedVarError) as raised:
        ol.Executor().run(program, {}, ["main/qqq"], scope=ol.Scope())
    assert raised.value.given[0].startswith("there are: main/")


def test_a_target_is_pruned_to_by_its_label(x, program):
    y = ol.layer.fc(x, 2, act="tanh")
    program.targets = {"predict": y}
    assert ol.prune(program, "predict").to_bytes() == ol.prune(program, {"predict": y}).to_bytes()


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: ol.optimizer.adam(1e-3), "did you mean ol.optimizer.Adam?"),
        (lambda: ol.optimizer.sgd(1e-3), "did you mean ol.optimizer.SGD?"),
        (lambda: (ol.layer.conv2d, ol.layer.convolution(3)), "dir(ol.layer) lists all names"),  # which the first has loaded
        (lambda: ol.op.attention(3), "did you mean ol.layer.attention?"),
    ],
)
def test_a_module_that_is_called_says_what_is_meant(call, hint):
    with pytest.raises(ol.ArgumentError, match=r"^ol\.[a-z.]+ is a module and cannot be called\n") as raised:
        call()
    assert raised.value.hint == hint


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: ol.mean, "module 'oarlock' has no attribute 'mean'; did you mean ol.layer.mean?"),
        (lambda: ol.softmax, "module 'oarlock' has no attribute 'softmax'; did you mean ol.layer.softmax?"),
        (lambda: ol.Adam, "module 'oarlock' has no attribute 'Adam'; did you mean ol.optimizer.Adam?"),
        (lambda: ol.SGD, "module 'oarlock' has no attribute 'SGD'; did you mean ol.optimizer.SGD?"),
        (lambda: ol.FC, "module 'oarlock' has no attribute 'FC'; did you mean ol.fc?"),
        (lambda: ol.xavier, "module 'oarlock' has no attribute 'xavier'; did you mean ol.layer.initializer.xavier?"),
        (lambda: ol.optimizer.adm, "module 'oarlock.optimizer' has no attribute 'adm'; did you mean ol.optimizer.Adam?"),
        (lambda: ol.layer.Dense, "module 'oarlock.layer' has no attribute 'Dense'; in Oarlock: ol.layer.fc"),
        (
            lambda: ol.layer.Conv2DTranspose,
            "module 'oarlock.layer' has no attribute 'Conv2DTranspose'; in Oarlock: ol.layer.conv_transpose2d",
        ),
        (lambda: ol.layer.lienar, "module 'oarlock.layer' has no attribute 'lienar'; did you mean ol.layer.linear?"),
        (lambda: ol.layer.Conv2D, "module 'oarlock.layer' has no attribute 'Conv2D'; did you mean ol.layer.conv2d?"),
        (lambda: ol.op.fc, "module 'oarlock.op' has no attribute 'fc'; did you mean ol.fc?"),
        (lambda: ol.trian, "module 'oarlock' has no attribute 'trian'; did you mean ol.train?"),
        (lambda: ol.layer.batchnorm, "module 'oarlock.layer' has no attribute 'batchnorm'; did you mean ol.layer.batch_norm?"),
        (
            lambda: ol.layer.square,
            "module 'oarlock.layer' has no attribute 'square'; it is an operator without parameters: ol.op.square",
        ),
        (lambda: ol.op.rellu, "module 'oarlock.op' has no attribute 'rellu'; did you mean ol.op.relu?"),
        (lambda: ol.op.cat, "module 'oarlock.op' has no attribute 'cat'; did you mean ol.op.concat?"),
        (lambda: ol.op.clamp, "module 'oarlock.op' has no attribute 'clamp'; did you mean ol.op.clip?"),
        (lambda: ol.passes.append_bckward, "module 'oarlock.passes' has no attribute 'append_bckward'; did you mean ol.append_backward?"),
        (lambda: ol.runtime.Excutor, "module 'oarlock.runtime' has no attribute 'Excutor'; did you mean ol.runtime.Executor?"),
        (lambda: ol.registry.Cse, "module 'oarlock.registry' has no attribute 'Cse'; did you mean ol.registry.Case?"),
        (lambda: ol.laer, "module 'oarlock' has no attribute 'laer'; did you mean ol.layer?"),
        (lambda: ol.optimizer.adam_w, "module 'oarlock.optimizer' has no attribute 'adam_w'; did you mean ol.optimizer.AdamW?"),
        (lambda: ol.optimizer.Newton, "module 'oarlock.optimizer' has no attribute 'Newton'; dir(ol.optimizer) lists all names"),
        (lambda: ol.datasets.digit, "module 'oarlock.datasets' has no attribute 'digit'; did you mean ol.datasets.digits?"),
        (lambda: ol.variable.tensr, "module 'oarlock.compat_2017.variable' has no attribute 'tensr'; did you mean ol.variable.tensor?"),
        (lambda: ol.scope.curent, "module 'oarlock.compat_2017.scope' has no attribute 'curent'; did you mean ol.scope.current?"),
        (lambda: ol.net.Nett, "module 'oarlock.compat_2017.net' has no attribute 'Nett'; did you mean ol.net.Net?"),
    ],
)
def test_a_name_that_a_module_has_not_has_a_near_one(ask, message):
    with pytest.raises(AttributeError) as raised:
        ask()
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda x: x.shpe, "'Var' object has no attribute 'shpe'; did you mean shape?"),
        (lambda x: x.sum(1), "'Var' object has no attribute 'sum'; ol.op.reduce_sum(x) is a function"),
        (lambda x: x.reshape(2), "'Var' object has no attribute 'reshape'; ol.op.reshape(x) is a function"),
        (lambda x: x.zzz, "'Var' object has no attribute 'zzz'"),
    ],
)
def test_what_a_variable_has_not_has_a_near_name_or_a_function(ask, message, x):
    with pytest.raises(AttributeError) as raised:
        ask(x)
    assert str(raised.value) == message


# Numbers, parameters and labels


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("rows", [[[1.0, 2.0]], [[1, 2]]], ids=["floats", "ints"])
def test_numbers_of_python_take_the_declared_dtype(rows, dtype):
    with ol.Program():
        fed = ol.layer.data("fed", shape=[2], dtype=dtype)
        carried = ol.layer.data("carried", value=rows, dtype=dtype)
        cost = ol.layer.mean(ol.layer.fc(fed, 1))
    assert carried.type_text == f"{dtype}[n, 2]"
    scope = ol.init(cost.block.program, ol.Scope())
    ol.infer(cost, {"fed": rows}, scope)
    if dtype != "bfloat16":
        exact = numpy.asarray(rows, dtype)
        results = [ol.train(cost, {"fed": data}, epochs=2, progress=False).history for data in (rows, exact)]
        assert results[0] == results[1]


def test_numbers_that_the_dtype_does_not_hold_are_refused_all_the_same():
    with ol.Program():
        cost = ol.layer.mean(ol.layer.fc(ol.op.cast(ol.layer.data("x", shape=[2], dtype="int64"), dtype="float32"), 1))
    with pytest.raises(ol.FeedError) as raised:
        ol.train(cost, {"x": [[1.5, 2.0]]}, progress=False)
    assert raised.value.message == 'the column "x" is float32, and some values cannot be represented exactly in int64'


def test_a_weight_that_does_not_fit_is_what_inference_names():
    with ol.Program():
        y = ol.layer.fc(ol.layer.data("x", shape=[3]), 2, name="fc")
        z = ol.layer.fc(ol.layer.data("v", value=numpy.ones((1, 3), "float32")), 2, name="fc_v")
    bias, x = numpy.zeros(2, "float32"), {"x": numpy.ones((1, 3), "float32")}
    for ask in (
        lambda: ol.infer(y, x, {"fc.w": numpy.ones((2, 3), "float32"), "fc.b": bias}),
        lambda: ol.infer(z, {"fc_v.w": numpy.ones((2, 3), "float32"), "fc_v.b": bias}),
    ):
        with pytest.raises(ol.ShapeError) as raised:
            ask()
        assert raised.value.message.endswith('.w" is float32[2, 3] in the scope, but float32[3, 2] in the program')
        assert raised.value.hint.endswith('.w" to a value of shape (3, 2) and dtype float32: it is transposed')
    assert ol.infer(z, {"fc_v.w": numpy.ones((3, 2), "float32"), "fc_v.b": bias}).tolist() == [[3.0, 3.0]]


def test_a_value_that_nothing_has_is_refused_with_the_near_names(tmp_path):
    with ol.Program() as program:
        y = ol.layer.fc(ol.layer.data("x", shape=[3]), 2, name="fc")
        cost = ol.layer.mean(ol.layer.fc(y, 1, name="further"))
        z = ol.layer.fc(ol.layer.data("v", value=numpy.ones((1, 3), "float32")), 2, name="fc_v")
    x, path = {"x": numpy.ones((4, 3), "float32")}, tmp_path / "model"
    scope = ol.init(program, ol.Scope())
    values = {name: scope[name] for name in scope}  # of the whole program, which may be more than is needed
    assert ol.infer(y, x, values).tolist() == ol.infer(y, x, scope).tolist()
    for name, hint in (("fc.ww", 'did you mean "fc.w"?'), ("nosuch", None)):
        for ask in (
            lambda: ol.infer(y, x, {**values, name: 1.0}),  # noqa: B023
            lambda: ol.infer(z, {**values, name: 1.0}),  # noqa: B023  z is fed by itself
            lambda: ol.save_model(y, {**values, name: 1.0}, path),  # noqa: B023
            lambda: ol.save_model([y, z], {**values, name: 1.0}, path),  # noqa: B023
        ):
            with pytest.raises(ol.UndefinedVarError) as raised:
                ask()
            assert raised.value.message == f'the program has no parameter or input "{name}"'
            assert raised.value.hint == hint
            assert raised.value.given[0].startswith("there are: fc")
    result = ol.train(cost, x, progress=False)
    assert ol.infer(y, x, {name: result.parameters[name] for name in result.parameters}).shape == (4, 2), "all that a run left"


def test_a_model_that_is_cut_to_a_target_keeps_its_label(tmp_path):
    with ol.Program() as program:
        hidden = ol.layer.fc(ol.layer.data("x", shape=[3]), 2, name="hidden")
        y = ol.layer.fc(hidden, 1)
    scope = ol.init(program, ol.Scope())
    ol.save_model({"features": hidden, "score": y}, scope, tmp_path / "model")
    for asked, label in (("features", "features"), ("hidden.out", "hidden.out"), (hidden, "hidden.out")):
        assert list(ol.load_model(asked, tmp_path / "model").program.targets) == [label]
