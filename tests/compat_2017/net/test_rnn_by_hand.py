"""Recurrent networks run by hand, from a step net and scopes, as the Net design and issue 3129 write them."""

import numpy
import pytest
import torch
from tolerances import VALUES

import oarlock as ol

STATES = 4
WORDS = numpy.random.default_rng(3).normal(size=(STATES, 2, 3)).astype("float32")


def write_step(word, before):
    return ol.layer.fc(ol.layer.concat([word, before], axis=1), 3, act="tanh", name="step")


@pytest.fixture
def step_net():
    net = ol.Net(ol.Program(seed=5))
    with net.program:
        word, before = ol.layer.data("word", [3]), ol.layer.data("before", [3])
        net.program.targets["after"] = write_step(word, before)
    return net


def by_the_operator():
    with ol.Program(seed=5) as program:
        words = ol.layer.data("words", ["n", 3], batch="t")
        start = ol.layer.data("start", [3])
        rnn = ol.rnn()
        with rnn.step():
            h = rnn.memory(init=start)
            after = write_step(rnn.step_input(words), rnn.previous_memory(h))
            rnn.update_memory(h, after)
            rnn.output(after)
        fetch = [rnn(), rnn.final_memory(h)]
    scope = ol.init(program, ol.Scope())
    return ol.Executor().run(program, {"words": WORDS, "start": numpy.zeros((2, 3), "float32")}, fetch, scope=scope)


def agree(actual, expected):
    rtol, atol = VALUES[torch.float32]
    numpy.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


@pytest.mark.mission("N22", "A14", "E12")
def test_one_scope_more_than_there_are_states_and_parameters_found_around_them(step_net):
    """The memories are in the scopes of the steps, each copied on to the next; the extra one has the final state."""
    after = step_net.program.targets["after"].name
    default_scope = ol.Scope()
    step_net.init_variables(default_scope)
    states = [default_scope.new_scope(f"state_{number}") for number in range(STATES + 1)]
    states[0].set("before", numpy.zeros((2, 3), "float32"))
    for number, word in enumerate(WORDS):
        states[number].set("word", word)
        step_net.run(states[number])
        states[number + 1].set("before", states[number][after])
    stacked, final = by_the_operator()
    for state, hoped in zip(states, stacked, strict=False):
        agree(state[after], hoped)
        assert state.parent is default_scope
        assert state.find_local_var("step.w") is None
    agree(states[STATES]["before"], final)
    assert list(states[STATES]) == ["before"]
    assert sorted(default_scope) == ["step.b", "step.w"]


@pytest.mark.mission("E17", "E11")
def test_a_step_input_of_an_inner_loop_hides_that_of_the_outer_one_and_leaves_it_alone():
    """outer scope, scope of the loop with its memory, a scope for each step; `step_input` is the name at every level."""
    with ol.Program():
        step_input = ol.layer.data("step_input", [2], batch=None)
        total = ol.layer.data("total", [2], batch=None)
        net = ol.Net.trace_and_build(ol.op.add(step_input, total, name="sum"), ol.Scope())
    outer = ol.Scope()
    outer.set("pages", numpy.arange(12, dtype="float32").reshape(2, 3, 2))
    rnn_scope = outer.new_scope("rnn")
    rnn_scope.set("total", numpy.zeros(2, "float32"))
    for page in outer["pages"]:
        page_scope = rnn_scope.new_scope()
        page_scope.new_var("step_input").value = page
        for line in page:
            line_scope = page_scope.new_scope()
            line_scope.new_var("step_input").value = line
            net.run(line_scope)
            assert line_scope["step_input"].data_ptr() == line.data_ptr()
            rnn_scope.set("total", line_scope["sum"])
        assert page_scope["step_input"] is page
        assert [scope.find_local_var("sum") is not None for scope in (line_scope, page_scope, rnn_scope)] == [True, False, False]
    assert rnn_scope["total"].tolist() == outer["pages"].sum((0, 1)).tolist()
    assert "total" not in outer
    assert [len(scope.children) for scope in (outer, rnn_scope, *rnn_scope.children)] == [1, 2, 3, 3]
