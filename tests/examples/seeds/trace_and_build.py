"""Issue 3129, paddle::operator::Net.

static Net* TraceAndBuild(Variable* output, Scope* scope) {...}
Net::TraceAndBuild(output_variable, DefaultScope()).Run(DefaultScope());
"""

import numpy

import oarlock as paddle

with paddle.scope.guard(paddle.Scope()), paddle.Program():
    x = paddle.layer.data("x", shape=[3])
    hidden = paddle.layer.fc(x, 3, act="tanh", name="hidden")
    output_variable = paddle.layer.mean(hidden + x)  # a short way and a long way from x
    paddle.layer.fc(hidden, 1, name="aside")

    paddle.cpp.default_scope().set("x", numpy.ones((2, 3), "float32"))
    paddle.Net.trace_and_build(output_variable, paddle.cpp.default_scope()).run(paddle.cpp.default_scope())

    scope = paddle.scope.current()
    assert float(scope[output_variable.name]) == float((scope[hidden.name] + 1).mean())
    assert "aside.w" not in scope

    net = paddle.Net.trace_and_build(output_variable, scope)
    assert [op.type for op in net] == ["linear", "tanh", "add", "mean"]
