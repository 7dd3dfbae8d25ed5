"""Net design, "Compatibility with RNN": a recurrent network by hand, from a step net and scopes.

for (int i = 0; i < num_states + 1; i++) {
  // Initialize all rnn state scopes, copy parameters and so on.
  rnn_states[i].CreateVars(rnn_step_net_def);
  Copy(default_scope, rnn_states[i], rnn_related_vars);

What the review shows of it; what follows there are the inlinks, the steps, the states that are copied on, and the final outputs,
from the scope after the last.
"""

import numpy

import oarlock as paddle


def copy(source, target, vars):
    for name, other in vars.items():
        target.set(other, source[name])


num_states = 3
net = paddle.Net()
with net.program:
    word = paddle.layer.data("word", shape=[2], batch=None)
    previous_state_h = paddle.layer.data("previous_state_h", shape=[2], batch=None)
    weighed = word * paddle.var(0.25, param=True, name="w") + previous_state_h * paddle.var(0.5, param=True, name="u")
    paddle.op.tanh(weighed, name="h")

default_scope = paddle.Scope()
net.init_variables(default_scope)
words = numpy.array([[1, 2], [3, 4], [5, 6]], "float32")
default_scope.set("h0", numpy.zeros(2, "float32"))

rnn_states = [default_scope.new_scope(f"state_{i}") for i in range(num_states + 1)]
for i in range(num_states):
    rnn_states[i].set("word", words[i])  # inlink_vars; rnn_related_vars, the parameters, are read from the scope around
copy(default_scope, rnn_states[0], {"h0": "previous_state_h"})
for i in range(num_states):
    net.run(rnn_states[i])
    copy(rnn_states[i], rnn_states[i + 1], {"h": "previous_state_h"})  # pre_state_vars
copy(rnn_states[num_states], default_scope, {"previous_state_h": "h_final"})  # outlink_vars

h = numpy.zeros(2)
for row in words:
    h = numpy.tanh(row * 0.25 + h * 0.5)
numpy.testing.assert_allclose(default_scope["h_final"], h, rtol=1e-6)
assert all(state.find_local_var("u") is None and state["u"] is default_scope["u"] for state in rnn_states)
