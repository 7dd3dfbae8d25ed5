"""Rotary places, biases by distance, and decoding with a cache: against their formulas, and against attention to everything at once."""

import math

import pytest
import torch
from tolerances import LAYERS

import oarlock as ol

ROWS, STEPS, HEADS, WIDTH = 2, 5, 2, 8


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def run(program: ol.Program, feed: dict, fetch: list) -> list[torch.Tensor]:
    return ol.Executor().run(program, feed, fetch, scope=ol.init(program, ol.Scope()), return_numpy=False)


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=LAYERS[0], atol=LAYERS[1])


def turned(x: torch.Tensor, heads: int, columns: int, first: int, interleaved: bool) -> torch.Tensor:
    """Columns as complex numbers, multiplied by ``exp(i p / 10000**(2 j / columns))``."""
    parts = x.reshape(*x.shape[:-1], heads, -1)
    part, rest = parts[..., :columns], parts[..., columns:]
    pairs = part.unflatten(-1, (-1, 2)) if interleaved else part.unflatten(-1, (2, -1)).mT
    places = torch.arange(first, first + x.shape[-2], dtype=torch.float64)
    angles = places[:, None] / 10000.0 ** (torch.arange(0, columns, 2, dtype=torch.float64) / columns)
    found = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * torch.polar(torch.ones_like(angles), angles)[:, None])
    found = found.flatten(-2) if interleaved else found.mT.flatten(-2)
    return torch.cat([found, rest], -1).flatten(-2)


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize(("heads", "columns"), [(1, None), (2, None), (2, 2)])
def test_rotary_columns_are_multiplied_as_complex_numbers(heads: int, columns: int | None, interleaved: bool):
    x = numbers(ROWS, STEPS, WIDTH)
    with ol.Program() as program:
        given, first = ol.layer.data("x", ["t", WIDTH], "float64"), ol.layer.data("first", [], "int64", batch=None)
        options = {"heads": heads, "columns": columns, "interleaved": interleaved}
        y = ol.layer.rotary_positions(given, **options)
        later = ol.layer.rotary_positions(given, offset=first, **options)
        (gradient,) = ol.gradients(ol.op.reduce_sum(ol.op.square(y)), [given])
    found = run(program, {"x": x, "first": 7}, [y, later, gradient])
    close(found[0], turned(x, heads, columns or WIDTH // heads, 0, interleaved))
    close(found[1], turned(x, heads, columns or WIDTH // heads, 7, interleaved))
    close(found[2], 2 * x)  # a turn keeps lengths


def test_products_of_turned_columns_tell_only_how_far_apart_they_are():
    query, key = numbers(1, 1, WIDTH).expand(1, STEPS, WIDTH), numbers(1, 1, WIDTH, seed=1).expand(1, STEPS, WIDTH)
    with ol.Program() as program:
        q, k = (ol.layer.rotary_positions(ol.layer.data(name, [STEPS, WIDTH], "float64")) for name in "qk")
        scores = ol.op.matmul(q, ol.op.matrix_transpose(k))
    (found,) = run(program, {"q": query, "k": key}, [scores])
    for distance in range(1 - STEPS, STEPS):
        diagonal = found[0].diagonal(distance)
        close(diagonal, diagonal[:1].expand_as(diagonal))


@pytest.mark.parametrize("heads", [1, 4, 6])
def test_alibi_falls_with_the_distance_by_the_slopes_of_the_paper(heads: int):
    with ol.Program() as program:
        query, key = ol.layer.data("query", ["t", 3]), ol.layer.data("key", ["s", 3])
        bias = ol.op.alibi_bias(query, key, heads=heads)
    (found,) = run(program, {"query": torch.zeros(2, 3, 3), "key": torch.zeros(2, 5, 3)}, [bias])
    slopes = {1: [2**-8], 4: [2**-2, 2**-4, 2**-6, 2**-8], 6: [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]}[heads]
    distance = (torch.arange(5) - torch.arange(2, 5)[:, None]).abs()
    torch.testing.assert_close(found, (-torch.tensor(slopes)[:, None, None] * distance).expand(2, heads, 3, 5))


def bucket_of(place: int, buckets: int, farthest: int, both_sides: bool) -> int:
    """The bucket of a key so far ahead of its query, by the description in the paper's code."""
    side, first = (buckets // 2, buckets // 2 if place > 0 else 0) if both_sides else (buckets, 0)
    distance = abs(place) if both_sides else max(-place, 0)
    exact = side // 2
    if distance < exact:
        return first + distance
    return first + min(side - 1, exact + int(math.log(distance / exact) / math.log(farthest / exact) * (side - exact) + 1e-9))


@pytest.mark.parametrize("both_sides", [True, False])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (8, 20), (4, 3)])
def test_distances_share_buckets_that_grow(buckets: int, farthest: int, both_sides: bool):
    places = list(range(-150, 151))
    with ol.Program() as program:
        given = ol.layer.data("places", [], "int64")
        found = ol.op.relative_buckets(given, buckets=buckets, farthest=farthest, both_sides=both_sides)
    (found,) = run(program, {"places": places}, [found])
    assert found.tolist() == [bucket_of(place, buckets, farthest, both_sides) for place in places]


def test_a_bias_is_looked_up_by_distance_and_learns():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", ["t", 6])
        bias = ol.layer.relative_position_bias(x, heads=2, buckets=8, farthest=16, name="bias")
        y = ol.layer.multi_head_attention(x, heads=2, mask=bias, causal=True)
        ol.append_backward(ol.op.mean(ol.op.square(y)))
    table, found, gradient = run(program, {"x": numbers(2, 5, 6).float()}, ["bias.w", bias, "bias.w@GRAD"])
    assert found.shape == (2, 2, 5, 5)
    assert torch.equal(found[1, 0].diagonal(-1), table[bucket_of(-1, 8, 16, True), 0].expand(4))
    assert gradient.any()


@pytest.mark.parametrize("steps_at_once", [1, 2])
def test_decoding_with_a_cache_in_a_while_loop_is_causal_attention_to_everything(steps_at_once: int):
    """With rotary places and ALiBi, so that each step has to know where it stands."""
    trips, room = 3, 8
    steps = trips * steps_at_once
    q, k, v = (numbers(ROWS, steps, WIDTH, seed=seed) for seed in range(3))
    with ol.Program() as program:
        query, key, value = (ol.layer.data(name, [steps, WIDTH], "float64") for name in ("q", "k", "v"))
        at_once = ol.op.scaled_dot_product_attention(
            ol.op.rotary_positions(query, heads=HEADS), ol.op.rotary_positions(key, heads=HEADS), value, heads=HEADS, causal=True
        )
        keys, values = (ol.op.full_batch_size_like(query, shape=(room, WIDTH), value=0.0, dtype="float64") for _ in range(2))
        length = ol.op.full(shape=(), value=0.0, dtype="int64")
        loop = ol.while_loop(length < steps)
        with loop.block():
            places = length + ol.op.arange([], stop=(steps_at_once,))
            new_q, new_k, new_v = (ol.op.gather(var, places, axis=1) for var in (query, key, value))
            new_q, new_k = (ol.op.rotary_positions(var, heads=HEADS, offset=length) for var in (new_q, new_k))
            y, next_keys, next_values = ol.layer.cached_attention(new_q, new_k, new_v, keys, values, length, heads=HEADS)
            after = length + steps_at_once
            loop.carry(keys, next_keys)
            loop.carry(values, next_values)
            loop.carry(length, after)
            loop.update_condition(after < steps)
            loop.output(y)
        *_, each = loop()
    expected, found = run(program, {"q": q, "k": k, "v": v}, [at_once, each])
    close(found.transpose(0, 1).reshape(ROWS, steps, WIDTH), expected)


def test_a_key_mask_hides_padding_and_a_full_cache_is_refused():
    with ol.Program() as program:
        x, length = ol.layer.data("x", [2, 4], "float64"), ol.layer.data("length", [], "int64", batch=None)
        seen = ol.layer.data("seen", [3], "bool")
        empty = ol.op.full_batch_size_like(x, shape=(3, 4), value=0.0, dtype="float64")
        y, keys, _ = ol.layer.cached_attention(x, x, x, empty, empty, length, key_mask=seen)
    x = numbers(1, 2, 4)
    found, kept = run(program, {"x": x, "length": 1, "seen": [[False, True, False]]}, [y, keys])
    close(found, x[:, :1].expand(1, 2, 4))
    close(kept, torch.cat([torch.zeros(1, 1, 4).double(), x], 1))
    with pytest.raises(ol.KernelError, match="index 3 is out of range for axis 1 of size 3"):
        run(program, {"x": x, "length": 2, "seen": [[True] * 3]}, [y])


MISFITS = {
    "columns": (
        lambda x: ol.op.rotary_positions(x, heads=2),
        "rotary_positions: 3 columns of each of 2 heads cannot be rotated in pairs, of 6 columns",
    ),
    "heads": (lambda x: ol.op.alibi_bias(x, heads=0), "alibi_bias: heads must be an integer >= 1, not 0"),
    "buckets": (lambda x: ol.layer.relative_position_bias(x, heads=1, buckets=2), "relative_buckets: 2 buckets do not reach to 128"),
    "cache": (
        lambda x: ol.layer.append_to_cache(x, ol.op.slice(x, axis=-1, stop=3), x),
        "append_to_cache: the rows do not fit into the cache",
    ),
}


@pytest.mark.parametrize("what", MISFITS)
def test_misfits_are_said_and_leave_no_parameter(what: str):
    write, message = MISFITS[what]
    with ol.Program() as program:
        x = ol.layer.data("x", [5, 6])
        with pytest.raises((ol.ShapeError, ol.ArgumentError)) as caught:
            write(x)
        assert caught.value.message == message
        assert [var.name for var in program.main.vars.values() if var.parameter] == []
