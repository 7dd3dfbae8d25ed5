"""All private names of PyTorch that are used. Each is looked up once, here, and has a public fallback with the same result.

PyTorch may rename them at any time. A fallback may be slower and round differently, nothing else. `torch.export` has no public names for
the parts of a graph: without the names at the end of this file, modules cannot be imported, but everything else works.
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
    """Return the object at a path of names, or None if a name is missing."""
    try:
        return reduce(getattr, names, root)
    except (AttributeError, RuntimeError):  # a namespace of operators raises RuntimeError
        return None


# Softmax: the public way to these gradients is autograd, which kernels do not use.


def _softmax_backward(dy: torch.Tensor, y: torch.Tensor, axis: int, dtype: torch.dtype, *, grad_input: torch.Tensor | None = None):
    """Return the gradient of ``softmax``: ``y * (dy - sum(dy * y))``, summed along an axis."""
    found = (y * (dy - (dy * y).sum(axis, keepdim=True))).to(dtype)
    return found if grad_input is None else grad_input.copy_(found)


def _log_softmax_backward(dy: torch.Tensor, y: torch.Tensor, axis: int, dtype: torch.dtype, *, out: torch.Tensor | None = None):
    """Return the gradient of ``log_softmax``: ``dy - exp(y) * sum(dy)``, summed along an axis."""
    found = (dy - torch.exp(y) * dy.sum(axis, keepdim=True)).to(dtype)
    return found if out is None else out.copy_(found)


softmax_backward = _find(torch, "_softmax_backward_data") or _softmax_backward
log_softmax_backward = _find(torch, "_log_softmax_backward_data") or _log_softmax_backward


# Products of integers: PyTorch's public functions are not vectorized.

_DEEP = 1024  # columns for which float32 represents each sum of products exactly: 1024 * 128 * 128 is 2 ** 24


def _multiply_int8(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the product of int8 matrices as int32, exactly, by floating-point products."""
    if not x.is_cpu:
        return torch.mm(x.double(), y.double()).to(torch.int32)
    pieces = zip(x.split(_DEEP, 1), y.split(_DEEP, 0), strict=True)
    return reduce(torch.add, (torch.mm(left.float(), right.float()).to(torch.int32) for left, right in pieces))


_int_mm = _find(torch, "_int_mm")
# Without these instructions, `_int_mm` takes 20 times as long as floating-point products.
_HAS_INT8 = _int_mm is not None and torch.backends.cpu.get_cpu_capability().startswith("AVX512")


def multiply_int8(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the product of int8 matrices as int32, with the CPU's own instructions if it and PyTorch have them."""
    if not x.numel() or not y.numel():
        return torch.zeros(x.shape[0], y.shape[1], dtype=torch.int32, device=x.device)
    return _int_mm(x, y) if _HAS_INT8 and x.is_cpu else _multiply_int8(x, y)


# Attention on a CPU. Without these names, the operator uses public functions of PyTorch.

flash_attention = _find(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu")
flash_attention_backward = _find(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu_backward")


# Convolution with filters prepacked by oneDNN

convolve_packed = _find(torch.ops, "mkldnn", "_convolution_pointwise", "default")
pack_filter = _find(torch.ops, "mkldnn", "_reorder_convolution_weight", "default")
_onednn_is_on = _find(torch, "_C", "_get_mkldnn_enabled")


def has_packed_filters() -> bool:
    """Return whether filters can be packed, and `torch.conv2d` currently uses oneDNN as a packed convolution does."""
    if convolve_packed is None or pack_filter is None or _onednn_is_on is None:
        return False
    return torch.backends.mkldnn.is_available() and _onednn_is_on()


# One operation on many tensors in one call


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


# In-place optimizer steps


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
    """Update by SGD with momentum. Dampening, weight decay and maximizing are not supported, as no operator uses them."""
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
    """Update by Adam. Weight decay, AMSGrad and maximizing are not supported, as no operator uses them."""
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


# Calls of PyTorch functions


def without_python(overload: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that an overload in `torch.ops.aten` wraps in Python; the overload itself if there is none."""
    return getattr(overload, "_op", overload)


class Overload(NamedTuple):
    """An overload of a function: its name, its output argument, and whether it is pointwise.

    It is `packed` if the function is from `torch`, which selects the overload itself.
    """

    name: str
    written: str | None
    pointwise: bool
    packed: bool


def _schema_of(overload: Callable[..., Any]) -> Sequence[Any] | None:
    """Return the arguments of an overload; None if it has no schema, and therefore no variant with an output argument."""
    return getattr(getattr(overload, "_schema", None), "arguments", None)


@cache
def overloads(function: Callable[..., Any]) -> tuple[Overload, ...]:
    """Return the overloads of a function in `torch` or of an overload in `torch.ops.aten`; none if PyTorch does not list them."""
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
    """A placeholder that PyTorch accepts as a tensor and does nothing with."""

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
    """Return whether a function in `torch`, called with these numbers of arguments and `keywords`, accepts `out`.

    Not all functions do, even if PyTorch has an `overload` with an output argument; `overload` is its name.
    """
    known = _schema_of(_find(torch.ops.aten, function.__name__, overload))
    if known is None:
        return False
    arguments = [item for item in known if not item.is_out]
    samples = {item.name: _SAMPLES.get(_OPTIONAL.sub(r"\1", str(item.type))) for item in arguments}
    if "dtype" in samples:  # an integer in the schema
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
    """Call kernels without the dispatch layers that record gradients: like `torch.no_grad`, with a fifth less overhead per call.

    Unlike in `torch.inference_mode`, the tensors created are ordinary ones.
    """
    return torch.no_grad() if _EXCLUDED is None else _exclude(_EXCLUDED)


@contextmanager
def below_some_autograd() -> Iterator[None]:
    """Call kernels as in `below_autograd`, except those wrapped by `with_autograd`."""
    with torch.no_grad():
        if _set_excluded is None:  # in this case, kernels could not enable gradients again
            yield
        else:
            with below_autograd():
                yield


def with_autograd(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a kernel so that it can use autograd within `below_some_autograd`. Nothing is recorded unless the kernel enables gradients."""
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
    """Return a function that checks in one call whether values are tensors like these, or None: see `oarlock.runtime.tensor_guard`."""
    if _guards is None:
        return None
    sizes = [list(tensor.shape) for tensor in tensors]
    lie = [list(tensor.stride()) if strides else [None] * tensor.dim() for tensor in tensors]
    return _guards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=lie).check


# The compiler. Its import takes a second, so it is delayed until first use.


def fake_tensors(*, constants: bool = False) -> AbstractContextManager[object]:
    """Create tensors with types but without values within the context; with `constants`, earlier tensors may be used too.

    Raises ImportError if PyTorch does not support this: plans then have no regions, and each op is a line.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=constants)


def same_storage(tensor: torch.Tensor) -> int:
    """Return a number that is equal for tensors which share memory, also for tensors without values."""
    return StorageWeakRef(tensor.untyped_storage()).cdata


def compile_graph(graph: torch.nn.Module, examples: list[torch.Tensor], *, threads: int) -> Callable[..., Sequence[torch.Tensor]]:
    """Compile a graph to one function for inputs like `examples`. Raises ImportError and the errors of the compiler."""
    from torch._inductor import compile as compile_

    return compile_(graph, examples, {"cpp.threads": threads})  # type: ignore[return-value]


def has_compiler() -> bool:
    """Return whether the C++ compiler that PyTorch's compiler needs on the CPU is installed."""
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        return False
    return True


# Names for exported graphs


def __getattr__(name: str) -> Any:
    """Look up `pytree`, `OpOverload` (an ATen operator) or `HigherOrderOperator` (an operator on graphs).

    The lookup is delayed until a module is imported, so that nothing else depends on these names.
    """
    places = {"pytree": ("utils", "_pytree"), "OpOverload": ("_ops", "OpOverload"), "HigherOrderOperator": ("_ops", "HigherOrderOperator")}
    found = _find(torch, *places[name]) if name in places else None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return found


def schema_of(overload: Callable[..., Any]) -> Any:
    """Return the schema of an overload, with its name and arguments."""
    return overload._schema  # type: ignore[attr-defined]


def read_exported(document: object, weights: dict[str, torch.Tensor], constants: dict[str, torch.Tensor]) -> torch.export.ExportedProgram:
    """Return the exported program of a document in the format of `torch.export.save`. Raises PyTorch's errors for invalid ones."""
    from torch._export.serde import schema
    from torch._export.serde.serialize import ExportedProgramDeserializer, _dict_to_dataclass

    program = _dict_to_dataclass(schema.ExportedProgram, document)
    return ExportedProgramDeserializer().deserialize(program, weights, constants, None)


def read_dtype(number: int) -> torch.dtype:
    """Return the dtype with this number in such a document. Raises ValueError for an unknown number."""
    from torch._export.serde.schema import ScalarType
    from torch._export.serde.serialize import deserialize_scalar_type

    return deserialize_scalar_type(ScalarType(number))
