"""Language models of characters, and the text they learn: the source of Python's standard library."""

import sysconfig
from pathlib import Path

import numpy

import oarlock as ol

__all__ = ["CHARACTERS", "batches", "gpt", "lstm", "text"]

CHARACTERS = 96
"""The printable characters of ASCII and the end of a line; others count as that."""


def text(characters: int = 1_000_000) -> numpy.ndarray:
    """The beginning of the library's modules in the order of their names, as numbers of characters: int64[characters]."""
    found, size = [], 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        codes = numpy.frombuffer(path.read_bytes(), numpy.uint8).astype(numpy.int64)
        found.append(numpy.where((codes >= 32) & (codes < 127), codes - 31, 0))
        size += len(codes)
        if size >= characters:
            break
    return numpy.concatenate(found)[:characters]


def batches(source: numpy.ndarray, count: int, rows: int, length: int, seed: int) -> list[dict[str, numpy.ndarray]]:
    """`count` feeds of texts of `length` characters, and of those that follow them: x and y, int64[rows, length]."""
    places = numpy.random.default_rng(seed).integers(0, len(source) - length - 1, (count, rows))
    windows = numpy.lib.stride_tricks.sliding_window_view(source, length + 1)[places]
    return [{"x": window[:, :-1].copy(), "y": window[:, 1:].copy()} for window in windows]


def gpt(*, length: int = 64, width: int = 128, layers: int = 8, heads: int = 4, dropout: float = 0.0) -> tuple[ol.Var, list[ol.Var]]:
    """A transformer that normalizes first: its cost, and what each of its blocks hands on."""
    x, y = (ol.layer.data(name, shape=[length], dtype="int64") for name in ("x", "y"))
    hidden = ol.layer.embedding(x, (CHARACTERS, width)) + ol.layer.create_parameter([length, width], name="positions")
    handed_on = [hidden]
    for _ in range(layers):
        q, k, v = ol.layer.split(ol.layer.fc(ol.layer.layer_norm(hidden), 3 * width), sections=3, axis=-1)
        hidden = hidden + ol.layer.fc(ol.layer.attention(q, k, v, heads=heads, causal=True), width)
        wide = ol.layer.gelu(ol.layer.fc(ol.layer.layer_norm(hidden), 4 * width), approximate=True)
        if dropout:
            wide = ol.op.dropout(wide, rate=dropout)
        hidden = hidden + ol.layer.fc(wide, width)
        handed_on.append(hidden)
    return ol.layer.cross_entropy(ol.layer.fc(ol.layer.layer_norm(hidden), CHARACTERS), y), handed_on


def lstm(*, width: int = 256, layers: int = 2) -> ol.Var:
    """LSTMs over texts whose time stands first, x and y, int64[t, n]; the cost is that of the characters that follow."""
    x, y = (ol.layer.data(name, shape=["n"], batch="t", dtype="int64") for name in ("x", "y"))
    hidden = ol.layer.embedding(x, (CHARACTERS, width))
    for _ in range(layers):
        hidden, _, _ = ol.layer.lstm(hidden, width)
    return ol.layer.cross_entropy(ol.layer.fc(hidden, CHARACTERS), y)
