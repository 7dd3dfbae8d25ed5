"""Block document, the execution of blocks.

BlockDesc Prune(const BlockDesc& desc, vector<string> targets);
void Block::Eval(targets, scope, dev_ctx) { min_desc = Prune(desc_, targets); Block min_block(min_desc); min_block.Run(scope, dev_ctx); }
"""

import numpy

import oarlock as pd

with pd.Program() as program:
    x = pd.layer.data("x", shape=[2])
    y = pd.op.square(x, name="y")
    z = pd.op.neg(y, name="z")
    aside = pd.op.tanh(x, name="aside")

desc = program.main.compile()
min_desc = pd.prune(desc, ["z"])
assert [op.type for op in min_desc.ops] == ["square", "neg"]
min_block = pd.Block(min_desc)  # what a cluster is sent
scope = pd.Scope()
scope.set("x", numpy.array([[1, 2]], "float32"))
min_block.run(scope, pd.CPUPlace())
assert scope["z"].tolist() == [[-1, -4]]
assert "aside" not in scope

(value,) = program.main.eval(["z"], scope, pd.CPUPlace())  # at once
assert value.tolist() == scope["z"].tolist()
assert pd.eval(z, {"x": numpy.array([[3, 0]], "float32")}).tolist() == [[-9, 0]]
