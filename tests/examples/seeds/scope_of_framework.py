"""Framework document, scope.

paddle.scope.current();  paddle.scope.global()
class Scope { Scope();  Variable* FindVar(name);  Variable* CreateVar(name, Variable*);
  Scope* CreateScope(name);  void DeleteScope(Scope*);  }
"""

import pytest

import oarlock as paddle

assert paddle.scope.global_scope().parent is None  # `global` is a keyword of Python
outside = paddle.scope.current()
scope = paddle.Scope()
with paddle.scope.guard(scope):
    assert paddle.scope.current() is scope
assert paddle.scope.current() is outside

assert scope.find_var("x") is None
x = scope.var("x")  # CreateVar: finds or creates
assert scope.var("x") is x
step = scope.find_or_create_scope("step")
assert scope.find_or_create_scope("step") is step
assert step.find_var("x") is x
anonymous = scope.new_scope()
assert scope.children == [step, anonymous]
scope.delete_scope(step)
assert scope.children == [anonymous]
with pytest.raises(paddle.ScopeError, match="not a child"):
    scope.delete_scope(step)
