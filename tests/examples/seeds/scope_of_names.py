"""Scope document: a scope is an association of a name to variable, and a net runs in the one it is given.

class Scope { Variable* Var(name); const Variable* FindVar(name) const; }      net.Run(&scope)
"""

import numpy

import oarlock as paddle

scope = paddle.Scope()
variable = scope.var("x")
assert scope.var("x") is variable
assert scope.find_var("x") is variable
assert scope.find_var("y") is None
assert "y" not in scope  # FindVar as Contains

net = paddle.Net()
with net.program:
    paddle.op.square(paddle.layer.data("x", shape=[]), name="y")
other = paddle.Scope()
scope.set("x", numpy.array([1, 2], "float32"))
other.set("x", numpy.array([3], "float32"))
net.run(scope)
net.run(other)
assert (scope["y"].tolist(), other["y"].tolist()) == ([1, 4], [9])
