"""The messages for programs that cannot be written: the whole text, of which line 1 is the first of `model.py`."""

import textwrap
from pathlib import Path

import pytest
from user_scripts import last_words

import oarlock as ol

MAX_POOL = (
    "max_pool2d(x: float[n c! h w], size, stride, padding=(0, 0), dilation=(1, 1), ceil_mode=False)"
    " -> y: float[n c oh ow], index: int64[n c oh ow]"
)


@pytest.fixture
def require(tmp_path: Path):
    """Compare the whole of an error's text."""

    def compare(script: str, expected: str) -> None:
        assert last_words(script, tmp_path) == textwrap.dedent(expected).lstrip("\n")

    return compare


def test_two_sizes_that_differ(require):
    require(
        """
        import oarlock as ol
        def classifier(image, small):
            hidden = ol.layer.fc(small, size=128, name="first")
            return ol.op.linear(image, hidden.block.var("first.w"))
        with ol.Program():
            image = ol.layer.data("image", shape=[784])
            small = ol.layer.data("small", shape=[748])
            classifier(image, small)
        """,
        """
        oarlock.ShapeError: linear: dimension k is 784 in x but 748 in w
          model.py:4 in classifier      return ol.op.linear(image, hidden.block.var("first.w"))
          linear(x: inexact[*b k], w: inexact[k n], bias?: inexact[n]) -> out: inexact[*b n]
              x = "image"   float32[n, 784]   fed; declared at model.py:6
              w = "first.w"   float32[748, 128]   parameter; created at model.py:3
          Try: "first.w" does not fit this input: check its shape, or use another parameter name    (oarlock explain ShapeError)
        """,
    )


def test_two_layers_that_cannot_share_a_parameter(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            image = ol.layer.data("image", shape=[784])
            hidden = ol.layer.fc(image, size=128, name="first")
            hidden = ol.layer.fc(hidden, size=128, name="first")
        """,
        """
        oarlock.ShapeError: "first.w" is needed as float32[128, 128], but is already declared differently
          model.py:5      hidden = ol.layer.fc(hidden, size=128, name="first")
              "first.w"   float32[784, 128]   parameter; created at model.py:4
          Try: layers of one name share their parameters: give this layer another name or the same sizes    (oarlock explain ShapeError)
        """,
    )


def test_shapes_that_do_not_broadcast(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[3])
            y = ol.layer.data("y", shape=[4])
            z = x + y
        """,
        """
        oarlock.ShapeError: add: x [n, 3] and y [n, 4] do not broadcast: 3 and 4 are different sizes
          model.py:5      z = x + y
          add(x: number[*#s], y: number[*#s]) -> z: number[*#s]
              x = "x"   float32[n, 3]   fed; declared at model.py:3
              y = "y"   float32[n, 4]   fed; declared at model.py:4
        """,
    )


def test_two_symbols_are_two_sizes(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[3])
            y = ol.layer.data("y", shape=[3], batch="m")
            z = x * y
        """,
        """
        oarlock.ShapeError: multiply: x [n, 3] and y [m, 3] do not broadcast: n and m are different sizes
          model.py:5      z = x * y
          multiply(x: number[*#s], y: number[*#s]) -> z: number[*#s]
              x = "x"   float32[n, 3]   fed; declared at model.py:3
              y = "y"   float32[m, 3]   fed; declared at model.py:4
        """,
    )


def test_too_few_dimensions(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            image = ol.layer.data("image", shape=[64])
            hidden = ol.layer.pool2d(image, size=2)
        """,
        f"""
        oarlock.ShapeError: max_pool2d: x has 2 dimensions, but [n c! h w] needs 4
          model.py:4      hidden = ol.layer.pool2d(image, size=2)
          {MAX_POOL}
              x = "image"   float32[n, 64]   fed; declared at model.py:3
        """,
    )


def test_a_parameter_needs_a_number(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            words = ol.layer.data("words", shape=["t"])
            scores = ol.layer.fc(words, size=10)
        """,
        """
        oarlock.ShapeError: fc: the size of words along axis -1 is t, but a parameter needs a number
          model.py:4      scores = ol.layer.fc(words, size=10)
              "words"   float32[n, t]   fed; declared at model.py:3
          Try: give the size as a number where the input is declared    (oarlock explain ShapeError)
        """,
    )


def test_an_integer_where_a_float_is_needed(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            label = ol.layer.data("label", shape=[], dtype="int64")
            y = ol.layer.relu(label)
        """,
        """
        oarlock.DTypeError: relu: x must be a float, not int64
          model.py:4      y = ol.layer.relu(label)
          relu(x: float[*b]) -> y: float[*b]
              x = "label"   int64[n]   fed; declared at model.py:3
          Try: use ol.op.cast(x, dtype="float32")    (oarlock explain DTypeError)
        """,
    )


def test_two_dtypes_that_differ(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[3])
            y = ol.layer.data("y", shape=[3], dtype="float64")
            z = x + y
        """,
        """
        oarlock.DTypeError: add: y is float64, but x is float32; they must have the same dtype
          model.py:5      z = x + y
          add(x: number[*#s], y: number[*#s]) -> z: number[*#s]
              x = "x"   float32[n, 3]   fed; declared at model.py:3
              y = "y"   float64[n, 3]   fed; declared at model.py:4
        """,
    )


def test_a_fraction_that_integers_do_not_hold(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            age = ol.layer.data("age", shape=[], dtype="int64")
            old = age > 15.5
        """,
        """
        oarlock.DTypeError: "age" is int64, which cannot represent 15.5
          model.py:4      old = age > 15.5
              "age"   int64[n]   fed; declared at model.py:3
          Try: use ol.op.cast(x, dtype="float32") to convert it    (oarlock explain DTypeError)
        """,
    )


def test_a_dtype_that_does_not_exist(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[3], dtype="float23")
        """,
        """
        oarlock.DTypeError: 'float23' is not a dtype of Oarlock
          model.py:3      x = ol.layer.data("x", shape=[3], dtype="float23")
          one of float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, bool, complex64, complex128
        """,
    )


def test_two_programs_mixed(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[3])
        with ol.Program():
            y = ol.layer.data("y", shape=[3])
            z = x + y
        """,
        """
        oarlock.ProgramError: add: its inputs belong to 2 programs
          model.py:6      z = x + y
              "x"   float32[n, 3]   fed; declared at model.py:3
              "y"   float32[n, 3]   fed; declared at model.py:5
          Try: build a model inside one `with ol.Program() as program:`    (oarlock explain ProgramError)
        """,
    )


def test_a_name_used_twice(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[3])
            y = ol.layer.data("x", shape=[4])
        """,
        """
        oarlock.ProgramError: "x" is declared twice in main
          model.py:4      y = ol.layer.data("x", shape=[4])
              "x"   float32[n, 3]   fed; declared at model.py:3
          Try: rename one of them, or use the existing variable    (oarlock explain ProgramError)
        """,
    )


def test_a_name_that_is_none(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("my input", shape=[3])
        """,
        """
        oarlock.ProgramError: 'my input' cannot be a variable's name
          model.py:3      x = ol.layer.data("my input", shape=[3])
          a name has 1 to 256 of the characters A-Z a-z 0-9 _ . - and no '..'
        """,
    )


def test_an_input_that_is_missing(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[3])
            y = ol.op.linear(x)
        """,
        """
        oarlock.ArgumentError: linear: w is missing
          model.py:4      y = ol.op.linear(x)
          linear(x: inexact[*b k], w: inexact[k n], bias?: inexact[n]) -> out: inexact[*b n]
        """,
    )


def test_an_array_where_a_variable_is_needed(require):
    require(
        """
        import numpy
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[3])
            y = ol.op.linear(x, numpy.zeros((3, 200)))
        """,
        """
        oarlock.ArgumentError: linear: w must be a variable of the program, not ndarray float64[3, 200]
          model.py:5      y = ol.op.linear(x, numpy.zeros((3, 200)))
          linear(x: inexact[*b k], w: inexact[k n], bias?: inexact[n]) -> out: inexact[*b n]
        """,
    )


def test_an_array_does_not_add_up_with_a_variable_from_either_side(require):
    for expression in ("numpy.ones(3) + x", "x + numpy.ones(3)"):
        require(
            f"""
            import numpy
            import oarlock as ol
            with ol.Program():
                x = ol.layer.data("x", shape=[3])
                y = {expression}
            """,
            f"""
            oarlock.ArgumentError: "x" and ndarray float64[3] do not combine; numbers and variables do
              model.py:5      y = {expression}
                  "x"   float32[n, 3]   fed; declared at model.py:4
            """,
        )


def test_an_attribute_that_does_not_exist(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            image = ol.layer.data("image", shape=[1, 8, 8])
            y = ol.op.max_pool2d(image, siz=(2, 2))
        """,
        f"""
        oarlock.ArgumentError: max_pool2d: no attribute or input siz; its attributes: size, stride, padding, dilation, ceil_mode
          model.py:4      y = ol.op.max_pool2d(image, siz=(2, 2))
          {MAX_POOL}
              x = "image"   float32[n, 1, 8, 8]   fed; declared at model.py:3
          Try: did you mean "size"?    (oarlock explain ArgumentError)
        """,
    )


def test_an_attribute_of_the_wrong_kind(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[3])
            y = ol.layer.dropout(x, rate="half")
        """,
        """
        oarlock.ArgumentError: dropout: attribute rate must be float, not 'half'
          model.py:4      y = ol.layer.dropout(x, rate="half")
          dropout(x: float[...s], rate=0.5) -> y: float[...s], mask: float[...s]
              x = "x"   float32[n, 3]   fed; declared at model.py:3
        """,
    )


def test_an_activation_that_does_not_exist(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            x = ol.layer.data("x", shape=[3])
            y = ol.layer.fc(x, 10, act="rleu")
        """,
        """
        oarlock.ArgumentError: no activation is called 'rleu'
          model.py:4      y = ol.layer.fc(x, 10, act="rleu")
          the name of an activation, such as relu, sigmoid, softmax, tanh or gelu; or a function of one variable
          Try: did you mean "relu"?    (oarlock explain ArgumentError)
        """,
    )


def test_a_variable_of_a_block_inside(require):
    require(
        """
        import oarlock as ol
        def states(words):
            rnn = ol.rnn()
            with rnn.step():
                hidden = ol.layer.relu(rnn.step_input(words))
                rnn.output(hidden)
            rnn()
            return ol.layer.tanh(hidden)
        with ol.Program():
            states(ol.layer.data("words", shape=["n", 3], batch="t"))
        """,
        """
        oarlock.UndefinedVarError: tanh: "relu_0" is not visible in main; it belongs to main/rnn_0.body
          model.py:8 in states      return ol.layer.tanh(hidden)
              "relu_0"   float32[n, 3]   from relu at model.py:5
          Try: return it from its block as an output    (oarlock explain UndefinedVarError)
        """,
    )


def test_a_name_that_nothing_has(require):
    require(
        """
        import oarlock as ol
        with ol.Program() as program:
            ol.layer.data("image", shape=[3])
        x = program.main.var("imgae")
        """,
        """
        oarlock.UndefinedVarError: "imgae" is not visible in main
          model.py:4      x = program.main.var("imgae")
              there are: image
          Try: did you mean "image"?    (oarlock explain UndefinedVarError)
        """,
    )


def test_python_cannot_branch_on_a_variable(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            age = ol.layer.data("age", shape=[], dtype="int64")
            if age > 15:
                age = age * 2
        """,
        """
        oarlock.ArgumentError: "greater_0" has no value while the program is being built, so Python cannot branch on it
          model.py:4      if age > 15:
              "greater_0"   bool[n]   from greater at model.py:4
          Try: use ol.cond to branch on one bool, ol.ifelse to branch per row, ol.while_loop to repeat    (oarlock explain ArgumentError)
        """,
    )


def test_a_gradient_that_does_not_exist(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            label = ol.layer.data("label", shape=[], dtype="int64")
            predict = ol.layer.fc(ol.layer.data("x", shape=[3]), 10, act="softmax", name="out")
            accuracy = ol.layer.accuracy(predict, label)
            ol.optimizer.SGD().minimize(accuracy)
        """,
        """
        oarlock.GradientError: "accuracy" has no gradient with respect to predict, which leads to "out.w", "out.b"
          model.py:5      accuracy = ol.layer.accuracy(predict, label)
              "softmax_0"   float32[n, 10]   from softmax at model.py:4
          Try: declare it with `@accuracy.gradient("predict")`, or mark the value stop_gradient    (oarlock explain GradientError)
        """,
    )


def test_a_gradient_of_another_shape(require):
    require(
        """
        import oarlock as ol
        @ol.operator("x: float[...s], like: float[...r] -> y: float[]")
        def total(x, like):
            return x.sum()
        total.gradient_programs(x=lambda like, dy: ol.op.broadcast_to_like(dy, like))
        with ol.Program():
            x, like = ol.layer.data("x", [3]), ol.layer.data("like", [2])
            ol.gradients([total(x, like)], [x])
        """,
        """
        oarlock.GradientError: "total" gives float32[n, 2] as the gradient of "x", which is float32[n, 3]
          model.py:8      ol.gradients([total(x, like)], [x])
          the gradient of a variable has its type
              "x"   float32[n, 3]   fed; declared at model.py:7
              "like"   float32[n, 2]   fed; declared at model.py:7
        """,
    )


def test_a_parameter_of_two_optimizers(require):
    require(
        """
        import oarlock as ol
        with ol.Program():
            cost = ol.layer.mean(ol.layer.fc(ol.layer.data("x", shape=[3]), 1))
            ol.optimizer.SGD().minimize(cost)
            ol.optimizer.Adam().minimize(cost)
        """,
        """
        oarlock.ProgramError: "fc_0.w" is already updated by an optimizer
          model.py:5      ol.optimizer.Adam().minimize(cost)
              "fc_0.w"   float32[3, 1]   parameter; created at model.py:3
          Try: divide the parameters between optimizers: minimize(cost, parameters=[...])    (oarlock explain ProgramError)
        """,
    )


@pytest.mark.parametrize(
    ("wrong", "kinds"),
    [
        (lambda x: ol.layer.relu(ol.op.cast(x, dtype="int64")), (ol.DTypeError, TypeError)),
        (lambda x: x + ol.op.full(shape=(4,), value=1.0), (ol.ShapeError, ValueError)),
        (lambda x: ol.op.linear(x), (ol.ArgumentError, TypeError)),
        (lambda x: x.block.var("y"), (ol.UndefinedVarError, LookupError)),
        (lambda x: ol.layer.data("x", shape=[1]), (ol.ProgramError, ValueError)),
    ],
    ids=["dtype", "shape", "argument", "undefined", "program"],
)
def test_an_error_is_ours_and_a_built_in_and_changes_nothing(wrong, kinds):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        before = [*program.main.vars], [op.type for op in program.main.ops if op.type not in ("full", "cast")]
        for kind in (*kinds, ol.OarlockError):
            with pytest.raises(kind) as raised:
                wrong(x)
        after = [name for name in program.main.vars if not name.startswith(("full", "cast"))]
        assert (after, [op.type for op in program.main.ops if op.type not in ("full", "cast")]) == before
    error = raised.value
    assert error.location.text.startswith("(lambda x:")
    assert str(error).startswith(error.message)
