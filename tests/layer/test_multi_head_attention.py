"""Attention with projections against PyTorch's: of a sequence to itself and to another, masked, causal, with shared keys."""

import math

import numpy
import pytest
import torch
from beside_torch import require_like, transposed
from tolerances import MOMENTS

import oarlock as ol

D, HEADS, N, T, S = 6, 2, 3, 4, 5
MHA = torch.nn.MultiheadAttention


def values(*shape: int, seed: int = 0) -> numpy.ndarray:
    return numpy.random.default_rng(seed).standard_normal(shape)


def part(number: int, of: int):
    """Rows of a weight of PyTorch's that has those of several, as ours has them; of a bias too."""
    return lambda w: (lambda rows: rows if rows.ndim == 1 else rows.mT)(w.chunk(of)[number])


def copied(name: str = "multi_head_attention_0", prefix: str = "", *, together: bool = True) -> dict:
    found = {f"{name}.output.w": (f"{prefix}out_proj.weight", transposed), f"{name}.output.b": f"{prefix}out_proj.bias"}
    for number, what in enumerate(("query", "key", "value")):
        weight = (f"{prefix}in_proj_weight", part(number, 3)) if together else (f"{prefix}{what[0]}_proj_weight", transposed)
        found |= {f"{name}.{what}.w": weight, f"{name}.{what}.b": (f"{prefix}in_proj_bias", part(number, 3))}
    return found


def module(**how) -> MHA:
    torch.manual_seed(0)
    made = MHA(D, HEADS, batch_first=True, **how)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made


def test_attention_of_a_sequence_to_itself_is_that_of_pytorch():
    theirs = module()
    require_like(
        lambda x: ol.layer.multi_head_attention(x, heads=HEADS), theirs, [values(N, T, D)], copied(), call=lambda x: theirs(x, x, x)[0]
    )


def test_attention_to_another_sequence_is_that_of_pytorch():
    theirs = module(kdim=3, vdim=5)
    require_like(
        lambda q, k, v: ol.layer.multi_head_attention(q, k, v, heads=HEADS),
        theirs,
        [values(N, T, D), values(N, S, 3, seed=1), values(N, S, 5, seed=2)],
        copied(together=False),
        call=lambda q, k, v: theirs(q, k, v)[0],
    )


SEEN = torch.tensor([[True, False, True, True, False], [True, True, True, True, True], [False, True, True, False, True], [True] * 5])
THERE = torch.tensor([[True, True, True, False, False], [True] * 5, [True, True, True, True, False]])
BY_ROW = torch.stack([SEEN, SEEN.roll(1, 1), SEEN.roll(2, 1)])
BY_HEAD = torch.stack([BY_ROW, BY_ROW.roll(1, 0)], 1)


@pytest.mark.parametrize("rate", [0.0, 0.5])  # another way outside of training, too, which holds the weights
@pytest.mark.parametrize("form", ["keys", "mask", "mask and keys", "by row", "by head", "added"])
def test_masks_are_those_of_pytorch(form, rate):
    theirs = module()
    mask = {"mask": SEEN, "mask and keys": SEEN, "by row": BY_ROW, "by head": BY_HEAD, "added": torch.from_numpy(values(T, S, seed=3))}.get(
        form
    )
    there = THERE if "keys" in form else None
    given = [value for value in (mask, there) if value is not None]

    def ours(q, k, *masks):
        keywords = dict(zip([*(["mask"] * (mask is not None)), *(["key_mask"] * (there is not None))], masks, strict=True))
        return ol.layer.multi_head_attention(q, k, heads=HEADS, dropout=rate, **keywords)

    def call(q, k, *ignored):
        hidden = mask
        if mask is not None and mask.dtype is torch.bool:
            hidden = ~(mask if mask.ndim < 4 else mask.flatten(0, 1)) if mask.ndim != 3 else ~mask.repeat_interleave(HEADS, 0)
        return theirs(q, k, k, attn_mask=hidden, key_padding_mask=None if there is None else ~there)[0]

    require_like(ours, theirs, [values(N, T, D), values(N, S, D, seed=1), *given], copied(), call=call, wanted=[0, 1])


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_a_causal_mask_is_that_of_pytorch_and_the_last_query_sees_all_keys(rate):
    theirs = module()
    hidden = torch.ones(T, T).triu(1).bool()
    require_like(
        lambda x: ol.layer.multi_head_attention(x, heads=HEADS, causal=True, dropout=rate),
        theirs, [values(N, T, D)], copied(), call=lambda x: theirs(x, x, x, attn_mask=hidden)[0],
    )  # fmt: skip
    shifted = torch.ones(T, S).triu(S - T + 1).bool()
    require_like(
        lambda q, k: ol.layer.multi_head_attention(q, k, heads=HEADS, causal=True, dropout=rate),
        theirs, [values(N, T, D), values(N, S, D)], copied(), call=lambda q, k: theirs(q, k, k, attn_mask=shifted)[0],
    )  # fmt: skip


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_a_query_that_sees_nothing_gets_zeros(rate):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["t", D], dtype="float64")
        there = ol.layer.data("there", shape=["t"], dtype="bool")
        y = ol.layer.multi_head_attention(x, heads=HEADS, key_mask=there, dropout=rate, bias=False)
        (dx,) = ol.gradients([ol.op.reduce_sum(y)], [x])
    feed = {"x": values(2, T, D), "there": numpy.array([[False] * T, [True] * T])}
    found, slope = ol.Executor().run(program, feed, [y, dx], scope=ol.init(program, ol.Scope()))
    assert (found[0] == 0.0).all()
    assert (slope[0] == 0.0).all()
    assert (found[1] != 0.0).all()


def test_heads_may_share_keys_and_values():
    query, key, value, output = (torch.nn.Linear(D, columns) for columns in (8, 4, 4, 8))
    output = torch.nn.Linear(8, 7)
    theirs = torch.nn.ModuleDict({"query": query, "key": key, "value": value, "output": output})

    def call(x):
        q, k, v = (theirs[what](x).unflatten(-1, (-1, 2)).transpose(1, 2) for what in ("query", "key", "value"))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return output(y.transpose(1, 2).flatten(2))

    names = {f"multi_head_attention_0.{what}.w": (f"{what}.weight", transposed) for what in theirs}
    names |= {f"multi_head_attention_0.{what}.b": f"{what}.bias" for what in theirs}
    require_like(
        lambda x: ol.layer.multi_head_attention(x, heads=4, kv_heads=2, head_size=2, size=7), theirs, [values(N, T, D)], names, call=call
    )


def test_weights_are_dropped_in_training():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[50, 1])
        ones = ol.initializer.ones()
        y = ol.layer.multi_head_attention(x, heads=1, dropout=0.25, weight=ones, bias=False)
    feed = {"x": numpy.ones((200, 50, 1), "float32")}
    scope = ol.init(program, ol.Scope())
    (found,) = ol.Executor().run(program, feed, [y], scope=scope, training=True)
    assert abs(found.mean() - 1.0) < MOMENTS * math.sqrt(0.25 / 0.75 / (200 * 50 * 50))
    assert abs(found.std() / math.sqrt(0.25 / 0.75 / 50) - 1.0) < 0.1
    assert numpy.allclose(ol.Executor().run(program, feed, [y], scope=scope)[0], 1.0)


def test_what_does_not_fit_is_refused_and_declares_nothing():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["t", D])
        y = ol.layer.data("y", shape=["s", D])
        ids = ol.layer.data("ids", shape=["t"], dtype="int64")
        other = ol.layer.data("other", shape=["m", D], batch="m")
        attend = ol.layer.multi_head_attention
        for layer, error, message in (
            (lambda: attend(x, heads=4), ol.ArgumentError, "multi_head_attention: 4 heads do not divide the 6 columns of x"),
            (
                lambda: attend(x, heads=2, kv_heads=3), ol.ArgumentError,
                "multi_head_attention: kv_heads must divide heads: 3 does not divide 2",
            ),
            (lambda: attend(x, other, heads=2), ol.ShapeError, "multi_head_attention: queries, keys and values do not fit together"),
            (lambda: attend(x, y, heads=2, key_mask=ids), ol.DTypeError, "multi_head_attention: key_mask must be bool, not int64"),
            (
                lambda: attend(x, heads=2, mask=y), ol.ShapeError,
                "multi_head_attention: mask must have the shape [t, t] or [n, t, t] or [n, 1, t, t] or [n, 2, t, t], not float32[n, s, 6]",
            ),
            (
                lambda: attend(x, heads=2, weight=ol.layer.ParameterOptions(name="w")), ol.ArgumentError,
                'multi_head_attention: its parameters cannot all have the name "w"',
            ),
        ):  # fmt: skip
            with pytest.raises(error) as raised:
                layer()
            assert raised.value.message == message
    assert program.persistables() == []
    assert program.main.ops == []


def test_weights_are_given_where_they_are_asked_for():
    theirs = module()
    require_like(
        lambda x: ol.layer.multi_head_attention(x, heads=HEADS, causal=True, return_weights=True),
        theirs,
        [values(N, T, D)],
        copied(),
        call=lambda x: theirs(x, x, x, attn_mask=torch.ones(T, T).triu(1).bool(), average_attn_weights=False),
    )


def turned(x: torch.Tensor, base: float) -> torch.Tensor:
    """Su et al., 2021, equation 34, where a pair is column i and that half of the columns further: [n heads t k]."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * base ** (-torch.arange(half, dtype=x.dtype) / half)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1)


@pytest.mark.parametrize(("rotary", "base"), [(True, 10_000.0), (50.0, 50.0)])
def test_queries_and_keys_may_be_turned_by_their_places(rotary, base):
    theirs = torch.nn.ModuleDict({what: torch.nn.Linear(D, columns) for what, columns in (("query", 8), ("key", 4), ("value", 4))})
    theirs["output"] = torch.nn.Linear(8, D)

    def call(x):
        q, k, v = (theirs[what](x).unflatten(-1, (-1, 4)).transpose(1, 2) for what in ("query", "key", "value"))
        y = torch.nn.functional.scaled_dot_product_attention(turned(q, base), turned(k, base), v, is_causal=True, enable_gqa=True)
        return theirs["output"](y.transpose(1, 2).flatten(2))

    names = {f"multi_head_attention_0.{what}.w": (f"{what}.weight", transposed) for what in theirs}
    names |= {f"multi_head_attention_0.{what}.b": f"{what}.bias" for what in theirs}
    require_like(
        lambda x: ol.layer.multi_head_attention(x, heads=2, kv_heads=1, head_size=4, causal=True, rotary=rotary),
        theirs, [values(N, T, D)], names, call=call,
    )  # fmt: skip


def test_a_block_turns_what_attends_to_itself_alone():
    with ol.Program() as program:
        x, memory = ol.layer.data("x", shape=["t", 8]), ol.layer.data("memory", shape=["s", 8])
        ol.layer.transformer_decoder_layer(x, memory, heads=2, rotary=True, dropout=0.0)
    assert sum(op.type == "cos" for op in program.main.ops) == 2, "of its queries and its keys"


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_all_queries_may_see_more_keys(rate):
    theirs = module(add_bias_kv=True, add_zero_attn=True)
    hidden = torch.ones(T, T).triu(1).bool()
    there = THERE[:, :T]
    names = copied() | {
        f"multi_head_attention_0.{what}.extra": (f"bias_{what[0]}", lambda row: row.reshape(1, -1)) for what in ("key", "value")
    }
    how = {"heads": HEADS, "causal": True, "extra_key": True, "zero_key": True, "dropout": rate}
    require_like(
        lambda x, keys: ol.layer.multi_head_attention(x, key_mask=keys, **how),
        theirs, [values(N, T, D), there], names, call=lambda x, keys: theirs(x, x, x, attn_mask=hidden, key_padding_mask=~keys)[0],
    )  # fmt: skip
