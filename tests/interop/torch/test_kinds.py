"""Models of the kinds that people have, written small: forward, every gradient and every buffer in float64, at two batches."""

import pytest
import torch
from interop.torch.imports import compare
from interop.torch.kinds import KINDS

SLOW = "window attention", "masked encoder", "translator", "mobile block", "convnext block"


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in SLOW else []) for kind in KINDS])
def test_a_model_comes_in_whole_and_trains_as_in_pytorch(kind):
    build, inputs, dynamic = KINDS[kind]
    torch.manual_seed(0)
    module = build().double()
    model = compare(module, inputs(2), inputs(3), dynamic=dynamic)
    own = {name for name, value in module.named_parameters(remove_duplicate=False) if value.requires_grad}
    ours = {var.name for var in model.program.main.vars.values() if var.parameter}
    assert ours <= own
    assert len(ours) == len(list(module.parameters()))
