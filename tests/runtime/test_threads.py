"""One training program, sixteen threads, sixteen scopes under one parent that all read."""

import threading

import numpy as np
import pytest
import torch

import oarlock as ol

THREADS = 16
RUNS = 200


def program_that_reads_a_shared_parameter():
    with ol.Program(seed=5) as program:
        x = ol.layer.data("x", shape=[4])
        y = ol.layer.data("y", shape=[1])
        hidden = ol.layer.fc(x, 8, act="tanh", name="shared")
        cost = ol.layer.mse(ol.layer.fc(hidden, 1, name="own"), y)
        own = [var for var in program.parameters() if var.name.startswith("own")]
        ol.optimizer.Momentum(0.05).minimize(cost, parameters=own)
        program.targets["cost"] = cost
    return program


def train_one(program, executor, scope, seed):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(8, 4)).astype("float32")
    costs = [executor.run(program, {"x": x, "y": x[:, :1]}, ["cost"], scope=scope)[0] for _ in range(RUNS)]
    return costs, {name: scope[name].clone() for name in scope}


def scopes_under_one_parent(program):
    parent = ol.init(program, ol.Scope())
    scopes = []
    for _ in range(THREADS):
        scope = parent.new_scope()
        for var in program.persistables():
            if not var.name.startswith("shared"):
                scope.set(var.name, parent[var.name].clone())
        scopes.append(scope)
    return parent, scopes


def test_threads_that_train_in_scopes_of_their_own_get_the_bits_of_one_after_another():
    program = program_that_reads_a_shared_parameter()
    executor = ol.Executor()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        _, scopes = scopes_under_one_parent(program)
        serial = [train_one(program, executor, scope, seed) for seed, scope in enumerate(scopes)]
        parent, scopes = scopes_under_one_parent(program)
        shared = {name: parent[name].clone() for name in parent}
        found = [None] * THREADS

        def work(number):
            torch.set_num_threads(1)
            found[number] = train_one(program, executor, scopes[number], number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        torch.set_num_threads(before)
    for (costs, values), (expected_costs, expected_values) in zip(found, serial, strict=True):
        assert costs == expected_costs
        assert costs[-1] < costs[0]
        assert all(torch.equal(values[name], expected_values[name]) for name in expected_values)
    assert all(torch.equal(parent[name], shared[name]) for name in shared)
    assert all(not scope.children for scope in scopes)


@pytest.mark.mission("A36")
@pytest.mark.parametrize("use", [lambda scope: scope.var("x"), lambda scope: scope.new_scope("child")])
def test_a_scope_that_one_thread_is_in_makes_another_wait(use):
    scope = ol.Scope()
    done = threading.Event()
    other = threading.Thread(target=lambda: (use(scope), done.set()))
    with scope._lock:
        other.start()
        assert not done.wait(0.2)
    assert done.wait(5.0)
    other.join()
