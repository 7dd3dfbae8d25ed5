"""Rules of single overloads, each by a module of one operator: forward and gradient in float64 beside PyTorch's."""

import zlib
from collections.abc import Callable

import pytest
import torch
from interop.torch.imports import compare
from torch.nn import functional

from oarlock.interop.torch.arguments import _WITHOUT_MEANING
from oarlock.interop.torch.rules.registry import load_rules


def _draw(name: str, *shapes, low: float = -2.0, high: float = 2.0) -> tuple[torch.Tensor, ...]:
    """Random numbers of a seed that the name of a case gives; a tensor is itself."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return tuple(
        shape if isinstance(shape, torch.Tensor) else low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
        for shape in shapes
    )


def _each(module, names: str, shapes, *, wrap=lambda function: function, **draw: float):
    """A case for each of the functions of a module that are named."""
    return [(name, wrap(getattr(module, name)), shapes, draw) for name in names.split()]


_attend = functional.scaled_dot_product_attention
_X = ((3, 4),)
_XY = ((3, 4), (4,))
_IMAGE = ((2, 4, 6, 5),)
_POSITIVE = {"low": 0.5, "high": 1.5}
_IDS = torch.tensor([[0, 2, 1], [3, 0, 2]])
_MASK = torch.tensor([[True, False, True, True], [False, True, True, False], [True, True, False, False]])
_INTEGERS = torch.tensor([[7, -7, 5], [-5, 6, -3]])
_DIVISORS = torch.tensor([2, 3, -2])

# By family: a name, a function of tensors, their shapes or themselves, and how they are drawn.
FAMILIES = {
    "arithmetic": [
        ("add", lambda x, y: x + y, _XY),
        ("add alpha", lambda x, y: torch.add(x, y, alpha=2.5), _XY),
        ("add number", lambda x: x + 2, _X),
        ("add integers and floats", lambda x, y: x + y, ((2, 3), _INTEGERS)),
        ("sub", lambda x, y: x - y, _XY),
        ("rsub", lambda x: 1.5 - x, _X),
        ("rsub alpha", lambda x, y: torch.rsub(x, y, alpha=3), _XY),
        ("mul", lambda x, y: x * y, _XY),
        ("mul bool", lambda x, y: x * y, ((3, 4), _MASK)),
        ("div", lambda x, y: x / y, _XY, _POSITIVE),
        ("div integers", lambda x, y, z: x / y * z, (_INTEGERS, _DIVISORS, (3,))),
        ("div trunc", lambda x, y: torch.div(x, y, rounding_mode="trunc"), _XY),
        ("div floor", lambda x, y: torch.div(x, y, rounding_mode="floor"), _XY),
        ("div trunc of integers", lambda x, y, z: torch.div(x, y, rounding_mode="trunc") * z, (_INTEGERS, _DIVISORS, (3,))),
        ("remainder", lambda x, y: torch.remainder(x, y), _XY),
        ("fmod", lambda x, y: torch.fmod(x, y), _XY),
        ("pow 2", lambda x: x**2, _X),
        ("pow 3", lambda x: x**3, _X),
        ("pow -0.5", lambda x: x**-0.5, _X, _POSITIVE),
        ("pow 2.5", lambda x: x**2.5, _X, _POSITIVE),
        ("pow tensor", lambda x, y: x**y, _XY, _POSITIVE),
        ("pow of a number", lambda x: 2.0**x, _X),
        ("maximum", lambda x, y: torch.maximum(x, y), _XY),
        ("maximum at ties", lambda x, y: torch.maximum(x, y), (torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64))),
        ("minimum", lambda x, y: torch.minimum(x, y), _XY),
        ("clamp", lambda x: x.clamp(-0.5, 0.7), _X),
        ("clamp min", lambda x: x.clamp(min=0.1), _X),
        ("clamp integers", lambda x, z: x.clamp(0, 4) * z, (_INTEGERS, (3,))),
        ("clamp tensors", lambda x, y, z: torch.clamp(x, y, z), ((3, 4), (4,), (4,))),
        ("addcmul", lambda x, y, z: torch.addcmul(x, y, z, value=0.5), ((3, 4), (3, 4), (4,))),
        ("addcdiv", lambda x, y, z: torch.addcdiv(x, y, z, value=0.5), ((3, 4), (3, 4), (4,)), _POSITIVE),
        ("lerp", lambda x, y: torch.lerp(x, y, 0.3), ((3, 4), (3, 4))),
        ("xlogy", lambda x, y: torch.xlogy(x, y), _XY, _POSITIVE),
        ("logaddexp", lambda x, y: torch.logaddexp(x, y), _XY),
        ("atan2", lambda x, y: torch.atan2(x, y), _XY),
    ],
    "functions": [
        *_each(torch, "sin cos tanh exp expm1 sigmoid erf abs neg square sinh", _X),
        *_each(torch, "log log2 log10 log1p sqrt rsqrt reciprocal tan", _X, **_POSITIVE),
        *_each(torch, "asin acos atan atanh asinh exp2 erfc", _X, low=-0.9, high=0.9),
        *_each(torch, "floor ceil round trunc sign frac", _X, wrap=lambda function: lambda x: function(x) * x),
        ("acosh", torch.acosh, _X, {"low": 1.5, "high": 3.0}),
        ("cosh", torch.cosh, _X),
        ("logit", torch.logit, _X, {"low": 0.1, "high": 0.9}),
        ("sinc", torch.sinc, _X),
        ("nan_to_num", lambda x: torch.nan_to_num(x / x.floor().clamp(min=0), nan=0.5, posinf=3.0, neginf=-3.0), _X),
        ("detach", lambda x: x.detach() * x, _X),
    ],
    "comparison and choice": [
        ("where", lambda x, y: torch.where(x > y, x * 2, y), _XY),
        ("where number", lambda x: torch.where(x > 0, x, -1.0), _X),
        ("masked_fill", lambda x, m: x.masked_fill(m, -3.0), ((3, 4), _MASK)),
        ("comparisons", lambda x, y: ((x > y) | (x < -1) & (y != 0.5) ^ (x <= y)) * x, _XY),
        ("bits", lambda x, z: ((x & 3) | (x << 1) ^ ~x) * z, (_INTEGERS, (3,))),
        ("logic", lambda x, y: torch.logical_and(x, y).logical_not().to(x.dtype) * x, ((3, 4), _MASK)),
        ("isclose", lambda x, y: torch.isclose(x, y) * x, ((3, 4), (3, 4))),
    ],
    "activations": [
        *_each(functional, "relu silu mish hardswish hardsigmoid leaky_relu elu selu celu softplus softsign logsigmoid", _X),
        *_each(functional, "hardshrink softshrink tanhshrink relu6 hardtanh gelu", _X),
        ("gelu tanh", lambda x: functional.gelu(x, approximate="tanh"), _X),
        ("softplus beta", lambda x: functional.softplus(x, beta=3, threshold=2), _X),
        ("threshold", lambda x: functional.threshold(x, 0.1, 0.7), _X),
        ("prelu", lambda x, w: functional.prelu(x, w), ((2, 3, 4), (3,))),
        ("glu", lambda x: functional.glu(x, dim=1), ((3, 4),)),
        ("softmax", lambda x: x.softmax(-1), _X),
        ("softmax of the first axis", lambda x: x.softmax(0), _X),
        ("log_softmax", lambda x: x.log_softmax(1), ((2, 3, 4),)),
        ("softmin", lambda x: functional.softmin(x, 1), _X),
    ],
}  # fmt: skip


class Family(torch.nn.Module):
    """Functions, each of tensors of its own, as one module: a module is exported once."""

    def __init__(self, functions: dict[str, tuple[Callable[..., object], int]]):
        super().__init__()
        self.functions = functions

    def forward(self, *given: torch.Tensor) -> dict[str, object]:
        rest, outputs = list(given), {}
        for name, (function, count) in self.functions.items():
            outputs[name.replace(" ", "_").replace("-", "minus_")] = function(*rest[:count])
            del rest[:count]
        return outputs


@pytest.mark.parametrize("family", FAMILIES)
def test_operators_that_come_in_give_what_pytorch_gives(family):
    drawn = {name: _draw(name, *given, **(draw[0] if draw else {})) for name, _, given, *draw in FAMILIES[family]}
    assert len(drawn) == len(FAMILIES[family])
    module = Family({name: (function, len(drawn[name])) for name, function, *_ in FAMILIES[family]})
    compare(module, [tensor for tensors in drawn.values() for tensor in tensors])


def test_rules_are_called_as_the_schemas_of_their_overloads():
    faults = []
    for name, rule in load_rules().items():
        if not name.startswith("aten."):
            continue
        _, operator, overload = name.split(".")
        schema = getattr(getattr(torch.ops.aten, operator), overload)._schema
        needed = {argument.name for argument in schema.arguments if not argument.has_default_value()}
        faults += [f"{name}: {missing} is not taken" for missing in sorted(needed - {*rule.parameters, *_WITHOUT_MEANING})]
        faults += [f"{name}: {promoted} is no parameter" for promoted in rule.promote if promoted not in rule.parameters]
    assert faults == []
