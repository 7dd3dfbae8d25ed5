"""Net design, as reviewed: a scope, a context, and which ops to run.

Scope scope(CPUPlace());  Context context(CPUPlace());  net->Run(&Scope, &context);
virtual bool Run(Scope *scope, OpContext *context, OpIndex begin = -1, OpIndex end = -1) const = 0;
virtual bool InferShape(Scope *scope) = 0;
virtual OpIndex AddOp(const proto::OpDef &def) = 0;
virtual void AddOptimizerOps(const OptAttrs &attrs) = 0;
PlainNet(const NetDef &def);  bool BuildNet(const NetDef &def);
"""

import numpy

import oarlock as paddle
from oarlock.proto import program_pb2 as proto

with paddle.Program() as program:
    paddle.layer.data("x", shape=[2])
net = paddle.Net(program.main.compile())  # PlainNet(def)

definition = proto.OpDesc(type="square")
definition.inputs.add(name="x", vars=["x"])
definition.outputs.add(name="y", vars=["y"])
first = net.add_op(definition)
second = net.add_op("neg", {"x": "y"}, {"y": "z"})
assert (first, second) == (0, 1)

scope = paddle.Scope()
context = paddle.Context(scope, paddle.CPUPlace())
scope.set("x", numpy.array([[1, 2]], "float32"))
assert net.infer_shape(scope)["z"].shape == (1, 2)
net.run(scope, context)
assert scope["z"].tolist() == [[-1, -4]]

scope.set("x", numpy.array([[3, 3]], "float32"))
net.run(scope, context, first, second)
assert (scope["y"].tolist(), scope["z"].tolist()) == ([[9, 9]], [[-1, -4]])
net.run(scope, context, begin=second)
assert scope["z"].tolist() == [[-9, -9]]
