"""A module of PyTorch as a program: what comes in, what it is called, and what it computes."""

import numpy
import torch
from torch import nn

import oarlock as ol


class Small(nn.Module):
    """Statistics, a region without gradients, buffers of both kinds, a frozen weight, dropout, nested outputs."""

    def __init__(self):
        super().__init__()
        self.fc, self.norm, self.head = nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 3)
        self.position = nn.Parameter(torch.randn(1, 3))
        self.head.weight.requires_grad_(False)
        self.drop = nn.Dropout(0.25)
        self.register_buffer("offset", torch.arange(3.0))
        self.register_buffer("unsaved", torch.arange(3.0), persistent=False)

    def forward(self, x):
        h = self.norm(self.fc(x))
        with torch.no_grad():
            position = self.position * 2
        h = torch.relu_(h + position) + self.offset + self.unsaved * 2
        h = self.head(self.drop(h))
        return {"y": h.view(x.shape[0], -1), "z": (h + 1,)}


def test_a_module_comes_in_with_its_names_and_computes_what_it_does():
    torch.manual_seed(0)
    module = Small()
    model = ol.from_torch(module, torch.randn(1, 4), dynamic="n")
    assert list(model.inputs) == ["x"]
    assert model.inputs["x"].shape == ("n", 4)
    assert list(model.outputs) == ["y", "z.0"] == list(model.program.targets)
    assert [var.name for var in model.program.parameters()] == [name for name, _ in module.named_parameters()]
    assert [var.name for var in model.program.parameters() if not var.trainable] == ["position", "head.weight"]  # no gradient; frozen
    x = torch.randn(5, 4)
    module.eval()
    found, expected = ol.infer(model, {"x": x}), module(x)
    torch.testing.assert_close(torch.from_numpy(found["y"]), expected["y"])
    torch.testing.assert_close(torch.from_numpy(found["z.0"]), expected["z"][0])


class Images(nn.Module):
    """Sizes that PyTorch and we spell otherwise: `(h-6)//2+1` here, `(h)//2-2` there."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 2, 5), nn.Conv2d(2, 3, 3, padding=1)

    def forward(self, x):
        maps = nn.functional.max_pool2d(self.second(nn.functional.max_pool2d(self.first(x), 2)), 2)
        rows = maps.view(maps.shape[0], 3, maps.shape[2] * maps.shape[3])
        return rows.mean(2) + maps.flatten(2).sum(2), torch.cat([maps.flatten(1).sum(1), rows.sum((1, 2))])


def test_images_of_any_size_are_convolved_pooled_and_flattened():
    torch.manual_seed(0)
    module = Images()
    model = ol.from_torch(module, torch.randn(2, 1, 16, 18), dynamic={"x": {0: "n", 2: "h", 3: "w"}})
    for shape in ((2, 1, 16, 18), (3, 1, 21, 19)):
        x = torch.randn(shape)
        found = ol.infer(model, {"x": x})
        for ours, theirs in zip(found.values(), module(x), strict=True):
            numpy.testing.assert_allclose(ours, theirs.detach(), rtol=1e-5, atol=1e-5)


class Masked(nn.Module):
    """A mask that depends on no number that it is given, though memory for it is taken like that of the input."""

    def __init__(self, like: bool = False):
        super().__init__()
        self.like = like

    def forward(self, x):
        hidden = torch.zeros_like(x) if self.like else x.new_zeros((4, 4))
        hidden[..., :2, 2:] = 1
        hidden[..., 3, :] += x.new_full((4,), 0.5)
        return x.masked_fill(hidden != 0, -1.0)


def test_what_is_like_an_input_and_reads_none_of_it_is_computed_once():
    x = torch.randn(3, 4, 4)
    for module, dynamic in ((Masked(), None), (Masked(), "n"), (Masked(like=True), None)):
        model = ol.from_torch(module, x, dynamic=dynamic)
        assert {op.type for op in model.program.main.ops} <= {"where", "full", "full_like", "broadcast_to", "reshape", "assign"}
        assert torch.equal(torch.as_tensor(ol.infer(model, {"x": x})), module(x))


def test_what_is_like_rows_of_any_number_is_computed_in_a_run():
    x = torch.randn(3, 4, 4)
    model = ol.from_torch(Masked(like=True), x, dynamic="n")
    for rows in (x, x[:1]):
        assert torch.equal(torch.as_tensor(ol.infer(model, {"x": rows})), Masked(like=True)(rows))


class Unset(nn.Module):
    """Reads memory that nothing has been written to."""

    def forward(self, x):
        return x + torch.empty(4)


def test_memory_of_no_value_is_zeros_and_nothing_of_the_process():
    x = torch.randn(3, 4)
    torch.use_deterministic_algorithms(True)  # PyTorch fills such memory with NaN then
    try:
        model = ol.from_torch(Unset(), x)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(torch.as_tensor(ol.infer(model, {"x": x})), x)
