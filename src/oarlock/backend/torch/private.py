"""Every name of PyTorch that is not public. Each is looked up here, once, and has a public fallback that computes the same.

PyTorch may rename these without notice. A fallback may be slower, and may round otherwise; nothing else changes. What `torch.export` hands
out has no public names at all: without those at the end, modules of PyTorch do not come in, and all else is as it was.
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, reduce
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

__all__ = [
    "Overload", "below_autograd", "below_some_autograd", "compile_graph", "convolve_packed", "fake_tensors", "flash_attention",
    "flash_attention_backward", "foreach_copy_", "foreach_mul", "foreach_sub", "foreach_sub_", "fused_adam_", "fused_adamw_",
    "fused_sgd_", "has_compiler", "has_packed_filters", "log_softmax_backward", "multiply_int8", "overloads", "pack_filter",
    "read_dtype", "read_exported", "same_storage", "schema_of", "softmax_backward", "takes_out", "tensor_guards", "with_autograd",
    "without_python",
]  # fmt: skip

Tensors = Sequence[torch.Tensor]


def _find(root: Any, *names: str) -> Any:
    """The object at a path of names; None where some name of it is missing."""
    try:
        return reduce(getattr, names, root)
    except (AttributeError, RuntimeError):  # a namespace of operators raises the second
        return None


# Softmax: the public way to these gradients is autograd, which kernels run without.


def _softmax_backward(dy: torch.Tensor, y: torch.Tensor, axis: int, dtype: torch.dtype, *, grad_input: torch.Tensor | None = None):
    """The gradient of ``softmax``: ``y * (dy - sum(dy * y))``, the sum along an axis."""
    found = (y * (dy - (dy * y).sum(axis, keepdim=True))).to(dtype)
    return found if grad_input is None else grad_input.copy_(found)


def _log_softmax_backward(dy: torch.Tensor, y: torch.Tensor, axis: int, dtype: torch.dtype, *, out: torch.Tensor | None = None):
    """The gradient of ``log_softmax``: ``dy - exp(y) * sum(dy)``, the sum along an axis."""
    found = (dy - torch.exp(y) * dy.sum(axis, keepdim=True)).to(dtype)
    return found if out is None else out.copy_(found)


softmax_backward = _find(torch, "_softmax_backward_data") or _softmax_backward
log_softmax_backward = _find(torch, "_log_softmax_backward_data") or _log_softmax_backward


# Products of integers: the public ones are not vectorized.

_DEEP = 1024  # columns, of which float32 holds each sum of products exactly: 1024 * 128 * 128 is 2 ** 24


def _multiply_int8(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The product of int8 matrices: int32, exact, by products of floats."""
    if not x.is_cpu:
        return torch.mm(x.double(), y.double()).to(torch.int32)
    pieces = zip(x.split(_DEEP, 1), y.split(_DEEP, 0), strict=True)
    return reduce(torch.add, (torch.mm(left.float(), right.float()).to(torch.int32) for left, right in pieces))


_int_mm = _find(torch, "_int_mm")
# Without these instructions `_int_mm` takes 20 times as long as products of floats.
_HAS_INT8 = _int_mm is not None and torch.backends.cpu.get_cpu_capability().startswith("AVX512")


def multiply_int8(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The same by the processor's own instructions, where it and PyTorch have them: on a CPU, for matrices with elements."""
    if not x.numel() or not y.numel():
        return torch.zeros(x.shape[0], y.shape[1], dtype=torch.int32, device=x.device)
    return _int_mm(x, y) if _HAS_INT8 and x.is_cpu else _multiply_int8(x, y)


# Attention, for a CPU. Without these names its operator takes PyTorch's public functions.

flash_attention = _find(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu")
flash_attention_backward = _find(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu_backward")


# Convolution by filters that oneDNN has laid out beforehand

convolve_packed = _find(torch.ops, "mkldnn", "_convolution_pointwise", "default")
pack_filter = _find(torch.ops, "mkldnn", "_reorder_convolution_weight", "default")
_onednn_is_on = _find(torch, "_C", "_get_mkldnn_enabled")


def has_packed_filters() -> bool:
    """Whether filters may be packed, and `torch.conv2d` would call oneDNN now as a packed convolution does."""
    if convolve_packed is None or pack_filter is None or _onednn_is_on is None:
        return False
    return torch.backends.mkldnn.is_available() and _onednn_is_on()


# The same for each of many tensors, in one call


def _each_mul(tensors: Tensors, factor: torch.Tensor) -> list[torch.Tensor]:
    return [tensor * factor for tensor in tensors]


def _each_sub(tensors: Tensors, others: Tensors, *, alpha: float = 1) -> list[torch.Tensor]:
    return [torch.sub(tensor, other, alpha=alpha) for tensor, other in zip(tensors, others, strict=True)]


def _each_sub_(tensors: Tensors, others: Tensors, *, alpha: float = 1) -> None:
    for tensor, other in zip(tensors, others, strict=True):
        tensor.sub_(other, alpha=alpha)


def _each_copy_(tensors: Tensors, others: Tensors) -> None:
    for tensor, other in zip(tensors, others, strict=True):
        tensor.copy_(other)


foreach_mul: Callable[..., list[torch.Tensor]] = _find(torch, "_foreach_mul") or _each_mul
foreach_sub: Callable[..., list[torch.Tensor]] = _find(torch, "_foreach_sub") or _each_sub
foreach_sub_: Callable[..., object] = _find(torch, "_foreach_sub_") or _each_sub_
foreach_copy_: Callable[..., object] = _find(torch, "_foreach_copy_") or _each_copy_


# Steps of optimizers, in place


def _sgd_(
    params: Tensors,
    grads: Tensors,
    velocities: Tensors,
    *,
    lr: float | torch.Tensor,
    momentum: float,
    is_first_step: bool,
    nesterov: bool,
    dampening: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """SGD with momentum, without what our operators never ask for: dampening, decay, and to maximize."""
    assert not any((dampening, weight_decay, maximize))
    for param, grad, velocity in zip(params, grads, velocities, strict=True):
        if is_first_step:
            velocity.copy_(grad)
        else:
            velocity.mul_(momentum).add_(grad)
        step = grad + momentum * velocity if nesterov else velocity
        param.sub_(step * torch.as_tensor(lr, dtype=param.dtype, device=param.device))


def _adam_(
    params: Tensors,
    grads: Tensors,
    moments1: Tensors,
    moments2: Tensors,
    largest: Tensors,
    steps: Tensors,
    *,
    lr: float | torch.Tensor,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    amsgrad: bool,
    maximize: bool,
) -> None:
    """Adam, without what our operators never ask for: decay, the largest second moment, and to maximize."""
    assert not any((len(largest), weight_decay, amsgrad, maximize))
    for param, grad, moment1, moment2, step in zip(params, grads, moments1, moments2, steps, strict=True):
        moment1.lerp_(grad, 1 - beta1)
        moment2.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        count = step.to(torch.float64)
        rate = torch.as_tensor(lr, dtype=torch.float64, device=param.device) / (1 - beta1**count)
        below = moment2.sqrt() / torch.sqrt(1 - beta2**count).to(param.dtype) + eps
        param.sub_(rate.to(param.dtype) * moment1 / below)


def _adamw_(params: Tensors, *others: Tensors, lr: float | torch.Tensor, weight_decay: float, **options: Any) -> None:
    for param in params:
        param.mul_(1 - torch.as_tensor(lr, dtype=torch.float64, device=param.device).mul(weight_decay).to(param.dtype))
    _adam_(params, *others, lr=lr, weight_decay=0.0, **options)


fused_sgd_: Callable[..., object] = _find(torch, "_fused_sgd_") or _sgd_
fused_adam_: Callable[..., object] = _find(torch, "_fused_adam_") or _adam_
fused_adamw_: Callable[..., object] = _find(torch, "_fused_adamw_") or _adamw_


# How PyTorch is called


def without_python(overload: Callable[..., Any]) -> Callable[..., Any]:
    """The function that an overload in `torch.ops.aten`, a Python object, does nothing but call; itself where it does not say."""
    return getattr(overload, "_op", overload)


class Overload(NamedTuple):
    """One of the overloads of a function: its name, the argument that it writes into, and whether it goes element by element.

    It is `packed` where the function was found in `torch`, which chooses among the overloads by itself.
    """

    name: str
    written: str | None
    pointwise: bool
    packed: bool


def _schema_of(overload: Callable[..., Any]) -> Sequence[Any] | None:
    """The arguments of an overload; None where it does not tell, and so has no variant that writes into a tensor."""
    return getattr(getattr(overload, "_schema", None), "arguments", None)


@cache
def overloads(function: Callable[..., Any]) -> tuple[Overload, ...]:
    """The overloads of a function in `torch`, or of an overload in `torch.ops.aten`; none where PyTorch does not tell."""
    packet = getattr(function, "overloadpacket", None)
    packed = packet is None
    if packed:
        packet = _find(torch.ops.aten, getattr(function, "__name__", ""))
    found = []
    for name in packet.overloads() if packet is not None else ():
        overload = getattr(packet, name)
        written = [argument.name for argument in _schema_of(overload) or () if argument.is_out]
        found.append(Overload(name, written[0] if len(written) == 1 else None, torch.Tag.pointwise in overload.tags, packed))
    return tuple(found)


class _StandIn:
    """An object that PyTorch takes for a tensor, and does nothing with."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        return None


_OPTIONAL = re.compile(r"^Optional\[(.*)\]$")
_SAMPLES = {
    "Tensor": _StandIn(),
    "List[Tensor]": [_StandIn()],
    "List[int]": [0],
    "int": 0,
    "number": 1,
    "float": 1.0,
    "bool": False,
    "str": "",
}


def takes_out(function: Callable[..., Any], overload: str, positional: int, keywords: Sequence[str]) -> bool:
    """Whether a function in `torch` that is given so many arguments, and those `keywords`, is told by `out` where to write.

    Not all are for which PyTorch has such an `overload`: its name.
    """
    known = _schema_of(_find(torch.ops.aten, function.__name__, overload))
    if known is None:
        return False
    arguments = [item for item in known if not item.is_out]
    samples = {item.name: _SAMPLES.get(_OPTIONAL.sub(r"\1", str(item.type))) for item in arguments}
    if "dtype" in samples:  # a schema calls it an integer
        samples["dtype"] = torch.float32
    if positional > len(samples) or not set(keywords) <= set(samples):
        return False
    try:
        function(*list(samples.values())[:positional], **{name: samples[name] for name in keywords}, out=_StandIn())
    except TypeError:
        return False
    return True


_exclude = _find(torch, "_C", "_ExcludeDispatchKeyGuard")
_set_excluded = _find(torch, "_C", "_dispatch_tls_set_dispatch_key_excluded")
_key_set = _find(torch, "_C", "DispatchKeySet")
_LAYERS = [_find(torch, "_C", "DispatchKey", name) for name in ("AutogradCPU", "AutogradCUDA", "ADInplaceOrView")]
_EXCLUDED = None if None in (_exclude, _key_set, *_LAYERS) else reduce(operator.or_, map(_key_set, _LAYERS))


def below_autograd() -> AbstractContextManager[object]:
    """Kernels are called without the layers that record gradients: what `torch.no_grad` means, at a fifth less of a call's cost.

    Unlike `torch.inference_mode`, tensors that are made meanwhile are tensors like any other.
    """
    return torch.no_grad() if _EXCLUDED is None else _exclude(_EXCLUDED)


@contextmanager
def below_some_autograd() -> Iterator[None]:
    """The same, but for kernels that are called by way of `with_autograd`."""
    with torch.no_grad():
        if _set_excluded is None:  # and so nothing could let them ask for gradients
            yield
        else:
            with below_autograd():
                yield


def with_autograd(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel, called so that it may ask PyTorch for gradients, in `below_some_autograd`. Nothing is recorded where it does not ask."""
    if _EXCLUDED is None or _set_excluded is None:
        return kernel

    def called(*arguments: object, **keywords: object) -> object:
        for layer in _LAYERS:
            _set_excluded(layer, False)
        try:
            return kernel(*arguments, **keywords)
        finally:
            for layer in _LAYERS:
                _set_excluded(layer, True)

    return called


_guards = _find(torch, "_C", "_dynamo", "guards", "TensorGuards")


def tensor_guards(tensors: Tensors, *, strides: bool) -> Callable[..., bool] | None:
    """One call that says whether values are tensors like these; None where PyTorch has none: see `oarlock.runtime.tensor_guard`."""
    if _guards is None:
        return None
    sizes = [list(tensor.shape) for tensor in tensors]
    lie = [list(tensor.stride()) if strides else [None] * tensor.dim() for tensor in tensors]
    return _guards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=lie).check


# The compiler. It takes a second to import, which only those pay who ask for it.


def fake_tensors(*, constants: bool = False) -> AbstractContextManager[object]:
    """Tensors have types and no values meanwhile; those from before may be `constants` among them.

    Raises ImportError where PyTorch has none: regions are not found then, and every op of a plan is a line.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=constants)


def same_storage(tensor: torch.Tensor) -> int:
    """A number that tensors share whose memory is one, though they have no values and so no address."""
    return StorageWeakRef(tensor.untyped_storage()).cdata


def compile_graph(graph: torch.nn.Module, examples: list[torch.Tensor], *, threads: int) -> Callable[..., Sequence[torch.Tensor]]:
    """One function for what is like `examples`. Raises ImportError, and whatever the compiler raises."""
    from torch._inductor import compile as compile_

    return compile_(graph, examples, {"cpp.threads": threads})  # type: ignore[return-value]


def has_compiler() -> bool:
    """Whether there is the C++ compiler that PyTorch's needs for what lies where the host does."""
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        return False
    return True


# What `torch.export` hands out


def __getattr__(name: str) -> Any:
    """`pytree`, nested values as leaves and a structure; the kinds of what a graph calls: `OpOverload`, `HigherOrderOperator`.

    They are looked up when an import of a module asks, so that nothing else depends on them.
    """
    places = {"pytree": ("utils", "_pytree"), "OpOverload": ("_ops", "OpOverload"), "HigherOrderOperator": ("_ops", "HigherOrderOperator")}
    found = _find(torch, *places[name]) if name in places else None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return found


def schema_of(overload: Callable[..., Any]) -> Any:
    """The schema of an overload, with its name and its arguments."""
    return overload._schema  # type: ignore[attr-defined]


def read_exported(document: object, weights: dict[str, torch.Tensor], constants: dict[str, torch.Tensor]) -> torch.export.ExportedProgram:
    """The exported program of a document as `torch.export.save` writes it. Raises whatever PyTorch raises for another."""
    from torch._export.serde import schema
    from torch._export.serde.serialize import ExportedProgramDeserializer, _dict_to_dataclass

    program = _dict_to_dataclass(schema.ExportedProgram, document)
    return ExportedProgramDeserializer().deserialize(program, weights, constants, None)


def read_dtype(number: int) -> torch.dtype:
    """The dtype that such a document calls by a number. Raises ValueError where there is none."""
    from torch._export.serde.schema import ScalarType
    from torch._export.serde.serialize import deserialize_scalar_type

    return deserialize_scalar_type(ScalarType(number))
