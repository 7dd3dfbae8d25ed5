"""Archives as PyTorch writes them, of every kind of structure, and one taken apart so that it can be spoilt."""

import io
import json
import zipfile
from functools import cache
from random import Random

import torch
from torch import nn

from oarlock.interop.torch.export import suppress_output

__all__ = ["SEEDS", "ArchiveDraft", "draft_of_archive"]


class _Classifier(nn.Module):
    """Statistics that are kept from step to step, a tensor that no state dict holds, tied weights, a size that a shape tells."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 4, bias=False)
        self.last.weight = nn.Parameter(self.first.weight.detach().T.clone())
        self.tied = self.last
        self.register_buffer("shift", torch.arange(3.0), persistent=False)

    def forward(self, x, *, scale):
        hidden = torch.relu(self.norm(self.first(x)) + self.shift)
        return {"y": self.last(hidden) * scale + self.tied(hidden), "flat": hidden.view(x.shape[0] * 3)}


class _Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2, 3, padding=1), nn.GroupNorm(1, 2)
        self.fc = nn.Linear(2, 2)

    def forward(self, image):
        maps = nn.functional.max_pool2d(nn.functional.gelu(self.norm(self.conv(image))), 2)
        return self.fc(nn.functional.adaptive_avg_pool2d(maps, 1).flatten(1)).softmax(1)


class _Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(7, 4), nn.LayerNorm(4)
        self.register_buffer("mask", torch.ones(5, 5, dtype=torch.bool).tril())

    def forward(self, ids):
        hidden = self.norm(self.table(ids))
        with torch.no_grad():
            places = torch.arange(ids.shape[1])
        hidden = hidden + places[:, None] * 0.1
        whole = nn.functional.scaled_dot_product_attention(hidden, hidden, hidden, attn_mask=self.mask[: ids.shape[1], : ids.shape[1]])
        return (whole.cumsum(1)[:, -1], whole.masked_fill(whole > 0, 0.0).topk(2, dim=-1)[1])


class _Control(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x, n):
        y = torch.cond(x.sum() > 0, lambda x: self.fc(x), lambda x: x - 1, (x,))
        (_, total) = torch.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * 0.5), (n, y))
        return y, total


def _draw(module: nn.Module, args: tuple, kwargs: dict, dynamic: object) -> bytes:
    torch.manual_seed(0)
    data = io.BytesIO()
    with suppress_output():
        torch.export.save(torch.export.export(module, args, kwargs, dynamic_shapes=dynamic), data)
    return data.getvalue()


SEEDS = {
    "classifier": lambda: _draw(
        _Classifier(), (torch.randn(2, 4),), {"scale": torch.ones(1)}, {"x": {0: torch.export.Dim("batch")}, "scale": None}
    ),
    "images": lambda: _draw(
        _Images(), (torch.randn(2, 1, 6, 6),), {}, {"image": {0: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.DYNAMIC}}
    ),
    "words": lambda: _draw(_Words(), (torch.arange(8).reshape(2, 4) % 7,), {}, None),
    "control": lambda: _draw(_Control(), (torch.randn(2, 3), torch.tensor(0)), {}, None),
}


@cache
def _entries(name: str) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(SEEDS[name]())) as archive:
        return {item.filename: archive.read(item) for item in archive.infolist()}


class ArchiveDraft:
    """An archive taken apart: its entries by path, and those that are JSON as values, under `model`, `weights` and `constants`."""

    def __init__(self, name: str):
        self.name = name
        self.entries = dict(_entries(name))
        self.paths = {
            "model": next(path for path in self.entries if "/models/" in path),
            "weights": next(path for path in self.entries if path.endswith("_weights_config.json")),
            "constants": next(path for path in self.entries if path.endswith("_constants_config.json")),
        }
        self.documents = {part: json.loads(self.entries[path]) for part, path in self.paths.items()}
        self.listed: list[tuple[str, bytes]] = []  # entries that stand there in addition, be their name taken or not

    @property
    def model(self) -> dict:
        return self.documents["model"]

    @property
    def graph(self) -> dict:
        return self.model["graph_module"]["graph"]

    def to_bytes(self, compression: int = zipfile.ZIP_STORED) -> bytes:
        data = io.BytesIO()
        entries = dict(self.entries)
        for part, path in self.paths.items():
            if path in entries and self.entries[path] == _entries(self.name).get(path):
                entries[path] = json.dumps(self.documents[part]).encode("utf-8", "surrogatepass")
        with zipfile.ZipFile(data, "w", compression) as archive:
            for path, content in [*entries.items(), *self.listed]:
                archive.writestr(path, content)
        return data.getvalue()


def draft_of_archive(random: Random, name: str | None = None) -> ArchiveDraft:
    """A good archive, to be spoilt; that of a seed at random unless it is named."""
    return ArchiveDraft(name or random.choice(sorted(SEEDS)))
