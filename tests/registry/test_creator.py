"""Calling an operator on variables: what is refused, in which words, and that the program is then as it was."""

import contextlib

import pytest

import oarlock as ol
from oarlock.ir.location import here


@contextlib.contextmanager
def refused(error, *lines, hint=None):
    """Expect `error` with just this text, below whose first line it says where in this file it stands."""
    place = here()
    with pytest.raises(error) as caught:
        yield
    location = caught.value.location
    assert location.file == place.file
    message, *rest = lines
    expected = [message, f"  {location}", *rest]
    if hint:
        expected.append(f"  Try: {hint}    (oarlock explain {error.__name__})")
    assert str(caught.value) == "\n".join(expected)


@pytest.fixture
def program():
    with ol.Program() as program:
        ol.layer.data("x", shape=[3])
        ol.layer.data("ids", shape=[], dtype="int64")
        program.main.new_var("w", ol.DType.FLOAT32, (4, 5), persistable=True, parameter=True, trainable=True)
        yield program


@pytest.fixture
def unchanged(program):
    before = program.to_bytes(), program.revision
    yield
    assert (program.to_bytes(), program.revision) == before


LINEAR = "  linear(x: inexact[*b k], w: inexact[k n], bias?: inexact[n]) -> out: inexact[*b n]"


def declared(name, program):
    location = program.main.var(name).location
    return f"{location.file}:{location.line}"


@pytest.mark.usefixtures("unchanged")
def test_shapes_that_do_not_fit(program):
    x, w = program.main.var("x"), program.main.var("w")
    with refused(
        ol.ShapeError,
        "linear: dimension k is 3 in x but 4 in w",
        LINEAR,
        f'      x = "x"   float32[n, 3]   fed; declared at {declared("x", program)}',
        f'      w = "w"   float32[4, 5]   parameter; created at {declared("w", program)}',
        hint='"w" does not fit this input: check its shape, or use another parameter name',
    ):
        ol.op.linear(x, w)


@pytest.mark.usefixtures("unchanged")
def test_a_dtype_that_does_not_fit(program):
    ids = program.main.var("ids")
    with refused(
        ol.DTypeError,
        "relu: x must be a float, not int64",
        "  relu(x: float[*b]) -> y: float[*b]",
        f'      x = "ids"   int64[n]   fed; declared at {declared("ids", program)}',
        hint='use ol.op.cast(x, dtype="float32")',
    ):
        ol.op.relu(ids)


@pytest.mark.usefixtures("unchanged")
def test_an_attribute_that_does_not_fit(program):
    x = program.main.var("x")
    with refused(
        ol.ArgumentError,
        "mean: attribute axis must be int | tuple[int, ...], not 'rows'",
        "  mean(x: inexact[...s], axis=None, keepdim=False) -> y: inexact[...s-{axis}]",
        f'      x = "x"   float32[n, 3]   fed; declared at {declared("x", program)}',
    ):
        ol.op.mean(x, axis="rows")


@pytest.mark.usefixtures("unchanged")
def test_an_attribute_that_there_is_not(program):
    x = program.main.var("x")
    with refused(
        ol.ArgumentError,
        "mean: no attribute or input axes; its attributes: axis, keepdim",
        "  mean(x: inexact[...s], axis=None, keepdim=False) -> y: inexact[...s-{axis}]",
        f'      x = "x"   float32[n, 3]   fed; declared at {declared("x", program)}',
        '  Try: did you mean "axis"?    (oarlock explain ArgumentError)',
    ):
        ol.op.mean(x, axes=1)


@pytest.mark.usefixtures("unchanged")
def test_an_input_that_is_missing(program):
    with refused(ol.ArgumentError, "linear: w is missing", LINEAR):
        ol.op.linear(program.main.var("x"))


@pytest.mark.usefixtures("unchanged")
def test_more_inputs_than_it_takes(program):
    x = program.main.var("x")
    with refused(ol.ArgumentError, "relu: 2 inputs given, but it takes 1", "  relu(x: float[*b]) -> y: float[*b]"):
        ol.op.relu(x, x)


@pytest.mark.usefixtures("unchanged")
def test_an_input_given_twice(program):
    x = program.main.var("x")
    with refused(ol.ArgumentError, "linear: x is given twice", LINEAR):
        ol.op.linear(x, x=x)


@pytest.mark.parametrize(("value", "text"), [(3.0, "float 3.0"), ("x", "str 'x'"), ([1, 2], "list [1, 2]")])
def test_an_input_that_is_no_variable(program, value, text):
    with refused(ol.ArgumentError, f"relu: x must be a variable of the program, not {text}", "  relu(x: float[*b]) -> y: float[*b]"):
        ol.op.relu(value)


def test_an_item_of_many_that_is_no_variable(program):
    with refused(ol.ArgumentError, "concat: xs must be a variable of the program, not float 1.0", "  concat(*xs: T, axis=0) -> y: T"):
        ol.op.concat([program.main.var("x"), 1.0])


@pytest.mark.usefixtures("unchanged")
def test_variables_of_two_programs(program):
    x = program.main.var("x")
    with ol.Program():
        y = ol.layer.data("y", shape=[3])
    with refused(
        ol.ProgramError,
        "add: its inputs belong to 2 programs",
        f'      "x"   float32[n, 3]   fed; declared at {declared("x", program)}',
        f'      "y"   float32[n, 3]   fed; declared at {y.location.file}:{y.location.line}',
        hint="build a model inside one `with ol.Program() as program:`",
    ):
        ol.op.add(x, y)


def test_a_variable_that_stayed_inside_its_block(program):
    loop = ol.rnn()
    with loop.step():
        inside = ol.op.relu(loop.step_input(program.main.var("x")))
        loop.output(inside)
    loop()
    with refused(
        ol.UndefinedVarError,
        'tanh: "relu_0" is not visible in main; it belongs to main/rnn_0.body',
        f'      "relu_0"   float32[3]   from relu at {inside.location.file}:{inside.location.line}',
        hint="return it from its block as an output",
    ):
        ol.op.tanh(inside)


def test_an_op_joins_the_innermost_open_block_of_its_inputs_program(program):
    x = program.main.var("x")
    loop = ol.rnn()
    with loop.step():
        step = loop.step_input(x)
        inside = ol.op.relu(x)
        with ol.Program() as other:
            y = ol.op.relu(ol.layer.data("y", shape=[]))
            still_inside = ol.op.tanh(step)
    assert (inside.path, y.block, still_inside.path) == ("main/rnn_0.body/relu_0", other.main, "main/rnn_0.body/tanh_0")
    assert ol.op.relu(x).path == "main/relu_1"


def test_an_op_without_inputs_joins_the_block_being_filled(program):
    filled = ol.op.full(shape=(2,), value=1.0)
    assert filled.block is program.main


def test_inputs_are_given_by_position_or_by_name(program):
    x = program.main.var("x")
    w = program.main.new_var("v", ol.DType.FLOAT32, (3, 2), persistable=True)
    ol.op.linear(w=w, x=x)
    ol.op.linear(x, w=w, bias=None)
    first, second = program.main.ops
    assert first.inputs == second.inputs == {"x": (x,), "w": (w,)}


def test_defaults_are_filled_in_and_what_is_none_is_left_out(program):
    ol.op.mean(program.main.var("x"))
    assert program.main.ops[0].attributes == {"keepdim": False}


def test_results_are_named_after_the_operator_or_as_the_caller_says(program):
    x, ids = program.main.var("x"), program.main.var("ids")
    assert ol.op.relu(x).name == "relu_0"
    assert ol.op.relu(x, name="hidden").name == "hidden"
    loss = ol.op.softmax_with_cross_entropy(x, ids, name="ce")
    assert loss.name == "ce.loss"
    assert [var.name for var in loss.op.writes] == ["ce.loss", "ce.softmax"]


def test_an_intermediate_output_is_not_returned(program):
    loss = ol.op.softmax_with_cross_entropy(program.main.var("x"), program.main.var("ids"))
    assert loss.type_text == "float32[n]"


def test_python_operators_append_ops(program):
    x = program.main.var("x")
    ids = program.main.var("ids")
    _ = x + 1, 1 + x, x - x, 2 * x, x / 2, -x, x > 0, x <= x, ids + 1
    kinds = [op.type for op in program.main.ops if op.type != "full"]
    assert kinds == ["add", "add", "subtract", "multiply", "divide", "neg", "greater", "less_equal", "add"]


def test_a_variable_is_never_true_or_false(program):
    x = program.main.var("x")
    with pytest.raises(TypeError, match='^"greater_0" has no value while the program is being built, so Python cannot branch on it'):
        _ = 1 if x > 0 else 2


def test_variables_in_a_set_are_told_apart_by_identity(program):
    x = program.main.var("x")
    assert len({x, x, ol.op.assign(x)}) == 2


def test_what_does_not_combine_is_said_so(program):
    x = program.main.var("x")
    with refused(
        ol.ArgumentError,
        "\"x\" and str 'a' do not combine; numbers and variables do",
        f'      "x"   float32[n, 3]   fed; declared at {declared("x", program)}',
    ):
        _ = x + "a"
