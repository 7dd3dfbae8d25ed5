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


@pytest.mark.mission("E17")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps", [3, 1, 0])
def test_the_operator_has_a_scope_for_each_step_with_a_slice_that_shares_the_storage_of_the_whole(steps, reverse):
    """As many as the sequence is long; the slice has one name in all of them, another one than in the loop inside, and is never copied."""
    with ol.Program() as program:
        pages = ol.layer.data("pages", shape=["m", 2], batch="t")
        outer = ol.rnn(reverse=reverse)
        with outer.step():
            page = outer.step_input(pages)
            inner = ol.rnn()
            with inner.step():
                inner.output(ol.op.square(inner.step_input(page), name="squared"))
            outer.output(inner())
        outer()
    assert page.name != program.blocks[2].inputs[0].name
    whole = torch.arange(steps * 4 * 2, dtype=torch.float32).reshape(steps, 4, 2)
    scope = ol.Scope()
    scope["pages"] = whole
    program.main.run(scope, keep_scopes=True)
    around = scope.children
    assert [child.name for child in around] == ["rnn_0"] * bool(steps)
    taken = [step for loop in around for step in loop.children]
    order = range(steps)[::-1] if reverse else range(steps)
    assert [step.name for step in taken] == [str(number) for number in order]
    for number, step in zip(order, taken, strict=True):
        found = step.find_local_var(page.name)
        assert found is not None
        assert torch.equal(step[page.name], whole[number])
        assert step[page.name].data_ptr() == whole[number].data_ptr()
        assert step["pages"].data_ptr() == whole.data_ptr()
        (lines,) = step.children
        assert len(lines.children) == 4
        for line, inside in enumerate(lines.children):
            (name,) = [var.name for var in program.blocks[2].inputs]
            assert inside[name].data_ptr() == whole[number, line].data_ptr()
            assert inside[page.name] is step[page.name]
            assert inside["squared"].tolist() == (whole[number, line] ** 2).tolist()
            assert "squared" not in step


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
