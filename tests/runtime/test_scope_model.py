"""A scope against the simplest thing that could be one: a list of dictionaries."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import oarlock as ol

STEPS = 10_000
EXAMPLES = 100
NAMES = st.sampled_from(["w", "b", "x", "fc_0.w", "@STEP"])


class Level:
    """A model of a scope: names to values, and a parent."""

    def __init__(self, parent=None):
        self.parent = parent
        self.values = {}
        self.children = []
        self.dropped = False

    def find(self, name):
        level = self
        while level is not None:
            if name in level.values:
                return level.values[name]
            level = level.parent
        return None

    def drop(self):
        self.dropped = True
        for child in self.children:
            child.drop()
        self.children = []


class ScopeAgainstDictionaries(RuleBasedStateMachine):
    steps = 0

    @initialize()
    def begin(self):
        self.pairs = [(ol.Scope(), Level())]
        self.handles = []

    def choose(self, number):
        return self.pairs[number % len(self.pairs)]

    @rule(number=st.integers(0, 50), name=NAMES, value=st.integers())
    def write(self, number, name, value):
        scope, level = self.choose(number)
        if level.dropped:
            return self.expect_refusal(lambda: scope.var(name))
        variable = scope.var(name)
        variable.value = value
        level.values[name] = value
        self.handles.append((variable, level, name))
        return None

    @rule(number=st.integers(0, 50), name=NAMES)
    def declare(self, number, name):
        scope, level = self.choose(number)
        if level.dropped or name in level.values:
            return self.expect_refusal(lambda: scope.new_var(name))
        scope.new_var(name)
        level.values[name] = None
        return None

    @rule(number=st.integers(0, 50), name=NAMES)
    def read(self, number, name):
        scope, level = self.choose(number)
        if level.dropped:
            return self.expect_refusal(lambda: scope.find_var(name))
        found, expected = scope.find_var(name), level.find(name)
        assert (found.value if found is not None and found.is_set else None) == expected
        local = scope.find_local_var(name)
        assert (local is not None) == (name in level.values)
        return None

    @rule(number=st.integers(0, 50))
    def nest(self, number):
        scope, level = self.choose(number)
        if level.dropped:
            return self.expect_refusal(scope.new_scope)
        child = Level(level)
        level.children.append(child)
        self.pairs.append((scope.new_scope(), child))
        return None

    @rule(number=st.integers(0, 50))
    def drop(self, number):
        scope, level = self.choose(number)
        if level.parent is None:
            return
        scope.drop()
        if level in level.parent.children:
            level.parent.children.remove(level)
        level.drop()

    @rule(number=st.integers(0, 200))
    def use_a_handle(self, number):
        if self.handles:
            variable, level, name = self.handles[number % len(self.handles)]
            if level.dropped:
                self.expect_refusal(lambda: variable.value)
            else:
                assert variable.value == level.values[name]

    def expect_refusal(self, call):
        try:
            call()
        except ol.ScopeError:
            return
        raise AssertionError("nothing was refused")

    @invariant()
    def the_names_and_children_are_those_of_the_model(self):
        type(self).steps += 1
        for scope, level in getattr(self, "pairs", []):
            if not level.dropped:
                assert list(scope) == list(level.values)
                assert len(scope.children) == len(level.children)


def test_a_scope_does_what_dictionaries_do_for_ten_thousand_steps():
    ScopeAgainstDictionaries.steps = 0
    profile = settings(max_examples=EXAMPLES, stateful_step_count=STEPS // EXAMPLES, deadline=None, derandomize=True, database=None)
    while ScopeAgainstDictionaries.steps < STEPS:
        run_state_machine_as_test(ScopeAgainstDictionaries, settings=profile)
