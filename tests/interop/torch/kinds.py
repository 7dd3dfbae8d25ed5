"""The kinds of models that people have, each written small: no library of models is asked."""

import torch
from torch import nn
from torch.nn import functional

__all__ = ["KINDS"]


class ResidualBlock(nn.Module):
    """He et al., 2016: two convolutions beside a shorter way, over batch norm; the mean of an image at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        self.first, self.second = nn.Conv2d(8, 12, 3, 2, 1, bias=False), nn.Conv2d(12, 12, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(12) for _ in range(2))
        self.short = nn.Sequential(nn.Conv2d(8, 12, 1, 2, bias=False), nn.BatchNorm2d(12))
        self.head = nn.Linear(12, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.stem(image)
        y = functional.relu(self.norms[0](self.first(x)), inplace=True)
        y = self.norms[1](self.second(y))
        y += self.short(x)
        return self.head(torch.flatten(functional.adaptive_avg_pool2d(functional.relu_(y), 1), 1))


class MobileBlock(nn.Module):
    """Howard et al., 2019: an inverted residual with a depthwise convolution, squeezed and excited (Hu et al., 2018)."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(4, 16, 1, bias=False), nn.BatchNorm2d(16, momentum=0.01), nn.Hardswish(inplace=True))
        self.depth = nn.Sequential(nn.Conv2d(16, 16, 5, padding=2, groups=16, bias=False), nn.BatchNorm2d(16), nn.Hardswish())
        self.squeeze, self.excite = nn.Conv2d(16, 8, 1), nn.Conv2d(8, 16, 1)
        self.project = nn.Sequential(nn.Conv2d(16, 4, 1, bias=False), nn.BatchNorm2d(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.depth(self.expand(x))
        scale = functional.hardsigmoid(self.excite(functional.relu(self.squeeze(y.mean((2, 3), keepdim=True)))))
        return x + self.project(y * scale)


class WindowAttention(nn.Module):
    """Liu et al., 2021: attention in windows that are shifted by a roll, with a table of relative places and a mask."""

    def __init__(self, window: int = 3, shift: int = 1, width: int = 8, heads: int = 2):
        super().__init__()
        self.window, self.shift, self.heads = window, shift, heads
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(0.1 * torch.randn((2 * window - 1) ** 2, heads))
        places = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        apart = (places[:, :, None] - places[:, None, :] + window - 1).permute(1, 2, 0)
        self.register_buffer("number", (apart[..., 0] * (2 * window - 1) + apart[..., 1]).flatten())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, height, width, c = x.shape
        w, down, right = self.window, -height % self.window, -width % self.window
        y = functional.pad(self.norm(x), (0, 0, 0, right, 0, down))
        h, v = y.shape[1], y.shape[2]
        y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = y.view(b, h // w, w, v // w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, c)
        q, k, value = self.qkv(y).reshape(-1, w * w, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)
        scores = scores + self.table[self.number].view(w * w, w * w, -1).permute(2, 0, 1).unsqueeze(0)
        region = x.new_zeros((h, v))
        for number, (rows, columns) in enumerate((r, s) for r in (slice(0, -w), slice(-w, None)) for s in (slice(0, -w), slice(-w, None))):
            region[rows, columns] = number
        region = region.view(h // w, w, v // w, w).permute(0, 2, 1, 3).reshape(-1, w * w)
        mask = region.unsqueeze(1) - region.unsqueeze(2)
        mask = mask.masked_fill(mask != 0, -100.0)
        scores = scores.view(b, mask.shape[0], self.heads, w * w, w * w) + mask[None, :, None]
        y = scores.view(-1, self.heads, w * w, w * w).softmax(-1) @ value
        y = self.out(y.transpose(1, 2).reshape(-1, w * w, c))
        y = y.view(b, h // w, v // w, w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, v, c)
        return x + torch.roll(y, (self.shift, self.shift), (1, 2))[:, :height, :width]


class CausalDecoder(nn.Module):
    """Radford et al., 2019: places by a table, attention to what came before, and logits by the table of tokens."""

    def __init__(self, width: int = 12, heads: int = 3):
        super().__init__()
        self.heads = heads
        self.tokens, self.places = nn.Embedding(17, width), nn.Embedding(16, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, 17, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.qkv(self.norms[0](x)).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        x = x + self.down(functional.gelu(self.up(self.norms[1](x)), approximate="tanh"))
        x = self.norms[2](x)
        return {"logits": self.head(x), "last": x[:, -1]}


class MaskedEncoder(nn.Module):
    """Liu et al., 2019: places counted over what is no padding, whose row takes no gradient, and a mask of what is."""

    def __init__(self, width: int = 12, heads: int = 2, padding: int = 1):
        super().__init__()
        self.heads, self.padding = heads, padding
        self.words, self.places = nn.Embedding(19, width, padding_idx=padding), nn.Embedding(12, width, padding_idx=padding)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.dense, self.head = nn.Linear(width, width), nn.Linear(width, 19)
        self.register_buffer("types", torch.zeros(1, 12, dtype=torch.int64), persistent=False)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        real = input_ids.ne(self.padding).int()
        places = (torch.cumsum(real, dim=1).type_as(real) * real).long() + self.padding
        types = self.types[:, : input_ids.shape[1]].expand(input_ids.shape)
        x = self.norm(self.words(input_ids) + self.places(places) + self.kinds(types))
        q, k, v = (f(x).view(*x.shape[:2], self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        seen = attention_mask[:, None, None, :].to(torch.bool)
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen.expand(-1, 1, x.shape[1], -1))
        return self.head(torch.tanh(self.dense(x + y.transpose(1, 2).reshape(x.shape))))


class RotaryDecoder(nn.Module):
    """Touvron et al., 2023: rotated queries and keys (Su et al., 2021), grouped heads, root mean squares, a gated network."""

    def __init__(self, width: int = 16, heads: int = 4, groups: int = 2):
        super().__init__()
        self.heads, self.groups, self.head_width = heads, groups, width // heads
        self.tokens, self.scale = nn.Embedding(17, width), nn.Parameter(torch.ones(width))
        self.query, self.key = nn.Linear(width, width, bias=False), nn.Linear(width, groups * self.head_width, bias=False)
        self.value, self.out = nn.Linear(width, groups * self.head_width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up, self.down = nn.Linear(width, 24, bias=False), nn.Linear(width, 24, bias=False), nn.Linear(24, width, bias=False)
        frequencies = 1.0 / 10000 ** (torch.arange(0, self.head_width, 2) / self.head_width)
        self.register_buffer("frequencies", frequencies.double(), persistent=False)

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def rotate(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        return x * cos + torch.cat((-second, first), dim=-1) * sin

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        b, t = ids.shape
        x = self.tokens(ids)
        with torch.no_grad():
            angles = torch.outer(torch.arange(t, dtype=torch.float64), self.frequencies)
            cos, sin = torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()
        y = self.norm(x)
        q = self.rotate(self.query(y).view(b, t, self.heads, -1).transpose(1, 2), cos, sin)
        k, v = (f(y).view(b, t, self.groups, -1).transpose(1, 2) for f in (self.key, self.value))
        k = self.rotate(k, cos, sin)
        k, v = (z[:, :, None].expand(-1, -1, self.heads // self.groups, -1, -1).reshape(b, self.heads, t, -1) for z in (k, v))
        hidden = torch.full((t, t), float("-inf"), dtype=x.dtype).triu(1)
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=hidden[None, None])
        x = x + self.out(y.transpose(1, 2).contiguous().view(b, t, -1))
        return x + self.down(functional.silu(self.gate(self.norm(x))) * self.up(self.norm(x)))


class Translator(nn.Module):
    """Vaswani et al., 2017: an encoder, and a decoder that looks at it and at what it has said; both share a table."""

    def __init__(self, width: int = 12, heads: int = 2):
        super().__init__()
        self.tokens = nn.Embedding(15, width)
        self.within = nn.MultiheadAttention(width, heads, batch_first=True)
        self.before, self.across = (nn.MultiheadAttention(width, heads, batch_first=True) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.dense = nn.Linear(width, width)
        angle = torch.arange(16)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("places", torch.cat([angle.sin(), angle.cos()], dim=1).double())

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        memory = self.tokens(source) * 12**0.5 + self.places[: source.shape[1]]
        memory = self.norms[0](memory + self.within(memory, memory, memory, need_weights=False)[0])
        x = self.tokens(target) * 12**0.5 + self.places[: target.shape[1]]
        after = torch.triu(torch.ones(target.shape[1], target.shape[1], dtype=torch.bool), diagonal=1)
        x = self.norms[1](x + self.before(x, x, x, attn_mask=after, need_weights=False)[0])
        said, weights = self.across(x, memory, memory)
        x = self.norms[2](x + said)
        x = self.norms[3](x + self.dense(functional.silu(x)))
        return functional.linear(x, self.tokens.weight), weights


class ConvNeXtBlock(nn.Module):
    """Liu et al., 2022: a depthwise convolution, layer norm over channels, a wide network, a scale for the layer, and a dropped path."""

    def __init__(self) -> None:
        super().__init__()
        self.depth, self.norm = nn.Conv2d(6, 6, 7, padding=3, groups=6), nn.LayerNorm(6, eps=1e-6)
        self.up, self.down, self.scale = nn.Linear(6, 24), nn.Linear(24, 6), nn.Parameter(0.5 * torch.ones(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.depth(x).permute(0, 2, 3, 1))
        y = self.scale * self.down(functional.gelu(self.up(y)))
        return x + y.permute(0, 3, 1, 2)


class UNet(nn.Module):
    """Ronneberger et al., 2015: down by pooling, up by a transposed convolution and by interpolation, with what was there put beside."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.up, self.join = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(8, 4, 3, padding=1, padding_mode="reflect")
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = functional.leaky_relu(self.down1(x), 0.1)
        y = functional.elu(self.norm(self.down2(functional.max_pool2d(first, 2))))
        y = functional.relu(self.join(torch.cat([self.up(y), first], dim=1)))
        return functional.interpolate(self.out(y), scale_factor=2, mode="bilinear", align_corners=False)


class LeNet(nn.Module):
    """LeCun et al., 1998."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 3, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(3, 5, 3), nn.Tanh(), nn.AvgPool2d(2)
        )
        self.classes = nn.Sequential(nn.Flatten(), nn.Linear(45, 12), nn.Tanh(), nn.Linear(12, 4), nn.LogSoftmax(dim=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classes(self.features(x))


class Gated(nn.Module):
    """A gated recurrent network of two layers, in both directions (Cho et al., 2014)."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(3, 4, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.gru(x)


class LongShortTermMemory(nn.Module):
    """Hochreiter and Schmidhuber, 1997, on steps that come first, from a state that is given."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 5), nn.Linear(5, 2)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, (_, cell) = self.lstm(x, (state, state * 2))
        return self.head(y), cell


def _ids(batch: int, length: int, most: int) -> torch.Tensor:
    return torch.randint(2, most, (batch, length), generator=torch.Generator().manual_seed(10 * batch + length))


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def _mask(batch: int, length: int) -> torch.Tensor:
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, -2:] = 0
    return mask


# The kind, what it is called with at a batch, and which sizes are symbols.
KINDS = {
    "residual block": (ResidualBlock, lambda n: (_normal(n, 3, 24, 24),), "n"),
    "mobile block": (MobileBlock, lambda n: (_normal(n, 4, 6, 5),), "n"),
    "window attention": (WindowAttention, lambda n: (_normal(n, 5, 7, 8),), "n"),
    "causal decoder": (CausalDecoder, lambda n: (_ids(n, n + 3, 17),), {"ids": {0: "n", 1: "t"}}),
    "masked encoder": (MaskedEncoder, lambda n: (_ids(n, 7, 19), _mask(n, 7)), "n"),
    "rotary decoder": (RotaryDecoder, lambda n: (_ids(n, 6, 17),), "n"),
    "translator": (Translator, lambda n: (_ids(n, 6, 15), _ids(n, 4, 15)), "n"),
    "convnext block": (ConvNeXtBlock, lambda n: (_normal(n, 6, 8, 8),), "n"),
    "u-net": (UNet, lambda n: (_normal(n, 2, 8, 12),), "n"),
    "lenet": (LeNet, lambda n: (_normal(n, 1, 16, 16),), "n"),
    "gated recurrence": (Gated, lambda n: (_normal(n, 5, 3),), "n"),
    "long short-term memory": (
        LongShortTermMemory,
        lambda n: (_normal(4, n, 3), _normal(1, n, 5)),
        {"x": {1: "n"}, "state": {1: "n"}},
    ),
}
