"""Layers with parameters: their shapes, their names, what they compute, and who shares them."""

import numpy
import pytest
import torch
from tolerances import LAYERS

import oarlock as ol


def run(output: ol.Var, feed: dict[str, numpy.ndarray]) -> tuple[torch.Tensor, ol.Scope]:
    """The result of a layer with its first parameters, and these."""
    scope = ol.init(output.block.program, ol.Scope())
    (value,) = ol.Executor().run(output.block.program, feed, [output], scope=scope)
    return torch.from_numpy(value), scope


def require_close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=LAYERS[0], atol=LAYERS[1])


def random_array(*shape: int) -> numpy.ndarray:
    return numpy.random.default_rng(0).standard_normal(shape)


def parameters(program: ol.Program) -> dict[str, tuple[int, ...]]:
    return {var.name: var.shape for var in program.parameters()}


# fc


def test_a_dense_layer_is_rows_times_a_matrix_plus_a_bias():
    with ol.Program() as program:
        output = ol.layer.fc(ol.layer.data("x", shape=[3], dtype="float64"), 5, initializer=ol.initializer.uniform(-1.0, 1.0))
    assert parameters(program) == {"fc_0.w": (3, 5), "fc_0.b": (5,)}
    assert (output.name, output.shape, str(output.dtype)) == ("fc_0.out", ("n", 5), "float64")
    x = random_array(4, 3)
    scope = ol.init(program, ol.Scope())
    scope.set("fc_0.b", random_array(5))
    (value,) = ol.Executor().run(program, {"x": x}, [output], scope=scope)
    require_close(torch.from_numpy(value), torch.from_numpy(x) @ scope["fc_0.w"] + scope["fc_0.b"])


def test_a_dense_layer_contracts_the_last_dimension_and_passes_the_others_through():
    with ol.Program():
        output = ol.layer.fc(ol.layer.data("x", shape=["n", 7, 3], dtype="float64", batch="t"), 5)
    assert output.shape == ("t", "n", 7, 5)
    x = random_array(2, 4, 7, 3)
    value, scope = run(output, {"x": x})
    require_close(value, torch.from_numpy(x) @ scope["fc_0.w"])


@pytest.mark.parametrize("act", ["relu", "sigmoid", "tanh", "softmax"])
def test_an_activation_follows_the_layer(act):
    with ol.Program():
        output = ol.layer.fc(ol.layer.data("x", shape=[3], dtype="float64"), 5, act=act)
    x = random_array(4, 3)
    value, scope = run(output, {"x": x})
    expected = torch.from_numpy(x) @ scope["fc_0.w"]
    require_close(value, torch.softmax(expected, -1) if act == "softmax" else getattr(torch, act)(expected))


def test_a_layer_goes_without_a_bias():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1, 4, 4])
        ol.layer.conv2d(x, filters=2, size=3, bias=False)
        ol.layer.fc(ol.layer.flatten(x), 5, bias=False)
    assert parameters(program) == {"conv2d_0.w": (2, 1, 3, 3), "fc_0.w": (16, 5)}


def test_the_names_of_parameters_may_be_given_and_shared():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        ol.layer.fc(ol.layer.fc(x, 3, params=["weight", "bias"]), 3, params=["weight"], bias=False)
    assert parameters(program) == {"weight": (3, 3), "bias": (3,)}


def test_the_size_is_given_once():
    with ol.Program():
        x = ol.layer.data("x", shape=[3])
        assert ol.layer.fc(x, output_size=5).shape == ("n", 5)
        for sizes in ({}, {"size": 5, "output_size": 5}):
            with pytest.raises(ol.ArgumentError) as raised:
                ol.layer.fc(x, **sizes)
            assert raised.value.message == "fc: it takes exactly one size"


# embedding


def test_an_embedding_is_the_rows_of_a_table_for_ids_of_any_rank():
    with ol.Program() as program:
        ids = ol.layer.data("ids", shape=[3], dtype="int64")
        output = ol.layer.embedding(ids, size=(7, 4), dtype="float64")
        one = ol.layer.embedding(ol.layer.data("id", shape=[], dtype="int64", batch=None), (7, 4), name="embedding_0", dtype="float64")
    assert parameters(program) == {"embedding_0.w": (7, 4)}
    assert (output.name, output.shape, str(output.dtype)) == ("embedding_0.out", ("n", 3, 4), "float64")
    assert (one.name, one.shape) == ("embedding_0.out_0", (4,))
    scope = ol.init(program, ol.Scope())
    table = torch.as_tensor(scope["embedding_0.w"])
    for numbers in ([[6, 0, 6], [1, 2, 3]], numpy.zeros((0, 3), "int64")):
        feed = {"ids": numpy.array(numbers), "id": numpy.array(5)}
        many, single = (torch.from_numpy(value) for value in ol.Executor().run(program, feed, [output, one], scope=scope))
        assert torch.equal(many, table[torch.from_numpy(feed["ids"])])
        assert torch.equal(single, table[5])


def test_an_embedding_starts_normal_of_variance_one_and_learns_only_the_rows_that_were_asked_for():
    with ol.Program() as program:
        output = ol.layer.embedding(ol.layer.data("ids", shape=[], dtype="int64"), size=(500, 40), params=["words"])
        ((words, gradient),) = ol.append_backward(ol.op.reduce_sum(output))
    assert (words.name, gradient.shape) == ("words", (500, 40))
    scope = ol.init(program, ol.Scope())
    table = torch.as_tensor(scope["words"])
    assert abs(float(table.mean())) < 0.05
    assert abs(float(table.std()) - 1.0) < 0.05
    (learnt,) = ol.Executor().run(program, {"ids": numpy.array([3, 499, 3])}, [gradient], scope=scope)
    expected = numpy.zeros((500, 40), "float32")
    expected[3], expected[499] = 2.0, 1.0
    assert numpy.array_equal(learnt, expected)


def test_embeddings_share_a_table_by_its_name_and_start_as_they_are_told():
    with ol.Program() as program:
        first, second = (ol.layer.data(name, shape=[], dtype="int64") for name in ("first", "second"))
        ol.layer.embedding(first, (5, 2), params=["words"], initializer=ol.initializer.constant(3.0))
        ol.layer.embedding(second, (5, 2), params=["words"])
        with pytest.raises(ol.ShapeError) as raised:
            ol.layer.embedding(second, (6, 2), params=["words"])
    assert parameters(program) == {"words": (5, 2)}
    assert raised.value.message == '"words" is needed as float32[6, 2], but is already declared differently'
    assert ol.init(program, ol.Scope())["words"].tolist() == [[3.0, 3.0]] * 5


def test_an_id_that_is_no_row_of_the_table_fails_at_the_line_of_the_layer():
    with ol.Program() as program:
        output = ol.layer.embedding(ol.layer.data("ids", shape=[], dtype="int64"), size=(7, 4))
    with pytest.raises(ol.KernelError) as raised:
        run(output, {"ids": numpy.array([0, 7])})
    assert raised.value.message == "gather: row 7 is out of range: x has 7 rows, numbered from 0"
    assert raised.value.location == program.main.ops[0].location


@pytest.mark.parametrize(
    ("layer", "error", "message"),
    [
        (lambda x: ol.layer.embedding(3, (7, 4)), ol.ArgumentError, "embedding: ids must be a variable of a program, not int 3"),
        (lambda x: ol.layer.embedding(x, 7), ol.ArgumentError, "embedding: size is the number of rows and their length, not 7"),
        (lambda x: ol.layer.embedding(x, (0, 4)), ol.ArgumentError, "embedding: the number of rows must be an integer >= 1, not 0"),
        (lambda x: ol.layer.embedding(x, (7, "4")), ol.ArgumentError, "embedding: the length of a row must be an integer >= 1, not '4'"),
        (lambda x: ol.layer.embedding(x, (7, 4), params=["a", "b"]), ol.ArgumentError, "embedding: params must name 1 parameter, not 2"),
        (lambda x: ol.layer.embedding(x, (7, 4), dtype="int64"), ol.DTypeError, "embedding: dtype is a float, not int64"),
        (lambda x: ol.layer.embedding(x, (7, 4)), ol.DTypeError, "embedding: ids are int64, not float32"),
    ],
)
def test_an_embedding_that_makes_no_sense_is_refused(layer, error, message):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], dtype="float32" if "ids are" in message else "int64")
        with pytest.raises(error) as raised:
            layer(x)
        assert raised.value.message == message
        assert raised.value.location.text, "it names the line"
        assert program.parameters() == []


def test_an_embedding_of_ids_that_are_not_visible_leaves_no_parameter():
    with ol.Program() as program:
        ids = ol.layer.data("ids", shape=["n"], dtype="int64", batch="t")
        rnn = ol.rnn()
        with rnn.step():
            inside = rnn.step_input(ids)
            rnn.output(inside)
        rnn()
        with pytest.raises(ol.UndefinedVarError):
            ol.layer.embedding(inside, (7, 4))
    assert program.parameters() == []


# conv2d and pool2d


@pytest.mark.parametrize(
    ("window", "out"),
    [
        ({"size": 3}, (6, 5)),
        ({"size": 3, "padding": 1}, (8, 7)),
        ({"size": (3, 2), "stride": 2}, (3, 3)),
        ({"size": (2, 3), "stride": (3, 1), "padding": (0, 2)}, (3, 9)),
        ({"size": (8, 7)}, (1, 1)),
    ],
    ids=str,
)
def test_a_convolution_is_that_of_pytorch(window, out):
    with ol.Program() as program:
        output = ol.layer.conv2d(ol.layer.data("image", shape=[2, 8, 7], dtype="float64"), filters=3, **window)
    assert output.shape == ("n", 3, *out)
    size = window["size"] if isinstance(window["size"], tuple) else (window["size"],) * 2
    assert parameters(program) == {"conv2d_0.w": (3, 2, *size), "conv2d_0.b": (3,)}
    image = random_array(4, 2, 8, 7)
    value, scope = run(output, {"image": image})
    options = {name: window[name] for name in ("stride", "padding") if name in window}
    require_close(value, torch.nn.functional.conv2d(torch.from_numpy(image), scope["conv2d_0.w"], scope["conv2d_0.b"], **options))


@pytest.mark.parametrize("mode", ["max", "average"])
@pytest.mark.parametrize(
    "window", [{"size": 2}, {"size": (2, 3)}, {"size": 3, "stride": 2, "padding": 1}, {"size": 2, "stride": (1, 2)}], ids=str
)
def test_pooling_is_that_of_pytorch(mode, window):
    with ol.Program() as program:
        output = ol.layer.pool2d(ol.layer.data("image", shape=[2, 8, 7], dtype="float64"), mode=mode, **window)
    assert parameters(program) == {}
    image = random_array(4, 2, 8, 7)
    value, _ = run(output, {"image": image})
    pool = {"max": torch.nn.functional.max_pool2d, "average": torch.nn.functional.avg_pool2d}[mode]
    expected = pool(torch.from_numpy(image), window["size"], window.get("stride"), window.get("padding", 0))
    assert output.shape == ("n", *expected.shape[1:])
    require_close(value, expected)


WINDOW = "must be a number, or two for height and width, not"


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (lambda x: ol.layer.pool2d(x, size=2, mode="mean"), "pool2d: mode must be 'max' or 'average', not 'mean'"),
        (lambda x: ol.layer.pool2d(x, size=(2, 2, 2)), f"size {WINDOW} (2, 2, 2)"),
        (lambda x: ol.layer.conv2d(x, filters=2, size=(2, 1.5)), f"size {WINDOW} (2, 1.5)"),
        (lambda x: ol.layer.conv2d(x, filters=2, size=2, stride=(1, 2, 3)), f"stride {WINDOW} (1, 2, 3)"),
        (lambda x: ol.layer.conv2d(x, filters=2, size=2, padding="some"), f"padding {WINDOW} 'some'"),
        (lambda x: ol.layer.conv2d(x, filters=0, size=3), "conv2d: filters must be an integer >= 1, not 0"),
        (lambda x: ol.layer.conv2d("x", filters=2, size=2), "conv2d: input must be a variable of a program, not str 'x'"),
        (lambda x: ol.layer.fc(0.5, 10), "fc: input must be a variable of a program, not float 0.5"),
        (lambda x: ol.layer.fc(x, 0), "fc: size must be an integer >= 1, not 0"),
        (lambda x: ol.layer.fc(x, 2.5), "fc: size must be an integer >= 1, not 2.5"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused(layer, message):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1, 8, 8])
        with pytest.raises(ol.ArgumentError) as raised:
            layer(x)
        assert raised.value.message == message
        assert raised.value.location.text, "it names the line"
        assert program.parameters() == []
        assert program.main.ops == []


def test_a_window_larger_than_the_image_is_refused():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1, 4, 4])
        with pytest.raises(ol.ShapeError):
            ol.layer.conv2d(x, filters=2, size=5)
        assert program.main.ops == []


# Names, and who shares


def test_layers_are_numbered_in_the_order_of_the_program():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        first = ol.layer.fc(x, 3)
        named = ol.layer.fc(first, 3, name="middle")
        last = ol.layer.fc(named, 3)
    assert [first.name, named.name, last.name] == ["fc_0.out", "middle.out", "fc_1.out"]
    assert list(parameters(program)) == ["fc_0.w", "fc_0.b", "middle.w", "middle.b", "fc_1.w", "fc_1.b"]


def test_a_name_that_a_user_took_is_not_given_again():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        ol.layer.fc(x, 3, name="fc_0")
        ol.layer.fc(x, 3)
    assert list(parameters(program)) == ["fc_0.w", "fc_0.b", "fc_1.w", "fc_1.b"]


def test_two_programs_number_their_layers_apart():
    names = []
    for _ in range(2):
        with ol.Program() as program:
            ol.layer.fc(ol.layer.data("x", shape=[3]), 3)
        names.append(list(program.main.vars))
    assert names[0] == names[1]


def test_layers_of_one_name_share_their_parameters():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3], dtype="float64")
        once = ol.layer.fc(x, 3, name="shared")
        twice = ol.layer.fc(once, 3, name="shared")
    assert parameters(program) == {"shared.w": (3, 3), "shared.b": (3,)}
    assert once.name != twice.name
    value, scope = run(twice, {"x": random_array(4, 3)})
    require_close(value, torch.from_numpy(random_array(4, 3)) @ scope["shared.w"] @ scope["shared.w"])


def test_a_shared_parameter_is_not_shared_with_another_dtype():
    with ol.Program():
        ol.layer.fc(ol.layer.data("x", shape=[3]), 3, name="shared")
        with pytest.raises(ol.ShapeError) as raised:
            ol.layer.fc(ol.layer.data("y", shape=[3], dtype="float64"), 3, name="shared")
    assert raised.value.message == '"shared.w" is needed as float64[3, 3], but is already declared differently'


def test_parameters_of_a_layer_inside_a_loop_belong_to_the_main_block():
    with ol.Program() as program:
        rows = ol.layer.data("rows", shape=["n", 3], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            hidden = ol.layer.fc(rnn.step_input(rows), 4)
            rnn.output(hidden)
        rnn()
    assert parameters(program) == {"fc_0.w": (3, 4), "fc_0.b": (4,)}
    assert hidden.block.path == "main/rnn_0.body"


def test_losses_and_accuracy_are_those_of_pytorch():
    logits, label = random_array(6, 4), numpy.array([0, 3, 1, 1, 2, 0])
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4], dtype="float64")
        y = ol.layer.data("y", shape=[], dtype="int64")
        z = ol.layer.data("z", shape=[4], dtype="float64")
        outputs = [ol.layer.softmax_with_cross_entropy(x, y), ol.layer.cross_entropy(x, y), ol.layer.mse(x, z), ol.layer.accuracy(x, y)]
    feed = {"x": logits, "y": label, "z": logits[::-1].copy()}
    values = [torch.from_numpy(numpy.asarray(value)) for value in ol.Executor().run(program, feed, outputs, scope=ol.Scope())]
    tensors = {name: torch.from_numpy(array) for name, array in feed.items()}
    functional = torch.nn.functional
    require_close(values[0], functional.cross_entropy(tensors["x"], tensors["y"], reduction="none"))
    require_close(values[1], functional.cross_entropy(tensors["x"], tensors["y"]))
    require_close(values[2], functional.mse_loss(tensors["x"], tensors["z"]))
    assert float(values[3]) == float((tensors["x"].argmax(1) == tensors["y"]).float().mean())


@pytest.mark.parametrize(
    "layer",
    [
        lambda x: ol.layer.conv2d(x, filters=2, size=9),
        lambda x: ol.layer.conv2d(x, filters=2, size=3, act="rely"),
        lambda x: ol.layer.fc(ol.layer.flatten(x), 3, act="rely"),
        lambda x: ol.layer.fc(ol.op.cast(x, dtype="int64"), 3),
    ],
)
def test_a_layer_that_is_refused_leaves_no_parameter(layer):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1, 8, 8])
        with pytest.raises(ol.OarlockError):
            layer(x)
        assert program.parameters() == []
        ol.layer.fc(x, 2, name="conv2d_0")


# A parameter by itself


def test_a_parameter_of_ones_own_is_declared_in_the_main_block_wherever_it_is_asked_for():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["n", 2], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(rnn.step_input(x) @ ol.layer.create_parameter([2, 3], name="w", initializer=ol.initializer.constant(0.5)))
        rnn()
        again = ol.layer.create_parameter([2, 3], name="w")
        other = ol.layer.create_parameter([4], dtype="float64", trainable=False)
    assert parameters(program) == {"w": (2, 3), "parameter_0": (4,)}
    assert again.block is program.main
    assert (str(other.dtype), other.trainable) == ("float64", False)
    assert (ol.init(program, ol.Scope())["w"] == 0.5).all()


def test_a_parameter_is_refused_what_no_parameter_has():
    with ol.Program() as program:
        with pytest.raises(ol.DTypeError) as raised:
            ol.layer.create_parameter([2], dtype="int64")
        assert raised.value.message == "create_parameter: dtype is a float or complex, not int64"
        with pytest.raises(ol.ArgumentError) as refused:
            ol.layer.create_parameter(["n", 2])
        assert refused.value.message == "create_parameter: a size must be an integer >= 1, not 'n'"
    assert program.persistables() == []


# Options of parameters


def test_options_say_how_a_parameter_starts_is_called_and_is_updated():
    options = ol.layer.ParameterOptions(
        initializer=ol.initializer.constant(0.5), name="shared", trainable=False, rate_factor=0.1, weight_decay=0.0, l1=0.2, clip_norm=1.0
    )
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        first = ol.layer.fc(x, 3, weight=options, bias=ol.initializer.ones())
        ol.layer.linear(first, 3, weight=options, bias=False)
    assert parameters(program) == {"shared": (3, 3), "fc_0.b": (3,)}
    shared = program.main.vars["shared"]
    assert not shared.trainable
    assert shared.update_settings.stated == {"rate_factor": 0.1, "weight_decay": 0.0, "l1": 0.2, "clip_norm": 1.0}
    scope = ol.init(program, ol.Scope())
    assert (scope["shared"] == 0.5).all()
    assert (scope["fc_0.b"] == 1.0).all()


LAYERS_WITH_WEIGHTS = {
    "fc": lambda x, given: ol.layer.fc(ol.layer.flatten(x), 3, weight=given),
    "linear": lambda x, given: ol.layer.linear(x, 3, weight=given),
    "bilinear": lambda x, given: ol.layer.bilinear(x, x, 3, weight=given),
    "conv2d": lambda x, given: ol.layer.conv2d(x, 2, 3, weight=given),
    "conv_transpose2d": lambda x, given: ol.layer.conv_transpose2d(x, 2, 3, weight=given),
    "depthwise_conv2d": lambda x, given: ol.layer.depthwise_conv2d(x, 3, weight=given),
    "separable_conv2d": lambda x, given: ol.layer.separable_conv2d(x, 2, 3, pointwise=given),
    "embedding": lambda x, given: ol.layer.embedding(ol.op.cast(x, dtype="int64"), (5, 4), weight=given),
    "layer_norm": lambda x, given: ol.layer.layer_norm(x, scale=given),
    "rms_norm": lambda x, given: ol.layer.rms_norm(x, scale=given),
    "group_norm": lambda x, given: ol.layer.group_norm(x, 1, bias=given),
    "batch_norm": lambda x, given: ol.layer.batch_norm(x, scale=given),
    "nce": lambda x, given: ol.layer.nce(ol.layer.flatten(x), ol.op.argmax(ol.layer.flatten(x)), 9, weight=given),
    "hierarchical_softmax": lambda x, given: ol.layer.hierarchical_softmax(
        ol.layer.flatten(x), ol.op.argmax(ol.layer.flatten(x)), 9, bias=given
    ),
    "lstm": lambda x, given: ol.layer.lstm(ol.layer.flatten(x, start=2), 3, recurrent=given),
    "gru_cell": lambda x, given: ol.layer.gru_cell(ol.layer.flatten(x), ol.layer.flatten(x), bias=given),
    "prelu": lambda x, given: ol.layer.prelu(x, slope=given),
    "maxout": lambda x, given: ol.layer.maxout(x, 3, weight=given),
    "highway": lambda x, given: ol.layer.highway(x, gate_weight=given),
    "learned_positions": lambda x, given: ol.layer.learned_positions(x, 9, weight=given),
    "embedding_bag": lambda x, given: ol.layer.embedding_bag(ol.op.cast(x, dtype="int64"), (5, 4), weight=given),
    "create_parameter": lambda x, given: ol.layer.create_parameter([3], options=given),
}


@pytest.mark.parametrize("name", LAYERS_WITH_WEIGHTS)
def test_a_layer_takes_options_for_its_parameters(name):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2, 8, 8])
        LAYERS_WITH_WEIGHTS[name](x, ol.layer.ParameterOptions(name="mine", trainable=False, initializer=ol.initializer.constant(0.25)))
    assert [var.name for var in program.parameters() if not var.trainable] == ["mine"]
    assert (ol.init(program, ol.Scope())["mine"] == 0.25).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initializer": 0.5}, "ParameterOptions: initializer must be a rule, not 0.5"),
        ({"trainable": None}, "ParameterOptions: trainable must be True or False, not None"),
        ({"rate_factor": -1.0}, "update settings: rate_factor must be a finite number >= 0, not -1.0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ol.ArgumentError) as raised:
        ol.layer.ParameterOptions(**options)
    assert raised.value.message == message


def test_options_go_to_all_parameters_of_a_layer_where_they_name_none():
    frozen = ol.layer.ParameterOptions(trainable=False)
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4, 8])
        ol.layer.crf(x, ol.op.argmax(x), weight=frozen)
        ol.layer.transformer_encoder(x, layers=1, heads=2, weight=frozen)
    taught = [var.name for var in program.parameters() if var.trainable]
    assert taught == [
        f"transformer_encoder_0.0.{name}"
        for name in (
            "attention.query.b", "attention.key.b", "attention.value.b", "attention.output.b", "norm1.scale", "norm1.bias", "linear1.b",
            "linear2.b", "norm2.scale", "norm2.bias",
        )
    ]  # fmt: skip


def test_what_are_no_options_is_refused_and_declares_nothing():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        with pytest.raises(ol.ArgumentError) as raised:
            ol.layer.fc(x, 3, bias=0.5)
        assert raised.value.message == "fc_0.b must be ParameterOptions or an initializer, not 0.5"
        assert program.parameters() == []


def test_a_padding_that_makes_no_sense_is_refused():
    with ol.Program():
        x = ol.layer.data("x", shape=[4, 8, 8])
        for how, message in (
            ({"padding": "same", "stride": 2}, 'conv2d: the padding "same" requires a stride of 1, not (2, 2)'),
            ({"padding": -1}, "padding must be at least 0, not -1"),
            ({"groups": 3}, "conv2d: 3 groups do not divide 4 channels"),
            ({"padding_mode": "mirror"}, "conv2d: padding_mode is one of zeros, reflect, replicate, circular, not 'mirror'"),
        ):
            with pytest.raises(ol.ArgumentError) as raised:
                ol.layer.conv2d(x, 3, 3, **how)
            assert raised.value.message == message


def test_an_optimizer_updates_each_parameter_by_its_options():
    options = ol.layer.ParameterOptions(
        initializer=ol.initializer.constant(0.5), rate_factor=0.5, l1=0.1, l2=0.2, clip_value=0.25, weight_decay=0.0
    )
    frozen = ol.layer.ParameterOptions(initializer=ol.initializer.constant(0.5), trainable=False)
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1], dtype="float64")
        cost = ol.layer.mean(ol.layer.fc(x, 1, weight=options, bias=frozen, name="mine") + ol.layer.fc(x, 1, name="other", bias=False))
        ol.optimizer.SGD(0.1).minimize(cost)
    scope = ol.init(program, ol.Scope())
    before = scope["other.w"].item()
    ol.Executor().run(program, {"x": numpy.full((4, 1), 3.0)}, [cost], scope=scope)
    assert scope["mine.w"].item() == pytest.approx(0.5 - 0.1 * 0.5 * (0.25 + 0.1 + 0.2 * 0.5), abs=1e-15)
    assert scope["mine.b"].item() == 0.5
    assert scope["other.w"].item() == pytest.approx(before - 0.1 * 3.0, abs=1e-15)
