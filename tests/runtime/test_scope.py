import contextlib
import copy
import gc
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest
import torch

import oarlock as ol
from oarlock.runtime import Scope, Variable
from oarlock.runtime.scope import lock_of_writing
from oarlock.runtime.variable import Lease


def test_a_child_reads_what_its_parents_have():
    root = Scope()
    root.set("x", 1.0)
    leaf = root.new_scope().new_scope()
    assert leaf["x"] == 1.0
    assert leaf.get("x") == 1.0
    assert leaf.find_var("x") is root.find_var("x")
    assert "x" in leaf
    assert leaf.find_local_var("x") is None


def test_a_child_scope_shadows_but_never_overwrites():
    root = Scope()
    root.set("x", 1.0)
    child = root.new_scope()
    assert child.var("x") is not root.var("x")
    assert not child.var("x").is_set
    child.set("x", 2.0)
    assert (child["x"], root["x"]) == (2.0, 1.0)
    assert child.find_local_var("x") is child.find_var("x") is child.var("x")


def test_a_shadow_without_a_value_hides_the_parents():
    root = Scope()
    root.set("x", 1.0)
    child = root.new_scope()
    child.var("x")
    assert child.get("x") is None
    with pytest.raises(ol.UnsetVarError):
        _ = child["x"]


def test_finding_makes_nothing():
    scope = Scope()
    assert scope.find_var("x") is None
    assert scope.find_local_var("x") is None
    assert scope.get("x", 3) == 3
    assert "x" not in scope
    assert list(scope) == []


def test_making_finds_what_is_there():
    scope = Scope()
    assert scope.var("x") is scope.var("x")


def test_siblings_and_roots_share_nothing():
    root, other = Scope(), Scope()
    one, two = root.new_scope(), root.new_scope()
    one.set("x", 1.0)
    assert all("x" not in scope for scope in (root, two, other))


def test_a_live_child_keeps_its_parent_alive():
    root = Scope()
    root.set("x", 1.0)
    child = root.new_scope()
    watch = weakref.ref(root)
    del root
    gc.collect()
    assert child["x"] == 1.0
    assert watch() is child.parent


def test_scopes_that_nobody_holds_are_freed_with_all_they_hold():
    root = Scope()
    root.new_scope("a").new_scope("b").set("x", torch.zeros(3))
    watches = [weakref.ref(scope) for scope in (root, root.children[0], root.children[0].children[0])]
    del root
    gc.collect()
    assert [watch() for watch in watches] == [None] * 3


def test_names_and_children_are_listed_in_the_order_of_their_making():
    scope = Scope()
    names = ["c", "a", "b", "aa", "z", "y"]
    for name in names:
        scope.var(name)
    scope.set("c", 1.0)
    children = [scope.new_scope(name) for name in ("two", "one", "three")]
    assert list(scope) == names
    assert len(scope) == 6
    assert scope.children == children


def test_a_scope_without_variables_is_still_a_scope():
    assert bool(Scope())


def test_only_a_scope_makes_a_variable():
    for arguments, keywords in (((), {}), (("x",), {}), ((object(), Scope(), "x"), {}), ((), {"value": 3})):
        with pytest.raises(ol.ScopeError) as caught:
            Variable(*arguments, **keywords)
        assert caught.value.message == "variables are created by scopes: use scope.var(name)"
        assert "Variable(*arguments, **keywords)" in str(caught.value)


def test_a_value_that_is_not_there_is_named():
    scope = Scope()
    with pytest.raises(ol.UnsetVarError) as caught:
        _ = scope["x"]
    assert str(caught.value) == 'no variable "x" in this scope or a parent'
    scope.var("b")
    scope.var("a")
    with pytest.raises(ol.UnsetVarError) as caught:
        _ = scope["x"]
    assert str(caught.value) == 'no variable "x" in this scope or a parent\n      there are: b, a'


def test_a_variable_without_a_value_is_named():
    scope = Scope()
    with pytest.raises(ol.UnsetVarError) as caught:
        _ = scope.var("x").value
    assert str(caught.value) == '"x" is declared, but has no value yet'


def test_dropping_lets_go_of_every_value_here_and_below():
    root = Scope()
    middle = root.new_scope("middle")
    leaf = middle.new_scope("leaf")
    tensors = [torch.zeros(1), torch.ones(1)]
    watches = [weakref.ref(tensor) for tensor in tensors]
    middle.var("x").value, leaf.var("y").value = tensors
    middle.drop()
    del tensors
    gc.collect()
    assert [watch() for watch in watches] == [None, None]
    assert root.children == []
    assert (root.dropped, middle.dropped, leaf.dropped) == (False, True, True)


def test_dropping_one_child_leaves_the_others():
    root = Scope()
    one, two, three = (root.new_scope(name) for name in ("one", "two", "three"))
    two.drop()
    assert root.children == [one, three]
    two.drop()
    assert root.children == [one, three]


def test_a_scope_that_was_dropped_is_not_used():
    root = Scope()
    scope = root.new_scope("step")
    scope.set("x", 1.0)
    scope.drop()
    for use in (
        lambda: scope.var("y"),
        lambda: scope.find_var("x"),
        lambda: scope.find_local_var("x"),
        lambda: scope["x"],
        lambda: scope.get("x"),
        lambda: scope.set("x", 2.0),
        lambda: scope.new_scope(),
        lambda: "x" in scope,
        lambda: scope.new_var("y"),
        lambda: scope.new_var(),
        lambda: scope.erase("x"),
        lambda: scope.find_or_create_scope("a"),
        lambda: scope.delete_scope(root),
        lambda: scope.parent,
        lambda: scope.children,
        lambda: len(scope),
        lambda: list(scope),
        lambda: scope.__setitem__("x", 1.0),
    ):
        with pytest.raises(ol.ScopeError) as caught:
            use()
        assert str(caught.value) == "this scope was dropped"
    assert bool(scope)
    assert repr(scope) == "<dropped Scope 'step'>"
    assert (scope.dropped, root.children) == (True, [])
    scope.drop()


def test_a_run_has_no_scope_that_was_dropped():
    with ol.Program() as program:
        y = ol.layer.data("x", shape=[1]) * 2.0
    feed = {"x": np.ones((1, 1), "float32")}
    scope = Scope()
    scope.drop()
    executor = ol.Executor()
    for use in (
        lambda: ol.Context(scope),
        lambda: executor.run(program, feed, [y], scope=scope),
        lambda: executor.eval(program, [y], feed, scope=scope),
        lambda: executor.prepare(program, [y], scope=scope),
        lambda: ol.run_block(program.main, scope),
    ):
        with pytest.raises(ol.ScopeError) as caught:
            use()
        assert caught.value.message == "this scope was dropped"


def test_a_child_whose_parent_was_dropped_says_so():
    root = Scope()
    child = root.new_scope()
    root.drop()
    with pytest.raises(ol.ScopeError, match="^this scope was dropped$"):
        child.find_var("x")


def uses_of(handle):
    """Every way to use a handle, by its name."""
    lease = weakref.ref(Lease(threading.RLock()))
    return {
        "value": lambda: handle.value,
        "value =": lambda: setattr(handle, "value", 2.0),
        "is_set": lambda: handle.is_set,
        "state": lambda: handle.state,
        "trainable": lambda: handle.trainable,
        "trainable =": lambda: setattr(handle, "trainable", True),
        "estimated": lambda: handle.estimated,
        "estimated =": lambda: setattr(handle, "estimated", True),
        "get": lambda: handle.get(torch.Tensor),
        "get_mutable": lambda: handle.get_mutable(torch.Tensor),
        "is_type": lambda: handle.is_type(torch.Tensor),
        "reset": lambda: handle.reset(),
        "give": lambda: handle.give(2.0),
        "held": lambda: handle.held,
        "held =": lambda: setattr(handle, "held", 2.0),
        "hold": lambda: handle.hold(torch.zeros(1)),
        "owner": lambda: handle.owner,
        "owner =": lambda: setattr(handle, "owner", 1),
        "is_own": lambda: handle.is_own,
        "lend": lambda: handle.lend(),
        "read": lambda: handle.read(lease),
        "alone": lambda: handle.alone(1.0),
        "settle": lambda: handle.settle(ol.DType.INT64),
        "expect_training": lambda: handle.expect_training(),
    }


ENDS = {
    "drop": (lambda parent, scope: scope.drop(), "belonged to a scope that was dropped", "<Variable of a dropped scope>"),
    "drop what is around": (lambda parent, scope: parent.parent.drop(), "belonged to a scope that was dropped", None),
    "delete": (lambda parent, scope: parent.delete_scope(scope), "belonged to a scope that was dropped", None),
    "erase": (lambda parent, scope: scope.erase("x"), "was erased from its scope", "<erased Variable>"),
}


@pytest.mark.mission("A8", "A9")
@pytest.mark.parametrize(("end", "why", "text"), list(ENDS.values()), ids=list(ENDS))
def test_a_handle_outlives_its_variable_only_to_say_so(end, why, text):
    parent = Scope().new_scope()
    scope = parent.new_scope()
    scope.set("x", 1.0)
    handle = scope.var("x")
    uses = uses_of(handle)
    assert {name.partition(" ")[0] for name in uses} == {name for name in dir(Variable) if not name.startswith("_")}
    end(parent, scope)
    for name, use in uses.items():
        with pytest.raises(ol.ScopeError) as caught:
            use()
        assert str(caught.value) == f'"x" {why}', name
    assert repr(handle) == (text or "<Variable of a dropped scope>")
    assert isinstance(handle, Variable)
    with pytest.raises(AttributeError, match="a Variable has no attribute 'values'"):
        handle.values


def test_what_was_erased_may_be_made_again_and_has_nothing_of_what_it_was():
    scope = Scope()
    scope.set("x", 1.0)
    old = scope.var("x")
    old.estimated = False
    scope.erase("x")
    scope.set("x", 2.0)
    assert (scope["x"], scope.var("x").estimated, scope.frozen) == (2.0, False, frozenset())
    with pytest.raises(ol.ScopeError, match='^"x" was erased from its scope$'):
        old.value = 3.0
    scope.drop()
    with pytest.raises(ol.ScopeError, match='^"x" was erased from its scope$'):
        old.value


def test_a_step_that_was_prepared_finds_what_was_erased_and_made_again():
    with ol.Program() as program:
        held = program.main.new_var("held", ol.DType.FLOAT32, (), persistable=True)
        y = ol.op.add(held, held)
    around = Scope()
    around.set("held", 5.0)
    scope = around.new_scope()
    scope.set("held", 1.0)
    step = ol.Executor().prepare(program, [y], scope=scope)
    assert [step({})[0] for _ in range(2)] == [2.0, 2.0]
    scope.erase("held")
    assert [step({})[0] for _ in range(2)] == [10.0, 10.0]
    scope.set("held", 2.0)
    assert [step({})[0] for _ in range(2)] == [4.0, 4.0]
    scope.erase("held")
    scope.set("held", 3.0)
    assert [step({})[0] for _ in range(2)] == [6.0, 6.0]
    scope.erase("held")
    around.erase("held")
    with pytest.raises(ol.UnsetVarError, match='^add reads "held", which has no value\n'):
        step({})


def test_a_kernel_that_fails_in_a_scope_that_it_dropped_is_what_is_told():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[3])
        held = program.main.new_var("held", ol.DType.FLOAT32, (3,), persistable=True)
        y = ol.op.add(x, held)
    scope = Scope()
    scope.set("held", torch.zeros(3))
    step = ol.Executor().prepare(program, [y], scope=scope)

    def fail(values):
        scope.drop()
        raise ol.KernelError("it failed")

    step._run = fail
    with pytest.raises(ol.KernelError, match="^it failed$"):
        step({"x": np.zeros((1, 3), "float32")})


@pytest.mark.mission("A8", "A9")
@pytest.mark.parametrize("end", ["drop", "drop the parent", "forget"])
def test_a_handle_does_not_keep_the_bytes_of_a_scope_that_has_gone(end):
    parent = Scope()
    scope = parent.new_scope()
    scope.set("x", np.zeros(4))
    handle = scope.var("x")
    watch = weakref.ref(handle.value)
    assert watch() is not None
    if end == "drop":
        scope.drop()
    elif end == "drop the parent":
        parent.drop()
    else:
        del parent, scope
        gc.collect()
    assert watch() is None
    with pytest.raises(ol.ScopeError, match='^"x" belonged to a scope that was dropped$'):
        handle.value


def test_a_step_that_was_prepared_does_not_keep_the_bytes_of_a_scope_that_was_dropped():
    with ol.Program(seed=1) as program:
        cost = ol.layer.mean(ol.layer.fc(ol.layer.data("x", shape=[3]), 2))
        ol.optimizer.SGD(0.5).minimize(cost)
    scope = ol.init(program, Scope())
    step = ol.Executor().prepare(program, [cost], scope=scope)
    feed = {"x": np.ones((2, 3), "float32")}
    step(feed)
    step(feed)
    watch = weakref.ref(scope.var("fc_0.w").held)  # asked so that no lease ends
    assert watch() is not None
    scope.drop()
    assert watch() is None
    with pytest.raises(ol.ScopeError, match="this scope was dropped"):
        step(feed)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_a_variable_is_not_copied_out_of_its_scope(way):
    scope = Scope()
    scope.set("x", 1.0)
    with pytest.raises(ol.ScopeError) as caught:
        way(scope.var("x"))
    assert str(caught.value) == '"x" belongs to its scope and cannot be copied: use scope.set(name, variable.value)'


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_a_scope_is_not_copied(way):
    scope = Scope()
    scope.set("x", 1.0)
    with pytest.raises(ol.ScopeError) as caught:
        way(scope)
    assert caught.value.message == "a scope cannot be copied: its variables belong to it alone"
    assert caught.value.hint == "for name in scope: other.set(name, scope[name]), where other = ol.Scope()"
    gc.collect()
    assert scope["x"] == 1.0


@pytest.mark.parametrize("name", [3, None, b"x", ["x"], True], ids=repr)
def test_a_name_is_text(name):
    scope = Scope()
    uses = {
        "var": lambda: scope.var(name),
        "set": lambda: scope.set(name, 1.0),
        "[] =": lambda: scope.__setitem__(name, 1.0),
        "find_var": lambda: scope.find_var(name),
        "find_local_var": lambda: scope.find_local_var(name),
        "get": lambda: scope.get(name),
        "[]": lambda: scope[name],
        "erase": lambda: scope.erase(name),
    }
    if name is not None:
        uses["new_var"] = lambda: scope.new_var(name)
    for way, use in uses.items():
        with pytest.raises(ol.ArgumentError) as caught:
            use()
        assert caught.value.message == f"a variable's name must be a str, not {type(name).__name__} {name!r}", way
        assert caught.value.location.file.endswith("test_scope.py"), way
    for use in (lambda: scope.new_scope(name), lambda: scope.find_or_create_scope(name)):
        with pytest.raises(ol.ArgumentError) as caught:
            use()
        assert caught.value.message == f"a scope's name must be a str, not {type(name).__name__} {name!r}"
    assert name not in scope
    assert (list(scope), scope.children) == ([], [])


def test_a_variable_of_a_program_is_asked_for_by_its_name():
    with ol.Program():
        x = ol.layer.data("x", shape=[1])
    with pytest.raises(ol.ArgumentError) as caught:
        Scope()[x]
    assert caught.value.message == "a variable's name must be a str, not Var <Var main/x float32[n, 1]>"
    assert caught.value.hint == 'its name is "x"'


@pytest.mark.parametrize("end", [lambda parent, child: parent.delete_scope(child), lambda parent, child: parent.erase("x")])
def test_a_run_that_is_waited_for_may_ask_for_variables_meanwhile(end):
    parent = Scope()
    child = parent.new_scope()
    lease = Lease(lock_of_writing(parent))
    for scope in (parent, child):
        scope.set("x", 1.0)
        scope.var("x").read(weakref.ref(lease))
    asked = threading.Event()
    with lease.lock:  # as a run holds it that writes
        ending = threading.Thread(target=end, args=(parent, child))
        ending.start()
        ending.join(0.2)
        assert ending.is_alive()
        asking = threading.Thread(target=lambda: (parent.var("y"), asked.set()))
        asking.start()
        assert asked.wait(5.0)
    for thread in (ending, asking):
        thread.join()


def test_nothing_public_makes_a_variable_but_a_scope():
    scope = Scope()
    taken = scope.var("x")
    made = []
    for name in (name for name in dir(Variable) if not name.startswith("_") and callable(getattr(Variable, name))):
        for arguments in ((), (scope, "y"), (scope,), ("y",)):
            with contextlib.suppress(Exception):
                made.append((name, getattr(Variable, name)(*arguments)))
    assert [name for name, result in made if isinstance(result, Variable)] == []
    assert list(scope) == ["x"]
    assert scope.var("x") is taken


def test_a_handle_does_not_keep_its_scope_alive():
    scope = Scope()
    handle = scope.var("x")
    del scope
    gc.collect()
    with pytest.raises(ol.ScopeError, match='^"x" belonged to a scope that was dropped$'):
        _ = handle.value


@pytest.fixture
def restless():
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_threads_that_share_a_scope_make_each_variable_once():
    scope = Scope()
    start = threading.Barrier(8)
    made: list[list[Variable]] = []

    def work():
        start.wait()
        made.append([scope.var(f"v{number}") for number in range(200)])
        for _ in range(50):
            scope.new_scope().drop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(scope) == 200
    assert scope.children == []
    assert len(made) == 8
    assert all(variables == made[0] for variables in made)
