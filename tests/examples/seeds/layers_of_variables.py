"""Issue 3129, layers, variables, and default scope; operators and variables know each other by name, readers and writers.

def data(name): return paddle.cpp.variable(paddle.cpp.default_scope(), name)
def fc(input, output_size):
  output = paddle.cpp.variable(paddle.cpp.default_scope())
  W = paddle.cpp.variable(paddle.cpp.default_scope(), label="parameter")
  b = paddle.cpp.variable(paddle.cpp.default_scope(), label="parameter")
  paddle.cpp.operator("FC", read={input, W, b}, output_size, write={output})
  return output
def mse(input1, input2):
  output = paddle.cpp.variable(paddle.cpp.default_scope())
  paddle.cpp.operator("MSE", read={input1, input2}, write={output})
  return output
class OperatorBase { vector<string> inputs_;  vector<string> outputs_; }
class Variable { list<Operator*> readers_;  list<Operator*> writers_; };
"""

import numpy

import oarlock as paddle


def data(name, shape):
    return paddle.cpp.variable(paddle.cpp.default_scope(), name, shape=shape)


def fc(input, output_size):
    output = paddle.cpp.variable(paddle.cpp.default_scope())
    W = paddle.cpp.variable(paddle.cpp.default_scope(), label="parameter", shape=[input.shape[-1], output_size])  # noqa: N806
    b = paddle.cpp.variable(paddle.cpp.default_scope(), label="parameter", shape=[output_size])
    paddle.cpp.operator("linear", read={"x": input, "w": W, "bias": b}, write={"out": output})
    return output


def mse(input1, input2):
    output, difference, squared = (paddle.cpp.variable(paddle.cpp.default_scope()) for _ in range(3))
    paddle.cpp.operator("subtract", read={"x": input1, "y": input2}, write={"z": difference})
    paddle.cpp.operator("square", read={"x": difference}, write={"y": squared})
    paddle.cpp.operator("mean", read={"x": squared}, write={"y": output})
    return output


with paddle.scope.guard(paddle.Scope()) as scope, paddle.Program() as program:
    x, y = data("x", ["n", 3]), data("y", ["n", 2])
    predict = fc(x, 2)
    cost = mse(predict, y)
    assert [op.type for op in x.readers] == ["linear"]
    assert [op.type for op in predict.writers] == ["linear"]
    assert [var.name for var in predict.op.reads] == [var.name for var in (x, *program.parameters())]
    assert set(scope) == set(program.main.vars)
    paddle.init(program, scope)
    scope.set("x", numpy.zeros((4, 3), "float32"))
    scope.set("y", numpy.full((4, 2), 3, "float32"))
    paddle.run_block(program.main, scope)
    assert float(scope[cost.name]) == 9
