"""Transformer blocks and stacks against PyTorch's, with the same weights; and positions."""

import math

import numpy
import pytest
import torch
from beside_torch import require_like, transposed

import oarlock as ol

D, HEADS, WIDE, N, T, S = 6, 2, 10, 2, 4, 5
nn = torch.nn


def values(*shape: int, seed: int = 0) -> numpy.ndarray:
    return numpy.random.default_rng(seed).standard_normal(shape)


def part(number: int, count: int):
    return lambda w: (lambda rows: rows if rows.ndim == 1 else rows.mT)(w.chunk(count)[number])


def copied(ours: str, theirs: str = "", *, decoder: bool = False, bias: bool = True) -> dict:
    """The parameters of a block of ours by their names in PyTorch's."""
    found = {}
    for attention, prefix in [("attention", "self_attn"), *[("cross_attention", "multihead_attn")] * decoder]:
        for number, what in enumerate(("query", "key", "value")):
            found[f"{ours}.{attention}.{what}.w"] = (f"{theirs}{prefix}.in_proj_weight", part(number, 3))
            found[f"{ours}.{attention}.{what}.b"] = (f"{theirs}{prefix}.in_proj_bias", part(number, 3))
        found[f"{ours}.{attention}.output.w"] = (f"{theirs}{prefix}.out_proj.weight", transposed)
        found[f"{ours}.{attention}.output.b"] = f"{theirs}{prefix}.out_proj.bias"
    for linear in ("linear1", "linear2"):
        found |= {f"{ours}.{linear}.w": (f"{theirs}{linear}.weight", transposed), f"{ours}.{linear}.b": f"{theirs}{linear}.bias"}
    for norm in ("norm1", "norm2", *["norm3"] * decoder):
        found |= {f"{ours}.{norm}.scale": f"{theirs}{norm}.weight", f"{ours}.{norm}.bias": f"{theirs}{norm}.bias"}
    return {name: how for name, how in found.items() if bias or not name.endswith((".b", ".bias"))}


def final(ours: str, theirs: str = "norm") -> dict:
    return {f"{ours}.norm.scale": f"{theirs}.weight", f"{ours}.norm.bias": f"{theirs}.bias"}


def randomized(module: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def block(kind: type, **how) -> nn.Module:
    return kind(D, HEADS, WIDE, batch_first=True, **how)


THERE = torch.tensor([[True, True, True, False, False], [True] * 5])
HIDDEN = torch.ones(T, T).triu(1).bool()


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("how", [{}, {"norm_first": True, "activation": "gelu"}, {"bias": False, "layer_norm_eps": 1e-3}], ids=str)
def test_an_encoder_block_is_that_of_pytorch(how, dropout):
    theirs = randomized(block(nn.TransformerEncoderLayer, **how))
    ours = {"norm_first": how.get("norm_first", False), "bias": how.get("bias", True), "epsilon": how.get("layer_norm_eps", 1e-5)}
    act = ol.op.gelu if "activation" in how else "relu"
    require_like(
        lambda x, there: ol.layer.transformer_encoder_layer(
            x, heads=HEADS, feedforward=WIDE, dropout=dropout, act=act, key_mask=there, **ours
        ),
        theirs,
        [values(N, S, D), THERE],
        copied("transformer_encoder_layer_0", bias=ours["bias"]),
        call=lambda x, there: theirs(x, src_key_padding_mask=~there),
    )


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_decoder_block_is_that_of_pytorch(norm_first):
    theirs = randomized(block(nn.TransformerDecoderLayer, norm_first=norm_first))
    require_like(
        lambda x, memory, there: ol.layer.transformer_decoder_layer(
            x, memory, heads=HEADS, feedforward=WIDE, norm_first=norm_first, memory_key_mask=there
        ),
        theirs,
        [values(N, T, D), values(N, S, D, seed=1), THERE],
        copied("transformer_decoder_layer_0", decoder=True),
        call=lambda x, memory, there: theirs(x, memory, tgt_mask=HIDDEN, memory_key_padding_mask=~there),
    )


def test_a_stack_of_encoder_blocks_is_that_of_pytorch():
    theirs = nn.TransformerEncoder(block(nn.TransformerEncoderLayer, norm_first=True), 2, nn.LayerNorm(D), enable_nested_tensor=False)
    name = "transformer_encoder_0"
    require_like(
        lambda x: ol.layer.transformer_encoder(x, layers=2, heads=HEADS, feedforward=WIDE, norm_first=True, final_norm=True, causal=True),
        randomized(theirs),
        [values(N, T, D)],
        copied(f"{name}.0", "layers.0.") | copied(f"{name}.1", "layers.1.") | final(name),
        call=lambda x: theirs(x, mask=HIDDEN),
    )


def test_a_whole_transformer_is_that_of_pytorch():
    theirs = randomized(nn.Transformer(D, HEADS, 1, 2, WIDE, batch_first=True))
    names = copied("transformer_0.encoder.0", "encoder.layers.0.") | final("transformer_0.encoder", "encoder.norm")
    for number in range(2):
        names |= copied(f"transformer_0.decoder.{number}", f"decoder.layers.{number}.", decoder=True)
    require_like(
        lambda s, t, there: ol.layer.transformer(
            s, t, heads=HEADS, encoder_layers=1, decoder_layers=2, feedforward=WIDE, source_key_mask=there
        ),
        theirs,
        [values(N, S, D), values(N, T, D, seed=1), THERE],
        names | final("transformer_0.decoder", "decoder.norm"),
        call=lambda s, t, there: theirs(s, t, tgt_mask=HIDDEN, src_key_padding_mask=~there, memory_key_padding_mask=~there),
    )


def test_sizes_may_be_symbols_and_everything_is_dropped_in_training_alone():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["t", D], dtype="float64")
        y = ol.layer.transformer_encoder(x, layers=2, heads=HEADS, causal=True, dropout=0.5)
    assert y.shape == ("n", "t", D)
    scope, feed = ol.init(program, ol.Scope()), {"x": values(3, 4, D)}
    once, again, trained = (ol.Executor(check=True).run(program, feed, [y], scope=scope, training=on)[0] for on in (False, False, True))
    assert numpy.array_equal(once, again)
    assert not numpy.allclose(once, trained)
    shorter = ol.Executor().run(program, {"x": feed["x"][:, :2]}, [y], scope=scope)[0]
    numpy.testing.assert_allclose(shorter, once[:, :2], rtol=1e-10)


def test_a_block_that_is_refused_declares_nothing():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["t", D])
        for layer, message in (
            (lambda: ol.layer.transformer_encoder(x, layers=2, heads=4), "multi_head_attention: 4 heads do not divide the 6 columns of x"),
            (
                lambda: ol.layer.transformer_encoder_layer(x, heads=2, feedforward=0),
                "transformer: feedforward must be an integer >= 1, not 0",
            ),
            (lambda: ol.layer.transformer_encoder_layer(x, heads=2, act="rely"), "no activation is called 'rely'"),
        ):
            with pytest.raises(ol.ArgumentError) as raised:
                layer()
            assert raised.value.message == message
    assert program.persistables() == []
    assert program.main.ops == []


# Positions


def test_waves_tell_the_place_of_a_step():
    def waves(x):
        """Vaswani et al., 2017, section 3.5, number by number."""
        table = torch.zeros(x.shape[-2:], dtype=x.dtype)
        for place in range(x.shape[-2]):
            for pair in range(x.shape[-1] // 2):
                angle = place / 10_000.0 ** (2 * pair / x.shape[-1])
                table[place, 2 * pair], table[place, 2 * pair + 1] = math.sin(angle), math.cos(angle)
        return x + table

    require_like(ol.layer.sinusoidal_positions, waves, [values(N, T, D)], {})
    with ol.Program():
        with pytest.raises(ol.ShapeError) as raised:
            ol.layer.sinusoidal_positions(ol.layer.data("x", shape=["t", 3]))
        assert raised.value.message == "sinusoidal_positions: x must be float[*b t d] with an even d, not float32[n, t, 3]"


def test_vectors_of_places_are_trained():
    module = nn.Embedding(7, D)
    require_like(
        lambda x: ol.layer.learned_positions(x, 7),
        module,
        [values(N, T, D)],
        {"learned_positions_0.w": "weight"},
        call=lambda x: x + module(torch.arange(T)),
    )
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["t", D])
        y = ol.layer.learned_positions(x, 3)
        with pytest.raises(ol.ShapeError) as raised:
            ol.layer.learned_positions(ol.layer.data("long", shape=[4, D]), 3)
    assert raised.value.message == f"learned_positions: x must be float[*b t d] with at most 3 steps, not float32[n, 4, {D}]"
    with pytest.raises(ol.OarlockError):
        ol.Executor().run(program, {"x": values(1, 4, D).astype("float32")}, [y], scope=ol.init(program, ol.Scope()))
