"""The char-GPT and the U-Net of examples/ beside twins in PyTorch that begin with their values: python tests/examples/follow_pytorch.py

Each is trained by SGD on the same batches in float64; what is printed is how far the losses and the parameters are apart at most.
"""

import argparse
import runpy
from collections.abc import Iterator
from pathlib import Path

import numpy
import torch
from torch import nn
from torch.nn import functional

import oarlock as ol

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def load(name: str) -> dict:
    """The names that an example defines, without running it."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)


class GPT(nn.Module):
    """The char-GPT of PyTorch's own transformer layers."""

    def __init__(self, of: dict):
        super().__init__()
        self.of = of
        self.characters = nn.Embedding(of["CHARACTERS"], of["WIDTH"])
        self.positions = nn.Embedding(of["CONTEXT"], of["WIDTH"])
        how = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(of["WIDTH"], of["HEADS"], 4 * of["WIDTH"], **how) for _ in range(of["LAYERS"])
        )
        self.norm, self.head = nn.LayerNorm(of["WIDTH"]), nn.Linear(of["WIDTH"], of["CHARACTERS"])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.characters(ids) + self.positions(torch.arange(ids.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], dtype=x.dtype)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.head(self.norm(x))

    def pairs(self) -> Iterator[tuple[torch.Tensor, list[str]]]:
        """Each parameter, and the names of those of ours that it holds, one below the other; matrices are transposed."""
        yield self.characters.weight, ["characters.w"]
        yield self.positions.weight, ["positions.w"]
        for number, layer in enumerate(self.layers):
            name = f"gpt.{number}"
            for suffix, theirs in (("w", "weight"), ("b", "bias")):
                joined = [f"{name}.attention.{part}.{suffix}" for part in ("query", "key", "value")]
                yield getattr(layer.self_attn, f"in_proj_{theirs}"), joined
                yield getattr(layer.self_attn.out_proj, theirs), [f"{name}.attention.output.{suffix}"]
                yield getattr(layer.linear1, theirs), [f"{name}.linear1.{suffix}"]
                yield getattr(layer.linear2, theirs), [f"{name}.linear2.{suffix}"]
            for norm in ("norm1", "norm2"):
                yield getattr(layer, norm).weight, [f"{name}.{norm}.scale"]
                yield getattr(layer, norm).bias, [f"{name}.{norm}.bias"]
        yield self.norm.weight, ["gpt.norm.scale"]
        yield self.norm.bias, ["gpt.norm.bias"]
        yield self.head.weight, ["head.w"]
        yield self.head.bias, ["head.b"]


class UNet(nn.Module):
    """The U-Net of PyTorch's own convolutions."""

    def __init__(self, of: dict):
        super().__init__()
        channels = {"down1": (1, 8), "down2": (8, 16), "bottom": (16, 32), "up2": (32, 16), "up1": (16, 8)}
        self.twice = nn.ModuleDict(
            {
                name: nn.ModuleList(
                    [
                        nn.Conv2d(before, after, 3, padding=1),
                        nn.GroupNorm(4, after),
                        nn.Conv2d(after, after, 3, padding=1),
                        nn.GroupNorm(4, after),
                    ]
                )
                for name, (before, after) in channels.items()
            }
        )
        self.widen = nn.ModuleDict({"up2": nn.ConvTranspose2d(32, 16, 2, 2), "up1": nn.ConvTranspose2d(16, 8, 2, 2)})
        self.head = nn.Conv2d(8, of["CLASSES"], 1)

    def block(self, x: torch.Tensor, name: str) -> torch.Tensor:
        for number in (0, 2):
            x = functional.relu(self.twice[name][number + 1](self.twice[name][number](x)))
        return x

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        first = self.block(image, "down1")
        second = self.block(functional.max_pool2d(first, 2), "down2")
        third = self.block(functional.max_pool2d(second, 2), "bottom")
        wider = self.block(torch.cat([second, self.widen["up2"](third)], 1), "up2")
        return self.head(self.block(torch.cat([first, self.widen["up1"](wider)], 1), "up1"))

    def pairs(self) -> Iterator[tuple[torch.Tensor, list[str]]]:
        for name, layers in self.twice.items():
            for number, layer in enumerate(layers):
                kind, first = ("norm", "scale") if number % 2 else ("conv", "w")
                yield layer.weight, [f"{name}.{kind}{number // 2 + 1}.{first}"]
                yield layer.bias, [f"{name}.{kind}{number // 2 + 1}.{'bias' if number % 2 else 'b'}"]
        for name, layer in (*((f"{name}.widen", layer) for name, layer in self.widen.items()), ("head", self.head)):
            yield layer.weight, [f"{name}.w"]
            yield layer.bias, [f"{name}.b"]


def write_gpt(of: dict, seed: int) -> tuple[ol.Program, ol.Var]:
    with ol.Program(seed=seed) as program:
        ids, following = (ol.layer.data(name, [of["CONTEXT"]], dtype="int64") for name in ("ids", "next"))
        return program, ol.layer.mean(ol.layer.cross_entropy(of["gpt"](ids, dtype="float64"), following))


def write_unet(of: dict, seed: int) -> tuple[ol.Program, ol.Var]:
    with ol.Program(seed=seed) as program:
        image = ol.layer.data("image", [1, of["SIZE"], of["SIZE"]], dtype="float64")
        label = ol.layer.data("label", [of["SIZE"], of["SIZE"]], dtype="int64")
        return program, of["pixel_cost"](of["unet"](image), label)


def batches_of_gpt(of: dict, rows: int, seed: int) -> Iterator[dict[str, numpy.ndarray]]:
    train, _ = ol.datasets.standard_library.split(length=of["CONTEXT"], files=3)
    random = numpy.random.default_rng(seed)
    while True:
        chosen = random.integers(0, len(train["next"]), rows)
        yield {name: array[chosen] for name, array in train.items()}


def batches_of_unet(of: dict, rows: int, seed: int) -> Iterator[dict[str, numpy.ndarray]]:
    while True:
        seed += 1
        made = of["make_images"](rows, seed)
        yield {"image": made["image"].astype("float64"), "label": made["label"]}


def cost_of_gpt(net: nn.Module, feed: dict[str, torch.Tensor]) -> torch.Tensor:
    return functional.cross_entropy(net(feed["ids"]).flatten(0, 1), feed["next"].flatten())


def cost_of_unet(net: nn.Module, feed: dict[str, torch.Tensor]) -> torch.Tensor:
    return functional.cross_entropy(net(feed["image"]), feed["label"])


MODELS = {
    "char_gpt": (GPT, write_gpt, batches_of_gpt, cost_of_gpt, 0.1),
    "unet": (UNet, write_unet, batches_of_unet, cost_of_unet, 0.1),
}


def ours_of(held: torch.Tensor, count: int, *, turned: bool) -> list[torch.Tensor]:
    """The parameters of ours in one of PyTorch's."""
    return [part.T if turned and part.ndim == 2 else part for part in held.chunk(count)]


def follow(name: str, steps: int, rows: int, seed: int = 0) -> tuple[list[float], list[float], float]:
    """The losses of ours and of the twin, step by step, and how far parameters are apart at the end at most."""
    make, write, batches, cost_of, rate = MODELS[name]
    of = load(name)
    program, cost = write(of, seed)
    scope = ol.init(program, ol.Scope())
    net = make(of).double()
    tables = {id(table.weight) for table in net.modules() if isinstance(table, nn.Embedding)}
    pairs = list(net.pairs())
    assert {id(held) for held, _ in pairs} == {id(held) for held in net.parameters()}
    assert sorted(ours for _, names in pairs for ours in names) == sorted(var.name for var in program.parameters())
    with torch.no_grad():
        for held, names in pairs:
            for part, ours in zip(ours_of(held, len(names), turned=id(held) not in tables), names, strict=True):
                part.copy_(scope[ours])
    ol.optimizer.SGD(rate).minimize(cost)
    ol.init(program, scope)
    step = ol.Executor().prepare(program, [cost], scope=scope)
    optimizer = torch.optim.SGD(net.parameters(), rate)
    losses: tuple[list[float], list[float]] = [], []
    for _, feed in zip(range(steps), batches(of, rows, seed), strict=False):
        losses[0].append(float(step(feed)[0]))
        optimizer.zero_grad()
        loss = cost_of(net, {name: torch.from_numpy(array) for name, array in feed.items()})
        loss.backward()
        optimizer.step()
        losses[1].append(loss.item())
    apart = 0.0
    for held, names in pairs:
        for part, ours in zip(ours_of(held.detach(), len(names), turned=id(held) not in tables), names, strict=True):
            apart = max(apart, float((part - scope[ours]).abs().max()))
    return *losses, apart


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--steps", type=int, default=100)
    arguments.add_argument("--rows", type=int, default=4, help="of a batch")
    given = arguments.parse_args()
    for model in MODELS:
        ours, theirs, apart = follow(model, given.steps, given.rows)
        furthest = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
        print(f"{model}: {given.steps} steps, loss {ours[0]:.3f} to {ours[-1]:.3f}; losses {furthest:.1e} apart, parameters {apart:.1e}")
