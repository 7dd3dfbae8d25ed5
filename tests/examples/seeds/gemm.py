"""Framework document, operators as functions: an operator that calls another, with one value or two.

gemm(X, W, scale, act=LeRU) {
  unactivated = scale * X * W
  if !act { return unactivated }
  return unactivated, act(unactivated, cap)
}
"""

import oarlock as paddle

with paddle.Program() as program:
    x = paddle.minibatch([[1, -1]])
    w = paddle.Variable(value=[[1.0, 2.0], [2.0, 1.0]])
    scale = paddle.var(3.0, param=True)  # attributes may be variables too
    unactivated, activated = paddle.op.gemm(x, w, scale, act=paddle.op.relu)
    alone = paddle.op.gemm(x, w, 2.0)
    paddle.append_backward(paddle.layer.mean(activated))

with paddle.scope.guard(paddle.Scope()):
    assert paddle.eval(unactivated).tolist() == [[-3, 3]]
    assert paddle.eval(activated).tolist() == [[0, 3]]
    assert paddle.eval(alone).tolist() == [[-2, 2]]
    assert paddle.eval(program.main.var(f"{scale.name}@GRAD")).tolist() == [0.5]
assert [op.type for op in program.main.ops if op.role.name == "FORWARD"].count("linear") == 2  # a composition expands
