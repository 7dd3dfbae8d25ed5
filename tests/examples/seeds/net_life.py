"""Net design, merged: the life of a net.

Scope scope(CPUPlace());  scope.CreateVariables(net_desc);  scope.InitVariables(net_desc);
net = CreateNet(net_desc);  net.AddOp(add);  net.AddOp(fc);  net.AddBackwardOps();  net.AddOptimizerOps();  net.Run(&scope);
"""

import numpy

import oarlock as paddle

with paddle.Program() as program:
    paddle.layer.data("image", shape=[3])
    paddle.layer.data("shift", shape=[3], batch=None)
    weight = paddle.cpp.variable(paddle.Scope(), "weight", label="parameter", shape=[3, 1])
net_desc = program.main.compile()

net = paddle.Net(net_desc)
net.add_op("add", {"x": "image", "y": "shift"}, {"z": "moved"})
net.add_op("linear", {"x": "moved", "w": "weight"}, {"out": "fc"})
net.add_op("square", {"x": "fc"}, {"y": "squared"})
net.add_op("mean", {"x": "squared"}, {"y": "cost"})
net.add_backward_ops("cost")
net.add_optimizer_ops({"type": "sgd", "learning_rate": 0.05})

scope = paddle.Scope()
net.create_variables(scope)
net.init_variables(scope)
scope.set("image", numpy.ones((4, 3), "float32"))
scope.set("shift", numpy.ones(3, "float32"))
costs = []
for _ in range(5):
    net.run(scope)
    costs.append(float(scope["cost"]))
assert costs == sorted(costs, reverse=True)
assert costs[-1] < 0.5 * costs[0]
