"""Block document, blocks with if-else and IfElseOp.

x = minibatch([10, 20, 30]) # shape=[None, 1]
y = var(1) # shape=[1], value=1
z = minibatch([10, 20, 30]) # shape=[None, 1]
cond = larger_than(x, 15) # [false, true, true]

ie = pd.ifelse()
with ie.true_block():
    d = pd.layer.add_scalar(x, y)
    ie.output(d, pd.layer.softmax(d))
with ie.false_block():
    d = pd.layer.fc(z)
    ie.output(d, d+1)
o1, o2 = ie(cond)
"""

import numpy

import oarlock as pd
from oarlock import larger_than, minibatch, var

with pd.Program() as program:
    x = minibatch([10, 20, 30])
    y = var(1)
    z = minibatch([10, 20, 30])
    cond = larger_than(x, 15)

    ie = pd.ifelse()
    with ie.true_block():
        d = pd.layer.add_scalar(x, y)
        ie.output(d, pd.layer.softmax(d))
    with ie.false_block():
        d = pd.layer.fc(z, 1, name="fc")  # of size 1, so that both blocks return rows of one width
        ie.output(d, d + 1)
    o1, o2 = ie(cond)

assert [item.type_text for item in (x, y, z, cond, o1, o2)] == [
    "float32[n, 1]", "float32[1]", "float32[n, 1]", "bool[n, 1]", "float32[n, 1]", "float32[n, 1]",
]  # fmt: skip
scope = pd.Scope()
scope.set("fc.w", numpy.array([[2]], "float32"))
scope.set("fc.b", numpy.array([0.5], "float32"))
holds, first, second = pd.Executor().run(program, {}, [cond, o1, o2], scope=scope)
assert holds.tolist() == [[False], [True], [True]]
assert first.tolist() == [[20.5], [21], [31]]  # fc(10); 20 + 1, 30 + 1
assert second.tolist() == [[21.5], [1], [1]]  # fc(10) + 1; the softmax of one column is 1
