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
    with pytest.raises(ol.ScopeError) as caught:
        Variable(object(), Scope(), "x")
    assert str(caught.value) == "only a scope makes a variable: scope.var(name)"


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
    scope = root.new_scope()
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
    ):
        with pytest.raises(ol.ScopeError) as caught:
            use()
        assert str(caught.value) == "this scope was dropped"


def test_a_child_whose_parent_was_dropped_says_so():
    root = Scope()
    child = root.new_scope()
    root.drop()
    with pytest.raises(ol.ScopeError, match="^this scope was dropped$"):
        child.find_var("x")


@pytest.mark.mission("A8", "A9")
def test_a_handle_outlives_its_scope_only_to_say_so():
    scope = Scope()
    scope.set("x", 1.0)
    handle = scope.var("x")
    scope.drop()
    uses = {
        "value": lambda: handle.value,
        "value =": lambda: setattr(handle, "value", 2.0),
        "is_set": lambda: handle.is_set,
        "state": lambda: handle.state,
        "estimated": lambda: handle.estimated,
        "estimated =": lambda: setattr(handle, "estimated", True),
        "get": lambda: handle.get(torch.Tensor),
        "get_mutable": lambda: handle.get_mutable(torch.Tensor),
        "is_type": lambda: handle.is_type(torch.Tensor),
        "reset": lambda: handle.reset(),
        "give": lambda: handle.give(2.0),
        "held": lambda: handle.held,
    }
    ours = {
        "read",
        "is_own",
        "lend",
        "take",
        "hold",
        "settle",
        "owner",
        "expect_training",
    }  # of runs, which have seen that the scope is there
    assert {name.partition(" ")[0] for name in uses} == {name for name in dir(Variable) if not name.startswith("_")} - ours
    for name, use in uses.items():
        with pytest.raises(ol.ScopeError) as caught:
            use()
        assert str(caught.value) == '"x" belonged to a scope that was dropped', name
    assert repr(handle) == "<Variable of a scope that was dropped>"
    with pytest.raises(AttributeError, match="a Variable has no attribute 'values'"):
        handle.values


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
    watch = weakref.ref(scope.var("fc_0.w").held)  # asked so that no claim ends
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
    assert str(caught.value) == '"x" belongs to its scope alone, and is not copied: scope.set(name, variable.value)'


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
