"""Operators on images, signals and volumes: values, gradients and gradients of gradients are PyTorch's, at settings drawn at random."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import pytest
import torch
from tolerances import PYTORCH, VALUES

import oarlock as ol

Shapes = dict[str, tuple[int, ...]]


class Setting(NamedTuple):
    """A call of an operator of ours, and the function of PyTorch that gives what it gives, of tensors of some shapes."""

    operator: str
    shapes: Shapes
    attributes: dict[str, Any]
    expected: Callable[..., torch.Tensor]
    order: int = 2

    def __str__(self) -> str:
        return f"{self.operator}({self.shapes}, {self.attributes})"


def _numbers(random: Random, axes: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(random.randint(low, high) for _ in range(axes))


def _convolutions(random: Random, axes: int) -> Setting:
    groups, n = random.choice([1, 1, 2, 3]), random.randint(1, 2)
    c, f = (groups * random.randint(1, 2) for _ in range(2))
    window, stride = _numbers(random, axes, 1, 3), _numbers(random, axes, 1, 3)
    padding, dilation = _numbers(random, axes, 0, 2), _numbers(random, axes, 1, 2)
    sizes = [step * (count - 1) + 1 + random.randint(0, 3) for count, step in zip(window, dilation, strict=True)]
    shapes = {"x": (n, c, *sizes), "filter": (f, c // groups, *window), **({"bias": (f,)} if random.random() < 0.5 else {})}
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    function = getattr(torch.nn.functional, f"conv{axes}d")
    return Setting(f"conv{axes}d", shapes, how, lambda **given: function(*given.values(), **how))


def _transposed_convolutions(random: Random, axes: int) -> Setting:
    groups, n = random.choice([1, 1, 2]), random.randint(1, 2)
    c, part = groups * random.randint(1, 2), random.randint(1, 2)
    window, stride, dilation = _numbers(random, axes, 1, 3), _numbers(random, axes, 1, 3), _numbers(random, axes, 1, 2)
    padding = tuple(random.randint(0, step * (count - 1) // 2) for count, step in zip(window, dilation, strict=True))
    more = tuple(random.randint(0, max(pair) - 1) for pair in zip(stride, dilation, strict=True))
    shapes = {"x": (n, c, *_numbers(random, axes, 1, 4)), "filter": (c, part, *window)}
    shapes |= {"bias": (part * groups,)} if random.random() < 0.5 else {}
    how = {"stride": stride, "padding": padding, "output_padding": more, "dilation": dilation, "groups": groups}
    function = getattr(torch.nn.functional, f"conv_transpose{axes}d")
    return Setting(f"conv_transpose{axes}d", shapes, how, lambda **given: function(*given.values(), **how))


def _pools(random: Random, axes: int) -> Setting:
    size, stride, ceil_mode = _numbers(random, axes, 1, 4), _numbers(random, axes, 1, 3), random.random() < 0.5
    kind = random.choice(["max", "average"])
    dilation = _numbers(random, axes, 1, 2) if kind == "max" else (1,) * axes
    extents = [step * (count - 1) + 1 for count, step in zip(size, dilation, strict=True)]
    padding = tuple(random.randint(0, window // 2) for window in size)
    shape = (random.randint(1, 2), random.randint(1, 3), *(extent + random.randint(0, 4) for extent in extents))
    how: dict[str, Any] = {"size": size, "stride": stride, "padding": padding, "ceil_mode": ceil_mode}
    if kind == "max":
        function = getattr(torch.nn.functional, f"max_pool{axes}d")
        return Setting(
            f"max_pool{axes}d",
            {"x": shape},
            {**how, "dilation": dilation},
            lambda x: function(x, size, stride, padding, dilation, ceil_mode),
        )
    counted = random.random() < 0.5
    average = getattr(torch.nn.functional, f"avg_pool{axes}d")
    return Setting(
        f"average_pool{axes}d",
        {"x": shape},
        {**how, "count_include_pad": counted},
        lambda x: average(x, size, stride, padding, ceil_mode, counted),
    )


def _adaptive_pools(random: Random, axes: int) -> Setting:
    size = _numbers(random, axes, 1, 4)
    shape = (random.randint(1, 2), random.randint(1, 3), *_numbers(random, axes, 1, 7))
    ours, theirs = random.choice([("max", "max"), ("average", "avg")])
    function = getattr(torch.nn.functional, f"adaptive_{theirs}_pool{axes}d")
    return Setting(f"adaptive_{ours}_pool{axes}d", {"x": shape}, {"size": size}, lambda x: function(x, size))


def _pads(random: Random, axes: int) -> Setting:
    mode = random.choice(["constant", "constant", "reflect", "replicate", "circular"])
    sizes = _numbers(random, axes, 3, 5)
    before, after = _numbers(random, axes, -1, 2), _numbers(random, axes, -1, 2)
    ends = [number for pair in zip(reversed(before), reversed(after), strict=True) for number in pair]
    how: dict[str, Any] = {"before": before, "after": after, "mode": mode, **({"value": 0.25} if mode == "constant" else {})}
    value = 0.25 if mode == "constant" else None
    return Setting("pad", {"x": (1, 2, *sizes)}, how, lambda x: torch.nn.functional.pad(x, ends, mode, value))


def _normalizations(random: Random, axes: int) -> Setting:
    groups = random.randint(1, 3)
    c = groups * random.randint(1, 2)
    parameters = random.choice([{}, {"scale": (c,)}, {"scale": (c,), "bias": (c,)}])
    if random.random() < 0.4:
        scale = {name: size for name, size in parameters.items() if name == "scale"}
        shapes = {"x": (*_numbers(random, axes - 1, 1, 3), c), **scale}
        return Setting("rms_norm", shapes, {"epsilon": 1e-3}, lambda x, scale=None: torch.nn.functional.rms_norm(x, [c], scale, 1e-3))
    how = {"groups": groups, "epsilon": 1e-3}
    shapes = {"x": (2, c, *_numbers(random, axes, 2, 3)), **parameters}
    function = torch.nn.functional.group_norm
    return Setting("group_norm", shapes, how, lambda x, scale=None, bias=None: function(x, groups, scale, bias, 1e-3))


def _resizes(random: Random, axes: int) -> Setting:
    mode = random.choice(["nearest", "nearest-exact", "linear", "area", *(["cubic"] if axes == 2 else [])])
    theirs = {"linear": {1: "linear", 2: "bilinear", 3: "trilinear"}[axes], "cubic": "bicubic"}.get(mode, mode)
    corners = random.random() < 0.5 if mode in ("linear", "cubic") else None
    sizes = _numbers(random, axes, 2, 5)
    size, scale = _numbers(random, axes, 1, 7), tuple(random.choice([0.5, 0.7, 1.0, 1.6, 2.0]) for _ in range(axes))
    by_size = random.random() < 0.5
    how: dict[str, Any] = {
        "mode": mode,
        **({"align_corners": corners} if corners else {}),
        **({"size": size} if by_size else {"scale": scale}),
    }
    target = (list(size), None) if by_size else (None, list(scale))
    function = torch.nn.functional.interpolate
    return Setting("resize", {"x": (1, 2, *sizes)}, how, lambda x: function(x, *target, theirs, corners))


def _samples(random: Random, axes: int) -> Setting:
    axes = max(axes, 2)
    mode = random.choice(["bilinear", "nearest", *(["bicubic"] if axes == 2 else [])])
    outside, corners = random.choice(["zeros", "border", "reflection"]), random.random() < 0.5
    shapes = {"x": (2, 2, *_numbers(random, axes, 2, 4)), "grid": (2, *_numbers(random, axes, 1, 3), axes)}
    how = {"mode": mode, "padding_mode": outside, "align_corners": corners}
    function = torch.nn.functional.grid_sample
    return Setting("grid_sample", shapes, how, lambda x, grid: function(x, grid, mode, outside, corners), 1)


FAMILIES: list[tuple[Callable[[Random, int], Setting], int]] = [
    (_convolutions, 12),
    (_transposed_convolutions, 12),
    (_pools, 24),
    (_adaptive_pools, 12),
    (_pads, 8),
    (_normalizations, 8),
    (_resizes, 10),
    (_samples, 6),
]


def _settings() -> Iterator[Setting]:
    for draw, count in FAMILIES:
        for axes in (1, 2, 3):
            random = Random(f"{draw.__name__} {axes}")
            for _ in range(count):
                yield draw(random, axes)


SETTINGS = list(_settings())


def _drawn(setting: Setting, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    drawn = {name: torch.rand(shape, generator=generator, dtype=torch.float64) - 0.5 for name, shape in setting.shapes.items()}
    return {name: (3 * value if name == "grid" else value).to(dtype) for name, value in drawn.items()}  # some beyond the ends


def _weights(like: list[torch.Tensor], seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.rand(each.shape, generator=generator, dtype=torch.float64) - 0.5 for each in like]


def _by_ours(setting: Setting, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The outputs, the gradients of a weighted sum of them, and those of a weighted sum of these, at the inputs and the weights."""
    with ol.Program() as program:
        inputs = {name: ol.layer.data(name, list(value.shape), "float64", batch=None) for name, value in given.items()}
        for var in inputs.values():
            var.stop_gradient = False
        y = ol.op.__getattr__(setting.operator)(**inputs, **setting.attributes)
        y = y[0] if isinstance(y, tuple) else y
        weight = ol.layer.data("weight", list(y.shape), "float64", batch=None)
        weight.stop_gradient = False
        firsts = ol.gradients([y], list(inputs.values()), [weight])
        others = [ol.layer.data(f"other_{number}", list(var.shape), "float64", batch=None) for number, var in enumerate(inputs.values())]
        seconds = list(ol.gradients(firsts, [*inputs.values(), weight], others)) if setting.order > 1 else []
    feed = {**given, "weight": _weights([torch.empty(y.shape)], 7)[0]}
    feed |= {f"other_{number}": value for number, value in enumerate(_weights(list(given.values()), 8))}
    fetch = [y, *firsts, *(var for var in seconds if var is not None)]
    plans = ol.Executor().run(program, feed, fetch, scope=ol.Scope(), return_numpy=False)
    for one, other in zip(plans, ol.Executor(interpret=True).run(program, feed, fetch, scope=ol.Scope(), return_numpy=False), strict=True):
        torch.testing.assert_close(one, other, rtol=PYTORCH[0], atol=PYTORCH[1])
    found = iter(plans[1 + len(firsts) :])
    filled = [
        torch.zeros(var.shape, dtype=torch.float64) if second is None else next(found)
        for var, second in zip([*inputs.values(), weight] if seconds else [], seconds, strict=True)
    ]
    return [*plans[: 1 + len(firsts)], *filled]


def _by_pytorch(setting: Setting, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    leaves = {name: value.clone().requires_grad_() for name, value in given.items()}
    y = setting.expected(**leaves)
    (weight,) = _weights([y], 7)
    weight.requires_grad_()
    firsts = torch.autograd.grad(y, list(leaves.values()), weight, create_graph=setting.order > 1)
    if setting.order == 1:
        return [y.detach(), *(first.detach() for first in firsts)]
    others = _weights(list(given.values()), 8)
    total = torch.stack([(first * other).sum() for first, other in zip(firsts, others, strict=True)]).sum()
    seconds = torch.autograd.grad(total, [*leaves.values(), weight], allow_unused=True, materialize_grads=True)
    return [y.detach(), *(first.detach() for first in firsts), *seconds]


@pytest.mark.parametrize("setting", SETTINGS, ids=[f"{number}-{setting.operator}" for number, setting in enumerate(SETTINGS)])
def test_values_and_gradients_of_first_and_second_order_are_those_of_pytorch(setting: Setting):
    given = _drawn(setting, torch.float64)
    for actual, expected in zip(_by_ours(setting, given), _by_pytorch(setting, given), strict=True):
        torch.testing.assert_close(actual, expected, rtol=PYTORCH[0], atol=PYTORCH[1], msg=lambda text: f"{setting}: {text}")


@pytest.mark.parametrize("setting", SETTINGS, ids=[f"{number}-{setting.operator}" for number, setting in enumerate(SETTINGS)])
def test_what_is_computed_in_single_precision_is_that_of_double_precision(setting: Setting):
    """Whichever format images lie in."""
    operator = ol.registry.standard.get(setting.operator)
    given = _drawn(setting, torch.float32)
    expected = setting.expected(**{name: value.double() for name, value in given.items()})
    for laid in (False, True):
        if laid:
            given = {
                name: value.contiguous(memory_format=torch.channels_last) if value.ndim == 4 else value for name, value in given.items()
            }
        y = operator.kernel(**given, **setting.attributes)
        y = y[0] if isinstance(y, tuple) else y
        torch.testing.assert_close(y.double(), expected, rtol=VALUES[torch.float32][0], atol=VALUES[torch.float32][1])


WILD = [float("nan"), float("inf"), float("-inf"), 1e30, -1e30, 2.0**31, -(2.0**33), 1e18, 0.3]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("axes", [2, 3])
def test_places_that_are_none_are_sampled_without_reading_beyond_an_image(axes: int, dtype: torch.dtype):
    """PyTorch crashes at some of them. Values are what they are at the nearest places that it takes: zeros, or those of a border."""
    generator = torch.Generator().manual_seed(1)
    known = ol.registry.standard
    x = torch.rand(2, 3, *[5] * axes, generator=generator, dtype=dtype) + 1
    grid = torch.tensor(WILD, dtype=dtype)[torch.randint(0, len(WILD), (2, *[6] * axes, axes), generator=generator)]
    for mode in ("bilinear", "nearest", *(["bicubic"] if axes == 2 else [])):
        for outside in ("zeros", "border", "reflection"):
            how = {"mode": mode, "padding_mode": outside, "align_corners": False}
            y = ol.op.grid_sample.kernel(x, grid, **how)
            dy = torch.ones_like(y)
            dx = known.get("grid_sample_dx").kernel(grid, dy, x.shape, **how)
            dgrid = known.get("grid_sample_dgrid").kernel(x, grid, dy, **how)
            assert all(each.isfinite().all() for each in (y, dx, dgrid)), how
            far = (grid.abs() > 10).any(-1)[:, None].expand_as(y)
            if outside == "zeros":
                assert not y[far].any(), how


def test_images_scaled_to_another_size_than_their_gradient_has_are_refused():
    backward = ol.registry.standard.get("resize_dx").kernel
    with pytest.raises(ValueError, match=r"^images of \[3, 3\] scaled by \(2.0, 1e-30\) are not \[6, 4\]$"):
        backward(torch.ones(1, 1, 6, 4), torch.Size((1, 1, 3, 3)), scale=(2.0, 1e-30), mode="nearest", align_corners=False)


@pytest.mark.parametrize("channels", [64, 128])
def test_long_sums_of_single_precision_have_the_bits_of_pytorch(channels):
    """By windows of 1024 products and more; by smaller ones images lie in another order, and are close."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, channels, 12, 12, generator=generator).relu()
    filter = torch.randn(32, channels, 3, 3, generator=generator)
    with ol.Program() as program:
        y = ol.op.conv2d(ol.layer.data("x", [channels, 12, 12]), ol.layer.data("filter", [32, channels, 3, 3], batch=None), padding=(1, 1))
    scope, expected = ol.Scope(), torch.conv2d(x, filter, padding=1)
    for executor in (ol.Executor(), ol.Executor(passes=())):
        (made,) = executor.run(program, {"x": x, "filter": filter}, [y], scope=scope, return_numpy=False)
        assert made.equal(expected) or channels * 9 < 1024
        torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-3)
