"""Issue 3129, "Step-Net": RNN::Run.

void Run(Scope* scope) {
  RNNInput* whole_input = inputs_[0]->Get<RNNInput>();
  int sequence_len = whole_input->Len(0);
  for (int i = 0; i < sequence_len; ++i) {
    Scope* step_scope = scope->NewScope();
    step_scope->NewVar("step_input")->GetMutable<Tensor>()->Slice(whole_input, i);
    Net* net = Net::TraceAndBuild(GetAttr<Variable*>("step_net"), step_scope);
    net->Run(step_scope)
  }
}
"""

import numpy

import oarlock as paddle

with paddle.Program():
    step_input = paddle.layer.data("step_input", shape=[2], batch=None)
    step_net = paddle.op.tanh(step_input, name="step_net")

scope = paddle.Scope()
scope.set("whole_input", numpy.arange(6, dtype="float32").reshape(3, 2))

net = paddle.Net.trace_and_build(step_net, paddle.Scope())  # once: a step net is the same at each step, its scope is not
whole_input = scope["whole_input"]
for i in range(len(whole_input)):
    step_scope = scope.new_scope()
    step_scope.new_var("step_input").value = whole_input[i]
    net.run(step_scope)

for i, step_scope in enumerate(scope.children):
    assert step_scope["step_input"].data_ptr() == whole_input[i].data_ptr()  # a slice shares the storage of the whole
    assert step_scope["step_net"].tolist() == whole_input[i].tanh().tolist()
    assert step_scope["whole_input"] is whole_input  # found around the step
assert "step_input" not in scope
