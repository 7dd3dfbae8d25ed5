"""A write that fails leaves no trace in the program."""

import pytest

import oarlock as ol


@pytest.fixture
def opaque():
    catalogue = ol.registry.standard

    @ol.operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def opaque(x):
        return x * 1.0

    yield opaque
    del catalogue.operators["opaque"]


@pytest.mark.parametrize("where", ["main", "loop"])
def test_a_gradient_that_is_missing_leaves_the_program_as_it_was(opaque, where):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], batch="t")
        w = ol.layer.data("w", shape=[2], batch=None)
        if where == "main":
            y = ol.op.tanh(opaque(w * w) + x)
        else:
            rnn = ol.rnn()
            with rnn.step():
                rnn.output(ol.op.tanh(opaque(rnn.step_input(x) * w)))
            y = ol.op.tanh(rnn())
        cost = ol.op.reduce_sum(y)
    before = program.to_bytes()
    for differentiate in (lambda: ol.gradients([cost], [w]), lambda: ol.append_backward(cost, [w])):
        with pytest.raises(ol.GradientError):
            differentiate()
        assert program.to_bytes() == before


@pytest.mark.mission("B18")
@pytest.mark.parametrize("kind", ["rnn", "ifelse", "while", "switch"])
def test_a_block_that_is_left_by_an_exception_takes_its_parameters_with_it(kind):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        flag = ol.layer.data("flag", shape=[], dtype="bool", batch=None)
        before = program.to_bytes()
        block = {
            "rnn": lambda: ol.rnn().step(),
            "ifelse": lambda: ol.ifelse().true_block(),
            "while": lambda: ol.while_loop(flag).block(),
            "switch": lambda: ol.switch().case(flag),
        }[kind]()
        with pytest.raises(KeyError), block:
            ol.layer.fc(x, 3, name="k")
            raise KeyError
        assert program.to_bytes() == before
        assert ol.layer.fc(x, 5, name="k").shape == ("n", 5)


def test_a_result_does_not_take_the_name_of_another_variable():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        before = program.to_bytes()
        with pytest.raises(ol.ProgramError, match='^mean: "x" is already the name of a variable of main'):
            ol.op.mean(x, name="x")
    assert program.to_bytes() == before
    assert x.shape == ("n", 2)
