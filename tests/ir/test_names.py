import numpy
import pytest

import oarlock as ol
from oarlock.ir.names import gradient_name, is_name, next_name, require_user_name


@pytest.mark.parametrize("name", ["x", "fc_0.w", "w@GRAD", "a/b", "9", "-", "x" * 256])
def test_these_are_names(name):
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "x y", "a..b", "..", "é", "x\n", "x\0", "a\\b", "x" * 257, 'a"b', "٣"])
def test_these_are_no_names(name):
    assert not is_name(name)


@pytest.mark.parametrize("name", ["w@GRAD", "a/b", "", "a..b", "x" * 257, "a b", 3, None])
def test_a_user_may_not_give_these_names(name):
    with pytest.raises(ol.ProgramError) as caught:
        require_user_name(name)
    assert str(caught.value) == (
        f"{name!r:.80} cannot be a variable's name\n"
        f"  {caught.value.location}\n"
        "  a name has 1 to 256 of the characters A-Z a-z 0-9 _ . - and no '..'"
    )


def test_a_user_may_give_this_name():
    assert require_user_name("fc_0.w-2") == "fc_0.w-2"


def test_the_name_of_an_ops_result_is_checked_when_it_is_given():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        with pytest.raises(ol.ProgramError, match="^'my relu' cannot be a variable's name"):
            ol.op.relu(x, name="my relu")
    assert program.main.ops == []


def test_suffixes():
    assert gradient_name("w") == "w@GRAD"
    assert next_name("w") == "w@NEXT"


def test_generated_names_count_within_one_program():
    for _ in range(2):
        with ol.Program() as program:
            x = ol.layer.data("x", shape=[2])
            assert [ol.op.relu(x).name, ol.op.relu(x).name, ol.op.tanh(x).name] == ["relu_0", "relu_1", "tanh_0"]
        assert program.unique("relu") == "relu_2"


def test_generated_names_step_over_those_that_the_user_took():
    with ol.Program():
        x = ol.layer.data("relu_0", shape=[2])
        assert ol.op.relu(x).name == "relu_1"


def test_generated_names_step_over_those_of_a_program_that_was_read():
    with ol.Program() as program:
        ol.layer.fc(ol.layer.data("x", shape=[2]), 3)
    copy = ol.Program.from_bytes(program.to_bytes())
    with copy:
        assert ol.layer.fc(copy.main.var("x"), 3).name == "fc_1.out"


def test_a_size_that_only_values_tell_never_bears_the_name_of_another_size():
    """Not even in a program that was read from a file, where such a size has a name already."""
    catalogue = ol.registry.Catalogue()

    @ol.operator("x: float[n] -> y: float[?]", catalogue=catalogue)
    def positives(x):
        return x[x > 0]

    with ol.Program() as program:
        first = positives(ol.layer.data("x", shape=[], batch="n"))
        other = positives(ol.layer.data("y", shape=[], batch="size_1"))
    copy = ol.Program.from_bytes(program.to_bytes())
    third = positives(copy.main.var("x"))
    assert (first.shape, other.shape, third.shape) == (("size_0",), ("size_2",), ("size_3",))


def test_a_name_used_twice_in_a_block_is_refused_where_it_is_used_again():
    with ol.Program():
        ol.layer.data("x", shape=[2])
        with pytest.raises(ol.ProgramError) as caught:
            ol.layer.data("x", shape=[3])
    line = caught.value.location.line
    assert str(caught.value) == (
        '"x" is declared twice in main\n'
        f"  {caught.value.location.file}:{line} in test_a_name_used_twice_in_a_block_is_refused_where_it_is_used_again      "
        'ol.layer.data("x", shape=[3])\n'
        f'      "x"   float32[n, 2]   fed; declared at {caught.value.location.file}:{line - 2}\n'
        "  Try: rename one of them, or use the existing variable    (oarlock explain ProgramError)"
    )


def test_a_gradient_inside_a_loop_takes_no_name_that_the_loop_reads_from_around_it():
    """The loop multiplies by `x@GRAD` of the main block; the gradient of x in the loop is called otherwise."""
    with ol.Program() as program:
        steps = ol.layer.data("steps", shape=[], dtype="float64", batch="t")
        x = ol.layer.data("x", shape=[], dtype="float64", batch=None)
        slope = ol.gradients([ol.op.square(x)], [x])[0]
        loop = ol.rnn()
        with loop.step():
            loop.output(loop.step_input(steps) * (x * slope))
        found = ol.gradients([ol.op.reduce_sum(loop())], [x])[0]
    assert slope.name == "x@GRAD"
    feed = {"steps": numpy.array([1.0, 2.0]), "x": 3.0}
    for model in (program, ol.Program.from_bytes(program.to_bytes())):
        assert ol.Executor().run(model, feed=feed, fetch=[found.name], scope=ol.Scope())[0] == 36.0  # 4 x sum(steps)


@pytest.mark.parametrize("name", [None, 3, "a b", "x..y", "\x1b[31m", "a" * 257])
def test_a_variable_is_declared_under_a_name_or_refused_at_once(name):
    with ol.Program() as program:
        before = program.to_text()
        with pytest.raises(ol.ProgramError) as caught:
            program.main.new_var(name, ol.DType.FLOAT32, (2,))
        assert caught.value.message == f"{name!r:.80} cannot be a variable's name"
    assert program.to_text() == before
