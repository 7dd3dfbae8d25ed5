"""Block document: a block is made of its description, infers shapes, and runs its ops one after the other.

class Block : OperatorBase {
  Block(const BlockDesc& desc);  void InferShape(scope) const;  void Run(scope, place) const;
  void CreateVariables(scope);  void CreateOperators();  }
"""

import numpy
import pytest

import oarlock as pd

with pd.Program() as program:
    x = pd.layer.data("x", shape=[3])
    y = pd.layer.fc(x, 2, params=["w", "b"])
    loss = pd.layer.mean(y)
    pd.append_backward(loss)

block = pd.Block(program.main.compile())
scope = pd.Scope()
net = pd.Net(block)  # CreateOperators: they are found, and types verified
net.create_variables(scope)
assert y.name in scope
assert not scope.find_var(y.name).is_set
with pytest.raises(pd.UnsetVarError, match="has no value"):
    block.run(scope)  # "operators and variables should be created first"
net.init_variables(scope)
scope.set("x", numpy.ones((5, 3), "float32"))
assert block.infer_shape(scope)[y.name].shape == (5, 2)
block.run(scope, pd.Context(scope, pd.CPUPlace()))
assert scope[y.name].shape == (5, 2)
assert scope["b@GRAD"].tolist() == [0.5, 0.5]
