"""The demands of the Scope and Framework documents on scopes and their values, row by row."""

import asyncio
import copy
import dataclasses
import gc
import itertools
import pickle
import threading
import time
import weakref

import numpy as np
import pytest
import torch

import oarlock as ol
from oarlock.runtime import State, Variable


def small_program():
    with ol.Program(seed=2) as program:
        x = ol.layer.data("x", shape=[3])
        cost = ol.layer.mean(ol.layer.fc(x, 2))
        ol.optimizer.SGD(0.5).minimize(cost)
        program.targets["cost"] = cost
    return program


FEED = {"x": np.ones((2, 3), dtype="float32")}


@pytest.mark.mission("A1", "A10")
def test_a_name_is_unique_in_a_scope_free_in_another_and_listed_in_order():
    first, second = ol.Scope(), ol.Scope()
    for name in ("w", "b", "a"):
        first.set(name, 1.0)
    second.set("w", 2.0)
    assert list(first) == ["w", "b", "a"]
    assert float(first["w"]) == 1.0
    assert float(second["w"]) == 2.0
    with pytest.raises(ol.ScopeError, match="a variable's name must not be empty"):
        first.var("")


def after_steps(program, start, steps):
    """The weights of `small_program` after steps of SGD, worked out by hand: the slope of the mean of x @ w + b is the same in each."""
    x, rate = torch.tensor(FEED["x"]), 0.5
    slope = x.T @ torch.full((2, 2), 1 / 4)
    return start["fc_0.w"] - steps * rate * slope, start["fc_0.b"] - steps * rate * torch.full((2,), 1 / 2)


def around_of_its_own(program, child):
    """`child`, with the state of the optimizer of `program`, which it has for itself."""
    for var in program.persistables():
        if var.name not in ("fc_0.w", "fc_0.b"):
            child.set(var.name, ol.init(program, ol.Scope())[var.name])
    return child


@pytest.mark.mission("A2")
def test_one_program_runs_in_many_scopes_that_share_nothing_but_what_is_above_them():
    program, executor = small_program(), ol.Executor()
    parent = ol.Scope()
    parent.set("fc_0.b", np.array([5, 7], "float32"))
    left, right = ol.init(program, ol.Scope()), ol.init(program, ol.Scope())
    start = {name: left[name].clone() for name in ("fc_0.w", "fc_0.b")}
    for _ in range(3):
        executor.run(program, FEED, scope=left)
    assert torch.equal(right["fc_0.w"], start["fc_0.w"])
    executor.run(program, FEED, scope=right)
    for scope, steps in ((left, 3), (right, 1)):
        for name, expected in zip(("fc_0.w", "fc_0.b"), after_steps(program, start, steps), strict=True):
            assert torch.allclose(scope[name], expected, rtol=1e-6)
        assert int(scope["@STEP"]) == steps
    executor.run(program, FEED, scope=left)  # a scope keeps its state from run to run
    assert torch.allclose(left["fc_0.w"], after_steps(program, start, 4)[0], rtol=1e-6)
    predict = ol.prune(program, {"predict": program.main.var("fc_0.out")})
    children = [parent.new_scope() for _ in range(2)]  # below one that has the bias: it is shared, what each has of its own is not
    for number, child in enumerate(children):
        child.set("fc_0.w", np.full((3, 2), number, "float32"))
    for bias in ([5, 7], [1, 2]):
        parent.set("fc_0.b", np.array(bias, "float32"))  # after the children were made
        for number, child in enumerate(children):
            (value,) = executor.run(predict, FEED, ["predict"], scope=child)
            assert value.tolist() == [[3 * number + bias[0], 3 * number + bias[1]]] * 2
            assert child["fc_0.b"] is parent["fc_0.b"]
            assert list(child) == ["fc_0.w"]
    for child in children:  # each trains what is its own, and the one bias above them
        executor.run(program, FEED, scope=around_of_its_own(program, child))
    moved = torch.tensor([1.0, 2.0]) - 2 * 0.5 * torch.full((2,), 1 / 2)
    assert torch.allclose(parent["fc_0.b"], moved)
    for number, child in enumerate(children):
        assert torch.allclose(child["fc_0.w"], number - 0.5 * torch.full((3, 2), 2 / 4))
    with pytest.raises(TypeError, match="scope"):
        executor.run(program, FEED)


def run_by_net(program, scope):
    ol.Net(program).run(scope, ol.Context(scope, training=True))


def run_by_step(program, scope):
    ol.Executor().prepare(program, scope=scope)({"x": FEED["x"]})


@pytest.mark.mission("A2")
@pytest.mark.parametrize(
    "run",
    [
        run_by_net,
        lambda program, scope: program.main.run(scope, ol.Context(scope, training=True)),
        lambda program, scope: ol.run_block(program.main, scope, ol.Context(ol.Scope(), training=True)),  # that of a context is not used
        lambda program, scope: ol.Executor(interpret=True).run(program, FEED, scope=scope),
        lambda program, scope: ol.Executor().run(program, FEED, scope=scope),
        run_by_step,
    ],
    ids=["net", "block", "run_block", "interpreter", "executor", "step"],
)
def test_whatever_runs_a_program_reads_and_writes_the_scope_that_it_is_given(run):
    """Runs over one scope share its state; runs over two share what is above both, and the current scope takes no part."""
    program = small_program()
    above, apart = ol.init(program, ol.Scope()), ol.init(program, ol.Scope())
    start = {name: above[name].clone() for name in ("fc_0.w", "fc_0.b")}
    first, second = above.new_scope(), above.new_scope()
    for scope in (first, second, apart):
        scope["x"] = FEED["x"]
    with ol.scope.guard(ol.Scope()) as current:
        run(program, first)
        run(program, second)
        run(program, apart)
        assert list(current) == []
    for scope, steps in ((above, 2), (apart, 1)):
        assert int(scope["@STEP"]) == steps
        for name, expected in zip(("fc_0.w", "fc_0.b"), after_steps(program, start, steps), strict=True):
            assert torch.allclose(scope[name], expected, rtol=1e-6)
    for child in (first, second):
        assert not {"fc_0.w", "fc_0.b", "@STEP"} & set(child)


@pytest.mark.mission("A2")
def test_a_run_without_a_scope_is_refused():
    """But at the front end, where it is the current one: `Net.run`, `ol.eval`, `ol.train`."""
    program = small_program()
    for run in (
        lambda: ol.Executor().run(program, FEED),
        lambda: ol.Executor().eval(program, ["cost"], FEED),
        lambda: ol.Executor().prepare(program),
        lambda: ol.run_block(program.main),
        lambda: program.main.run(),
        lambda: program.main.eval(["cost"]),
        lambda: program.main.infer_shape(),
        lambda: ol.run_block(program.main, None),
        lambda: ol.Executor().run(program, FEED, scope=None),
        lambda: ol.Context(None),
    ):
        with pytest.raises(TypeError, match="scope"):
            run()


@pytest.mark.mission("A3", "C25")
def test_a_scope_takes_values_as_they_are_whatever_their_device_and_keeps_no_program_alive():
    scope = ol.Scope()
    values = [torch.zeros(2, dtype=torch.float64), torch.zeros(2, device="meta"), torch.ones(3, dtype=torch.int8)]
    for number, value in enumerate(values):
        scope.set(f"v{number}", value)
    for number, value in enumerate(values):  # neither converted, moved nor computed with
        assert (scope[f"v{number}"].device, scope[f"v{number}"].dtype) == (value.device, value.dtype)
    program, executor = small_program(), ol.Executor()
    ol.init(program, scope)
    for _ in range(2):
        executor.run(program, FEED, [program.targets["cost"]], scope=scope)
    gone = [weakref.ref(program), weakref.ref(executor)]
    del program, executor
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
    assert int(scope["@STEP"]) == 2
    with pytest.raises(TypeError):
        ol.Scope(ol.CPUPlace())


@pytest.mark.mission("A3", "C25")
def test_a_scope_has_variables_and_other_scopes_and_nothing_that_computes():
    """The whole list: no program, no operator, no place, and nothing that runs one. What a scope refers to is of those kinds too."""
    program = small_program()
    scope = ol.init(program, ol.Scope())
    ol.Executor().run(program, FEED, scope=scope.new_scope().new_scope())
    public = {name for name in dir(scope) if not name.startswith("_")}
    assert public == {
        *("parent", "children", "name", "new_scope", "find_or_create_scope", "delete_scope", "drop", "dropped"),
        *("var", "new_var", "erase", "erased", "find_var", "find_local_var", "set", "get", "frozen"),
    }
    kinds = (bool, int, str, frozenset, dict, list, type(None), ol.Scope, type(threading.RLock()))
    assert {name: kind for name, kind in ((name, type(held)) for name, held in vars(scope).items()) if kind not in kinds} == {}
    assert {type(variable) for variable in scope._variables.values()} == {Variable}
    assert not callable(scope)


@pytest.mark.mission("A4", "C1")
def test_var_finds_or_makes_here_new_var_is_strict_and_find_var_climbs():
    parent = ol.Scope()
    child = parent.new_scope()
    parent.set("w", 1.0)
    assert child.var("w") is not parent.var("w")
    assert child.var("w") is child.var("w")
    with pytest.raises(ol.ScopeError, match='"w" already exists in this scope'):
        child.new_var("w")
    assert parent.new_scope().find_var("w") is parent.var("w")


@pytest.mark.mission("A5", "A15")
def test_finding_never_makes_and_making_never_finds_in_a_parent():
    parent = ol.Scope()
    child = parent.new_scope()
    assert child.find_var("w") is None
    assert child.find_local_var("w") is None
    assert "w" not in child
    assert len(child) == len(parent) == 0
    parent.set("w", 1.0)
    assert "w" in child
    assert child.find_local_var("w") is None
    outer = parent.find_var("w")
    for make in (child.var, child.new_scope().new_var):
        made = make("w")
        assert made is not outer
        assert not made.is_set
    assert (parent.find_var("w"), child.find_var("w")) == (outer, child.var("w"))
    with pytest.raises(ol.ScopeError, match='^"w" already exists in this scope; use scope.var to find or create it$'):
        child.new_var("w")
    assert child.find_var("w") is child.var("w") is not outer
    assert float(parent["w"]) == 1.0


@pytest.mark.mission("A6", "A7")
def test_only_a_scope_makes_a_variable_and_owns_it_alone():
    scope, other = ol.Scope(), ol.Scope()
    with pytest.raises(ol.ScopeError, match="variables are created by scopes"):
        Variable(object(), scope, "w")
    handle = scope.var("w")
    handle.value = 1
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises((ol.ScopeError, TypeError)):
            copied(handle)
    assert other.find_var("w") is None
    other.drop()
    assert handle.value == 1
    scope.drop()
    with pytest.raises(ol.ScopeError):
        handle.value


@pytest.mark.mission("A7")
def test_two_scopes_that_were_given_one_tensor_do_not_see_each_others_steps():
    """An update writes where a parameter lies, unless somebody else may look there."""
    program, executor = small_program(), ol.Executor()
    first = ol.init(program, ol.Scope())
    second = ol.Scope()
    for name in first:
        second.set(name, first[name])
    start = {name: first[name].clone() for name in first}
    for _ in range(3):
        executor.run(program, FEED, scope=first)
    assert all(torch.equal(second[name], start[name]) for name in start)
    executor.run(program, FEED, scope=second)
    assert torch.allclose(first["fc_0.w"], after_steps(program, start, 3)[0], rtol=1e-6)
    assert torch.allclose(second["fc_0.w"], after_steps(program, start, 1)[0], rtol=1e-6)


def test_a_handle_that_outlives_its_scope_says_so_by_name():
    scope = ol.Scope()
    kept = scope.var("w")
    del scope
    gc.collect()
    with pytest.raises(ol.ScopeError, match='^"w" belonged to a scope that was dropped$'):
        kept.value = 2


@pytest.mark.mission("A11", "C4", "A31")
def test_a_scope_made_by_itself_is_a_root_and_there_may_be_several():
    first, second = ol.Scope(), ol.Scope()
    assert first.parent is None
    assert second.parent is None
    child = first.new_scope()
    assert child.parent is first
    with pytest.raises(TypeError):
        ol.Scope(first)
    for value, scope in enumerate((first, second, ol.scope.global_scope())):
        scope.set("only here", value)
    assert [int(scope["only here"]) for scope in (first, second, ol.scope.global_scope(), child)] == [0, 1, 2, 0]
    assert len({id(scope.find_var("only here")) for scope in (first, second, ol.scope.global_scope())}) == 3
    ol.scope.global_scope().erase("only here")
    assert "only here" not in ol.Scope()
    first.drop()
    assert (second.dropped, int(second["only here"]), second.children) == (False, 1, [])
    assert ol.Scope().children == []


@pytest.mark.mission("A12", "C2")
def test_a_child_keeps_its_parent_alive_and_both_are_freed_when_nobody_holds_them():
    parent = ol.Scope()
    parent.set("w", 3.0)
    child = parent.new_scope()
    watched = weakref.ref(parent)
    del parent
    gc.collect()
    assert float(child["w"]) == 3.0
    del child
    gc.collect()
    assert watched() is None


@pytest.mark.mission("A13")
def test_locals_die_with_their_scope_and_reading_falls_through():
    parent = ol.Scope()
    parent.set("w", 1.0)
    child = parent.new_scope()
    child.set("local", 2.0)
    assert float(child["w"]) == 1.0
    child.set("w", 5.0)
    assert float(parent["w"]) == 1.0
    child.drop()
    assert list(parent) == ["w"]


@pytest.mark.mission("A16", "A19", "F1")
def test_a_variable_holds_each_of_the_eight_kinds():
    scope = ol.Scope()
    relu = ol.op.relu
    op = small_program().main.ops[0]
    kinds = [
        (int, 3),
        (bool, True),
        (float, 0.5),
        (np.float16, np.float16(0.5)),
        (str, "text"),
        (torch.Tensor, torch.ones(2)),
        (ol.ir.Op, op),
        (ol.Scope, ol.Scope()),
    ]
    for number, (kind, value) in enumerate(kinds):
        variable = scope.var(f"variable_{number}")
        variable.value = value
        assert variable.is_type(kind)
        assert variable.get(kind) is value
        assert sum(variable.is_type(other) for other, _ in kinds) == 1
    operator = ol.variable.operation("an operator", relu)
    assert operator.is_type(ol.ir.Op)
    assert type(op) is not type(relu)


@pytest.mark.mission("A17")
def test_get_refuses_another_type_and_an_empty_slot():
    scope = ol.Scope()
    variable = scope.var("w")
    with pytest.raises(ol.UnsetVarError, match='^"w" is declared, but has no value yet$'):
        variable.get(int)
    variable.value = 3
    with pytest.raises(ol.ScopeError, match='^"w" is a int, not a float$'):
        variable.get(float)


@pytest.mark.mission("A17")
def test_get_gives_the_value_to_who_asks_for_its_type_and_to_nobody_else():
    """For each type that it may hold. A bool is no int, a half no float, and asking changes nothing."""
    scope = ol.Scope()
    values = {
        int: 3,
        bool: True,
        float: 2.5,
        np.float16: np.float16(0.5),
        str: "text",
        torch.Tensor: torch.ones(2),
        ol.registry.Operator: ol.op.relu,
        ol.Scope: ol.Scope(),
    }
    variable = scope.var("w")
    for held, value in values.items():
        variable.value = value
        for asked in values:
            if asked is held:
                assert variable.get(asked) is value
            else:
                with pytest.raises(ol.ScopeError, match=f'^"w" is a .*, not a {asked.__name__}$'):
                    variable.get(asked)
            assert variable.is_type(asked) == (asked is held)
        assert variable.value is value
    variable.reset()
    for asked in values:
        with pytest.raises(ol.UnsetVarError):
            variable.get(asked)


@pytest.mark.mission("A18")
def test_get_mutable_makes_on_first_use_and_never_replaces():
    scope = ol.Scope()
    tensor = scope.var("t").get_mutable(torch.Tensor)
    tensor.resize_(3).fill_(7.0)
    assert scope["t"].tolist() == [7.0, 7.0, 7.0]
    with pytest.raises(ol.ScopeError, match="is a Tensor, not a int"):
        scope.var("t").get_mutable(int)
    scope.var("t").reset()
    assert scope.var("t").get_mutable(int) == 0
    assert scope.var("s").get_mutable(ol.Scope).parent is scope


@pytest.mark.mission("A20")
def test_declared_and_not_computed_is_a_state_with_a_name():
    scope = ol.Scope()
    variable = scope.var("w")
    assert variable.state is State.DECLARED
    assert State.DECLARED.value == "declared, not computed"
    variable.get_mutable(torch.Tensor)
    assert variable.state is State.SET


@pytest.mark.mission("A21", "C17")
def test_a_variable_has_no_name_a_declaration_has():
    variable = ol.Scope().var("w")
    assert not hasattr(variable, "name")
    assert small_program().main.vars["fc_0.w"].name == "fc_0.w"


FLAGS = ("parameter", "trainable", "persistable", "stop_gradient")


@pytest.mark.mission("C18")
@pytest.mark.parametrize("values", list(itertools.product((False, True), repeat=4)), ids=str)
def test_what_2017_called_estimated_is_four_flags_that_files_and_texts_keep_apart(values):
    flags = dict(zip(FLAGS, values, strict=True))
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        zeros = ol.initializer.constant(0.0)((2,)) if flags["persistable"] else None
        program.main.new_var("v", ol.DType.FLOAT32, (2,), **flags, initializer=zeros)
        if flags["persistable"]:
            ol.op.add(x, program.main.var("v"))
    needs = [("trainable", "parameter"), ("parameter", "persistable")]  # the only ties between them
    if any(flags[flag] and not flags[other] for flag, other in needs):
        with pytest.raises(ol.VerifyError, match="so it must be"):
            ol.Program.from_bytes(program.to_bytes())
        return
    for read in (ol.Program.from_bytes(program.to_bytes()), ol.parse_program(program.to_text())):
        var = read.main.vars["v"]
        assert {name: getattr(var, name) for name in FLAGS} == flags


@pytest.mark.mission("A22", "C18")
@pytest.mark.parametrize("frozen", ["fc_0.w", "fc_0.b", None])
def test_what_is_not_trainable_is_not_updated(frozen):
    """Two steps of SGD by hand, with and without the one that is frozen."""
    with ol.Program(seed=2) as program:
        cost = ol.layer.mean(ol.layer.fc(ol.layer.data("x", shape=[3]), 2))
        if frozen is not None:
            program.main.vars[frozen].trainable = False
        ol.optimizer.SGD(0.5).minimize(cost)
    scope = ol.init(program, ol.Scope())
    start = {name: scope[name].clone() for name in ("fc_0.w", "fc_0.b")}
    for _ in range(2):
        ol.Executor().run(program, FEED, scope=scope, training=True)
    for name, moved in zip(start, after_steps(program, start, 2), strict=True):
        assert torch.allclose(scope[name], start[name] if name == frozen else moved, rtol=1e-6), name


@pytest.mark.mission("A23", "A24")
def test_a_variable_of_no_type_yet_is_named_by_who_reads_it():
    with ol.scope.guard(ol.Scope()) as scope:
        for make in (ol.variable.new, ol.variable.tensor):
            assert make("fc_0.w").state is State.DECLARED
        with pytest.raises(ol.UnsetVarError, match='reads "fc_0.w", which has no value'):
            ol.Executor().run(small_program(), FEED, scope=scope)


@pytest.mark.mission("A25", "A26", "A27")
def test_variables_are_made_with_values_in_the_current_scope():
    array = np.random.default_rng(0).normal(size=(20, 10))
    with ol.scope.guard(ol.Scope()) as scope:
        x = ol.variable.tensor("x", array, estimated=True)
        assert x.get(torch.Tensor).dtype == torch.float64
        assert np.array_equal(x.get(torch.Tensor).numpy(), array)
        assert x.estimated
        x.estimated = False
        assert not scope.var("x").estimated
        assert ol.variable.int("i", 10).get(int) == 10
        assert ol.variable.float("f", 1).get(float) == 1.0
        assert ol.variable.bool("b", True).get(bool) is True
        assert ol.variable.string("s", "text").get(str) == "text"
        assert ol.variable.operation("o", ol.op.relu).value is ol.op.relu
        assert list(scope) == ["x", "i", "f", "b", "s", "o"]


@pytest.mark.mission("A28", "A29")
def test_the_current_scope_is_the_global_one_until_a_guard_says_otherwise():
    top = ol.scope.global_scope()
    assert ol.scope.current() is top
    inner = ol.Scope()
    with pytest.raises(KeyError), ol.scope.guard(inner):
        assert ol.scope.current() is inner
        with ol.scope.guard(top):
            assert ol.scope.current() is top
        assert ol.scope.current() is inner
        raise KeyError
    assert ol.scope.current() is top


@pytest.mark.mission("A30")
def test_threads_and_tasks_each_have_a_current_scope_of_their_own():
    seen = {}

    async def task(name):
        with ol.scope.guard(ol.Scope()) as scope:
            await asyncio.sleep(0)
            seen[name] = ol.scope.current() is scope

    async def both():
        await asyncio.gather(task("a"), task("b"))

    with ol.scope.guard(ol.Scope()):
        thread = threading.Thread(target=lambda: seen.setdefault("thread", ol.scope.current() is ol.scope.global_scope()))
        thread.start()
        thread.join()
        asyncio.run(both())
    assert seen == {"thread": True, "a": True, "b": True}


@pytest.mark.mission("A32")
def test_a_value_is_set_and_a_variable_never_adopted():
    scope = ol.Scope()
    scope.set("w", np.arange(3.0))
    assert scope["w"].tolist() == [0.0, 1.0, 2.0]
    handle = scope.var("w")
    scope.set("w", 5)
    assert scope.var("w") is handle
    with pytest.raises(ol.DTypeError):
        scope.set("w", handle)


@pytest.mark.mission("A33", "C20")
def test_named_children_are_found_again_and_nameless_ones_always_new():
    scope = ol.Scope()
    named = scope.find_or_create_scope("step")
    assert scope.find_or_create_scope("step") is named
    assert scope.find_or_create_scope("") is not scope.find_or_create_scope("")
    assert len(scope.children) == 3


@pytest.mark.mission("A34", "A35")
def test_only_a_direct_child_is_deleted_and_only_once():
    scope = ol.Scope()
    first, second = scope.new_scope("first"), scope.new_scope("second")
    grandchild = first.new_scope()
    assert scope.children == [first, second]
    for stranger in (grandchild, ol.Scope(), scope):
        with pytest.raises(ol.ScopeError, match="not a child of this scope"):
            scope.delete_scope(stranger)
    scope.delete_scope(first)
    with pytest.raises(ol.ScopeError, match="not a child of this scope"):
        scope.delete_scope(first)
    assert grandchild.dropped
    assert scope.children == [second]


def at_once(work, count=4):
    """The results of `work` in each of some threads that begin together."""
    found, gate = [], threading.Barrier(count)

    def run():
        gate.wait()
        found.append(work())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.mission("A36")
def test_threads_that_ask_for_one_name_at_once_get_one_variable_and_one_child(monkeypatch):
    """Making is slowed down, so that without a lock each thread would make its own."""
    made, child_of = Variable._in_scope, ol.Scope.new_scope

    def slowly(*given):
        time.sleep(0.05)
        return made(*given)

    def slow_child(self, name=""):
        time.sleep(0.05)
        return child_of(self, name)

    monkeypatch.setattr(Variable, "_in_scope", slowly)
    monkeypatch.setattr(ol.Scope, "new_scope", slow_child)
    scope = ol.Scope()
    assert len({id(var) for var in at_once(lambda: scope.var("w"))}) == 1
    assert len({id(var) for var in at_once(scope.new_var)}) == 4
    assert len(scope) == 5
    assert len({id(child) for child in at_once(lambda: scope.find_or_create_scope("child"))}) == 1
    assert len(scope.children) == 1


@pytest.mark.mission("A36")
def test_a_child_that_is_made_while_another_is_dropped_is_not_lost():
    scope = ol.Scope()
    dropped, reading, made = scope.new_scope(), threading.Event(), []

    class Slow(list):
        """Children that take their time to be gone through."""

        def __iter__(self):
            seen = list(super().__iter__())
            reading.set()
            time.sleep(0.1)
            return iter(seen)

    scope._children = Slow(scope.children)
    dropping = threading.Thread(target=dropped.drop)
    dropping.start()
    assert reading.wait(5)
    made.append(scope.new_scope())
    dropping.join()
    assert list(scope.children) == made


@pytest.mark.mission("A37")
def test_a_scope_is_filled_from_a_program():
    program = small_program()
    scope = ol.init(program, ol.Scope())
    assert set(scope) == {var.name for var in program.persistables()}
    assert scope["fc_0.w"].shape == (3, 2)
    kept = scope["fc_0.w"]
    assert ol.init(program, scope)["fc_0.w"] is kept


@pytest.mark.mission("A37")
def test_a_scope_gets_variables_from_a_description_and_then_first_values():
    """First without values, each of the block; then the parameters and the state, by their initializers, where they have none."""
    array = np.array([[1.5, -2.0], [0.25, 3.0], [4.0, 0.5]], "float32")
    with ol.Program(seed=9) as program:
        x = ol.layer.data("x", shape=[3])
        y = ol.layer.fc(
            x,
            2,
            name="given",
            initializer=ol.initializer.array(array),
            bias=ol.layer.ParameterOptions(initializer=ol.initializer.constant(0.75)),
        )
        z = ol.layer.fc(y, 200, name="drawn", bias=False, initializer=ol.initializer.uniform(-0.5, 0.25))
        ol.optimizer.Momentum(0.125).minimize(ol.layer.mean(z))
    for net in (ol.Net(program.main.compile()), ol.Net(program)):
        around = ol.Scope()
        around["given.b"] = np.array([7.0, 8.0], "float32")
        scope = around.new_scope()
        scope["x"] = np.ones((1, 3), "float32")
        assert net.create_variables(scope) is None
        assert set(scope) == set(program.main.vars) - {"given.b"}, "what persists and is there already is not hidden"
        assert {name for name in scope if scope.find_var(name).is_set} == {"x"}, "and no value is lost"
        kept = scope.find_var("drawn.w")
        assert net.init_variables(scope) is None
        assert {name for name in scope if scope.find_var(name).is_set} == {"x", *(var.name for var in program.persistables())} - {"given.b"}
        assert scope.find_var("drawn.w") is kept
        assert scope["given.w"].tolist() == array.tolist()
        assert scope["given.b"].tolist() == [7.0, 8.0]
        assert -0.5 <= float(scope["drawn.w"].min()) < -0.45 < 0.2 < float(scope["drawn.w"].max()) < 0.25
        assert float(next(scope[name] for name in scope if name.endswith("learning_rate"))) == 0.125
        assert all(not scope[name].any() for name in scope if name.endswith(("velocity", "@STEP")) and scope.find_var(name).is_set)
        scope["given.w"] = array * 2
        net.init_variables(scope)
        assert scope["given.w"].tolist() == (array * 2).tolist(), "what has a value keeps it"
        alone = ol.Scope()
        net.init_variables(alone)
        assert alone["given.b"].tolist() == [0.75, 0.75]
    assert torch.equal(ol.init(program, ol.Scope())["drawn.w"], scope["drawn.w"])
    with pytest.raises(ol.ArgumentError):
        ol.Scope(ol.CPUPlace())


@pytest.mark.mission("A40")
def test_readers_and_writers_are_computed_from_the_block():
    main = small_program().main
    w = main.vars["fc_0.w"]
    readers = [op.type for op in main.ops if any(w is var for var in op.reads)]
    writers = [op.type for op in main.ops if any(w is var for var in op.writes)]
    assert readers == ["linear", "sgd"]
    assert writers == ["assign"]


@pytest.mark.mission("F15", "C8", "C19")
def test_a_context_is_a_scope_a_place_and_whether_this_is_training():
    scope = ol.Scope()
    context = ol.Context(scope)
    assert (context.scope, context.place, context.training) == (scope, ol.CPUPlace(), None)
    with ol.Program() as program:
        y = ol.layer.dropout(ol.layer.data("x", shape=[50]), rate=0.5)
    feed = {"x": np.ones((1, 50), dtype="float32")}
    with ol.scope.guard(scope):
        assert ol.eval(y, feed).min() == 1.0
        assert ol.eval(y, feed, context=ol.Context(scope, training=True)).min() == 0.0
    assert ol.Executor().run(program, feed, [y], scope=scope, training=True)[0].min() == 0.0


@pytest.mark.mission("F19")
def test_places_are_values_and_each_of_several_must_be_there():
    assert ol.CPUPlace() == ol.CPUPlace()
    assert len({ol.CPUPlace(), ol.CPUPlace()}) == 1
    assert ol.Executor([ol.CPUPlace()]).place == ol.CPUPlace()
    assert ol.CPUPlace().device == torch.device("cpu")
    takers = {
        "Executor": ol.Executor,
        "Context": lambda places: ol.Context(ol.Scope(), places),
        "replace": lambda places: dataclasses.replace(ol.Context(ol.Scope()), place=places),
    }
    for name, take in takers.items():
        for one in (ol.CPUPlace(), [ol.CPUPlace()], (ol.CPUPlace(),)):
            assert take(one).place == ol.CPUPlace(), name
        assert (take([ol.CPUPlace(), ol.CPUPlace()]).place, len(take([ol.CPUPlace(), ol.CPUPlace()]).places)) == (ol.CPUPlace(), 2), name
        for several in ((ol.CPUPlace(), ol.GPUPlace(99)), (ol.GPUPlace(99), ol.CPUPlace())):
            with pytest.raises(ol.ArgumentError, match="^there is no GPU 99: PyTorch sees"):
                take(several)
        with pytest.raises(ol.ArgumentError, match="^a place must be ol.CPUPlace"):
            take([])
        with pytest.raises(ol.ArgumentError, match="^there is no GPU 99: PyTorch sees"):
            take(ol.GPUPlace(99))


@pytest.mark.mission("F21")
def test_gradients_are_made_when_a_program_is_written_and_training_is_a_matter_of_the_run():
    """Two decisions, each of which may be taken without the other."""
    x = {"x": np.arange(1, 101, dtype="float32").reshape(1, 100)}
    with ol.Program(seed=3) as program:
        data = ol.layer.data("x", shape=[100])
        y = ol.layer.dropout(data, rate=0.5)
        cost = ol.op.reduce_sum(ol.op.square(y))

    def run(fetch, training):
        return ol.Executor().run(program, x, fetch, scope=ol.init(program, ol.Scope()), training=training)

    forward = len(program.main.ops)
    evaluated, trained = (run([y], training)[0] for training in (False, True))  # training without a gradient
    assert evaluated.tolist() == x["x"].tolist()
    assert set((trained / x["x"]).ravel().tolist()) == {0.0, 2.0}
    assert len(program.main.ops) == forward
    (slope,) = ol.gradients([cost], [data])
    assert len(program.main.ops) > forward
    (found,) = run([slope], False)  # a gradient without training
    assert found.tolist() == (2 * x["x"]).tolist()
    value, found = run([y, slope], True)
    assert found.tolist() == (2 * value * np.where(value == 0, 0, 2)).tolist()


@pytest.mark.mission("F21")
def test_batch_norm_takes_its_batch_in_a_run_that_trains_and_else_what_it_has_seen():
    """The mode is one of the run, with a gradient or without; a program with an optimizer may be evaluated."""
    with ol.Program() as program:
        data = ol.layer.data("x", shape=[2])
        y = ol.layer.batch_norm(data, name="norm", momentum=0.5)
        ol.optimizer.SGD(0.0001).minimize(ol.layer.mean(y))
        (slope,) = ol.gradients([ol.op.reduce_sum(y)], [data])
    scope, executor = ol.init(program, ol.Scope()), ol.Executor()
    x = np.array([[0.0, 10.0], [2.0, 30.0]], dtype="float32")

    def run(training):
        return executor.run(program, {"x": x}, [y, slope], scope=scope, training=training)

    evaluated, through = run(False)
    np.testing.assert_allclose(evaluated, x, rtol=1e-4)  # of mean 0 and variance 1, as nothing was seen yet
    np.testing.assert_allclose(through, np.ones((2, 2)), rtol=1e-4)
    assert scope["norm.mean"].tolist() == [0.0, 0.0]
    trained, through = run(True)
    np.testing.assert_allclose(trained, [[-1.0, -1.0], [1.0, 1.0]], rtol=1e-4)
    np.testing.assert_allclose(through, np.zeros((2, 2)), atol=1e-4)  # a shift of the batch changes nothing
    assert scope["norm.mean"].tolist() == [0.5, 10.0]
    kept = ol.prune(program, {"y": y})
    scale, bias, mean, variance = (scope[f"norm.{part}"].numpy() for part in ("scale", "bias", "mean", "variance"))
    expected = (x - mean) / np.sqrt(variance + 1e-5) * scale + bias
    np.testing.assert_allclose(run(False)[0], expected, rtol=1e-4)
    np.testing.assert_allclose(executor.run(kept, {"x": x}, ["y"], scope=scope)[0], expected, rtol=1e-4)
    assert scope["norm.mean"].tolist() == mean.tolist() == [0.5, 10.0]


@pytest.mark.mission("F21", "B44")
@pytest.mark.parametrize("run", ["executor", "interpreter", "step", "net", "block"])
def test_the_flag_of_a_run_decides_whether_updates_are_made_and_a_program_with_updates_trains_by_default(run):
    """And nothing is created by it: the ops are the same after every run. Without updates in the program, the default is not to train."""
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", shape=[3])
        y = ol.layer.dropout(ol.layer.fc(x, 50, name="fc", initializer=ol.initializer.constant(1.0)), rate=0.5, name="dropped")
        cost = ol.layer.mean(y)
    plain = program.clone()
    with program:
        ol.optimizer.SGD(0.5).minimize(cost)
    feed = {"x": np.ones((4, 3), "float32")}

    def ran(program, training):
        """The rows after dropout, and the scope."""
        scope = ol.init(program, ol.Scope())
        before, fetch = program.to_bytes(), [y.name]
        if run in ("executor", "interpreter"):
            (value,) = ol.Executor(interpret=run == "interpreter").run(program, feed, fetch, scope=scope, training=training)
        elif run == "step":
            (value,) = ol.Executor().prepare(program, fetch, scope=scope, training=training)(feed)
        else:
            scope["x"] = feed["x"]
            context = None if training is None else ol.Context(scope, training=training)
            (ol.Net(program) if run == "net" else program.main).run(scope, context)
            value = scope[y.name].numpy()
        assert program.to_bytes() == before
        return set(np.unique(value)), scope

    for training in (False, True, None):
        trains = training is not False
        values, scope = ran(program, training)
        assert values == ({0.0, 6.0} if trains else {3.0})
        assert (int(scope["@STEP"]), bool((scope["fc.w"] == 1.0).all())) == ((1, False) if trains else (0, True))
        values, scope = ran(plain, training)
        assert values == ({0.0, 6.0} if training else {3.0})
        assert bool((scope["fc.w"] == 1.0).all())


@pytest.mark.mission("F8", "C28")
def test_what_is_composed_of_operators_is_written_out_when_it_is_called():
    with ol.Program() as program:
        cost = ol.layer.mse(ol.layer.data("x", shape=[3]), ol.layer.data("y", shape=[3]))
    assert [op.type for op in program.main.ops] == ["subtract", "square", "mean"]
    with program:
        ol.gradients([cost], [program.main.vars["x"]])
    assert [op.type for op in ol.prune(program, {"cost": cost}).main.ops] == ["subtract", "square", "mean"]


def test_an_operator_has_fixed_slots_of_which_some_are_optional_or_kept_for_the_gradient():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        w = ol.layer.data("w", shape=[3, 2], batch=None)
        with_bias = ol.op.linear(x, w, ol.layer.data("b", shape=[2], batch=None))
        without = ol.op.linear(x, w)
        loss = ol.op.softmax_with_cross_entropy(without, ol.layer.data("label", shape=[], dtype="int64"))
    assert list(with_bias.op.inputs) == ["x", "w", "bias"]
    assert list(without.op.inputs) == ["x", "w"]
    assert isinstance(loss, ol.Var)
    assert list(loss.op.outputs) == ["loss", "softmax"]
    assert program.main.vars["softmax_with_cross_entropy_0.softmax"].op is loss.op
