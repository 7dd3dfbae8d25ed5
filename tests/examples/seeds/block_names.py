"""Block document, the compilation of blocks: names are looked up in the block, then in those around it.

a = pd.Variable(shape=[20, 20])
b = pd.fc(a, params=["fc.w", "fc.b"])
...
    # reuse fc's parameter
    fc_without_b = pd.get_variable("fc.w")

The block around the last line is a step of an RNN in the document; any nested block will do.
"""

import oarlock as pd

with pd.Program() as program:
    a = pd.Variable(shape=[20, 20])
    b = pd.layer.fc(a, 20, params=["fc.w", "fc.b"])
    with program.new_block("step", program.main) as step:
        fc_without_b = pd.get_variable("fc.w")
        local = step.new_var("local", pd.DType.FLOAT32, (20, 20))

assert fc_without_b is program.main.vars["fc.w"]
assert fc_without_b.shape == (20, 20)
assert program.main.find_var("local") is None
assert step.find_var("local") is local
