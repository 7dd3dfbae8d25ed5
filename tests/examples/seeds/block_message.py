"""Block document, the binary executable file format.

message BlockDesc { repeated VarDesc vars = 1; repeated OpDesc ops = 2; }
BlockDesc { vars = { x, h, fc_out, hidden_out, sum, act }  ops = { matmul, add_two, sigmoid } }
OpDesc { inputs = {0}  outputs = {5, 3}  attrs {...} }
"""

import numpy

import oarlock as pd

with pd.Program() as program:
    x, h, w, u = (
        pd.layer.data(name, shape=shape, batch=None) for name, shape in (("x", [1, 2]), ("h", [1, 2]), ("w", [2, 2]), ("u", [2, 2]))
    )
    fc_out = pd.op.linear(x, w, name="fc_out")
    hidden_out = pd.op.linear(h, u, name="hidden_out")
    total = pd.op.add(fc_out, hidden_out, name="sum")
    act = pd.op.sigmoid(total, name="act")

desc = program.main.compile()
assert [var.name for var in desc.vars] == ["x", "h", "w", "u", "fc_out", "hidden_out", "sum", "act"]
assert [op.type for op in desc.ops] == ["linear", "linear", "add", "sigmoid"]
assert [(slot.name, list(slot.vars)) for slot in desc.ops[2].inputs] == [("x", ["fc_out"]), ("y", ["hidden_out"])]  # names, not indices

net = pd.Net(type(desc).FromString(desc.SerializeToString()))
scope = pd.Scope()
for name in ("x", "h"):
    scope.set(name, numpy.zeros((1, 2), "float32"))
for name in ("w", "u"):
    scope.set(name, numpy.eye(2, dtype="float32"))
net.run(scope)
assert scope["act"].tolist() == [[0.5, 0.5]]
