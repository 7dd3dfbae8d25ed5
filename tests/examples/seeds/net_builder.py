"""Net design, merged: NetBuilder.

NetBuilder builder(&net);
Variable* hidden = builder.AddOp("fc", input=image, size=100, activation="sigmoid")
Variable* prediction = builder.AddOp("fc", input=hidden, size=10, activation="sigmoid")
Variable* loss = builder.AddOp("cross_entropy", input=prediction, label)
Variable* avg_loss = builder.AddOp("mean", loss)
builder.BackwardFrom(avg_loss);  builder.AddOptimization(1e-4, "adam");
builder.Run(&scope, &context, /*need_backward*/ true);
"""

import numpy

import oarlock as paddle

net = paddle.Net()
builder = paddle.NetBuilder(net)
with net.program:
    image = paddle.layer.data("image", shape=[784])
    label = paddle.layer.data("label", shape=[], dtype="int64")
hidden = builder.add_op("fc", input=image, size=100, activation="sigmoid")
prediction = builder.add_op("fc", input=hidden, size=10, activation="sigmoid")
loss = builder.add_op("cross_entropy", input=[prediction, label])
avg_loss = builder.add_op("mean", input=loss)
builder.backward_from(avg_loss)
builder.add_optimization(1e-4, "adam")

scope = paddle.Scope()
scope.set("image", numpy.random.default_rng(0).random((32, 784), dtype="float32"))
scope.set("label", numpy.arange(32) % 10)
context = paddle.Context(scope, paddle.CPUPlace(), training=True)
costs = []
for _ in range(10):
    builder.run(scope, context, need_backward=True)
    costs.append(float(scope[avg_loss.name]))
assert costs[-1] < costs[0]
builder.run(scope, context, need_backward=False)
assert int(scope["@STEP"]) == 10
