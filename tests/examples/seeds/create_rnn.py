"""Block and Scope, "The Compilation of Blocks".

a = pd.Variable(shape=[20, 20])
b = pd.fc(a, params=["fc.w", "fc.b"])
rnn = pd.create_rnn()
with rnn.stepnet():
    x = a.as_step_input()
    # reuse fc's parameter
    fc_without_b = pd.get_variable("fc.w")
    rnn.output(fc_without_b)
out = rnn()
"""

import numpy

import oarlock as pd

with pd.Program() as program:
    a = pd.Variable(shape=[20, 20])
    b = pd.layer.fc(a, 20, params=["fc.w", "fc.b"])
    rnn = pd.create_rnn()
    with rnn.stepnet():
        x = a.as_step_input()
        # reuse fc's parameter
        fc_without_b = pd.get_variable("fc.w")
        rnn.output(fc_without_b)
    out = rnn()

assert x.type_text == "float32[20]"
assert out.type_text == "float32[20, 20, 20]"
assert fc_without_b is program.main.var("fc.w")
scope = pd.init(program, pd.Scope())
(value,) = pd.Executor().run(program, {a.name: numpy.zeros((20, 20), "float32")}, [out], scope=scope)
assert all((step == scope["fc.w"].numpy()).all() for step in value)
