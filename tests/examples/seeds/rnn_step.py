"""Block and Scope, "Blocks with for and RNNOp".

x = sequence([10, 20, 30]);  m = var(0);  W = var(0.314, param=true);  U = var(0.375, param=true)

rnn = pd.rnn()
with rnn.step():
  h = rnn.memory(init = m)
  h_prev = rnn.previous_memory(h)
  a = layer.fc(W, x)
  b = layer.fc(U, h_prev)
  s = pd.add(a, b)
  act = pd.sigmoid(s)
  rnn.update_memory(h, act)
  rnn.output(a, b)
o1, o2 = rnn()
"""

import numpy

import oarlock as pd
from oarlock import layer, sequence, var

with pd.Program() as program:
    x = sequence([10, 20, 30])  # shape=[None, 1]
    m = var(0)  # shape=[1]
    W = var(0.314, param=True)  # shape=[1]
    U = var(0.375, param=True)  # shape=[1]

    rnn = pd.rnn()
    with rnn.step():
        h = rnn.memory(init=m)
        h_prev = rnn.previous_memory(h)
        a = layer.fc(W, x)
        b = layer.fc(U, h_prev)
        s = pd.add(a, b)
        act = pd.sigmoid(s)
        rnn.update_memory(h, act)
        rnn.output(a, b)
    o1, o2 = rnn()

    first, second, last = pd.eval([o1, o2, rnn.final_memory(h)])
numpy.testing.assert_allclose(first.ravel(), [3.14, 6.28, 9.42], rtol=1e-6)
numpy.testing.assert_allclose(second.ravel(), [0, 0.359442, 0.374510], atol=1e-6)
numpy.testing.assert_allclose(last, [0.999944], atol=1e-6)
