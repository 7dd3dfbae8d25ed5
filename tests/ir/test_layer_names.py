"""The layers of ops, by the names of what they read and define."""

import oarlock as ol
from oarlock.ir.layer_names import layer_of, layer_paths, runs


def stack(layers: int = 2) -> ol.Program:
    with ol.Program(seed=0) as program:
        hidden = ol.layer.data("x", shape=[4])
        for number in range(layers):
            hidden = ol.layer.fc(hidden, 4, act="relu", name=f"stack.{number}.first")
            hidden = ol.layer.fc(hidden, 4, act="relu", name=f"stack.{number}.second")
        cost = ol.layer.mean(ol.layer.fc(hidden, 1, name="head"))
        ol.optimizer.SGD(0.1).minimize(cost)
    return program


def test_an_op_is_of_the_layer_of_its_parameters_and_what_is_between_of_what_both_sides_share():
    ops = [op for op in stack().main.ops if op.role is ol.ir.Role.FORWARD]
    assert [(op.type, ".".join(path)) for op, path in zip(ops, layer_paths(ops), strict=True)] == [
        ("linear", "stack.0.first"),
        ("relu", "stack.0"),
        ("linear", "stack.0.second"),
        ("relu", "stack"),
        ("linear", "stack.1.first"),
        ("relu", "stack.1"),
        ("linear", "stack.1.second"),
        ("relu", ""),
        ("linear", "head"),
        ("mean", ""),
    ]


def test_gradients_updates_and_commits_are_of_the_layers_that_they_are_for():
    found: dict[str, set[str]] = {}
    for op in stack(1).main.ops:
        found.setdefault(op.type, set()).add(".".join(layer_of(op)))
    layers = {"stack.0.first", "stack.0.second", "head"}
    assert found["linear_dw"] == found["linear_dbias"] == found["sgd"] == layers
    assert found["linear_dx"] == layers - {"stack.0.first"}
    assert found["relu_dx"] == found["mean_dx"] == {""}
    assert found["assign"] == {*layers, ""}


def test_runs_are_cut_where_the_next_part_of_the_name_changes():
    paths = [("a", "b", "c"), ("a", "b", "d"), ("a", "e"), (), ("f",), ("f",), ("a",)]
    assert list(runs(paths, 0, 7, 0)) == [(("a",), 0, 3), ((), 3, 4), (("f",), 4, 6), ((), 6, 7)]
    assert list(runs(paths, 0, 3, 1)) == [(("a", "b"), 0, 2), ((), 2, 3)]
    assert list(runs(paths, 0, 2, 2)) == [((), 0, 1), ((), 1, 2)]


def test_a_name_of_very_many_parts_has_an_end():
    with ol.Program() as program:
        ol.layer.fc(ol.layer.data("x", shape=[2]), 2, name=".".join("p" * 100))
    assert len(layer_of(program.main.ops[0])) == 32
