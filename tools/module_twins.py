"""Calls of our layers that correspond to modules of `torch.nn`, with the same weights: a function for each module.

Each returns the call, a function of the module's arguments, and its parameters by our names, in our form.
"""

from collections.abc import Callable
from typing import Any

import torch
from beside_torch import same, transposed

import oarlock as ol
from oarlock.ir.var import Var

__all__ = ["TWINS", "NotCovered"]

nn = torch.nn
Twin = tuple[Callable[..., Any], dict[str, tuple[str, Callable[[torch.Tensor], torch.Tensor]]]]


class NotCovered(Exception):  # noqa: N818  (no error: it is counted)
    """The reason why a module, or a setting of it, has no corresponding layer."""


def _named(module: nn.Module, pairs: dict[str, tuple[str, Callable]]) -> dict[str, tuple[str, Callable]]:
    """Return the pairs whose parameter the module has."""
    has = {name for name, _ in module.named_parameters()}
    return {ours: pair for ours, pair in pairs.items() if pair[0] in has}


def _weights(module: nn.Module, name: str, form: Callable = same) -> dict[str, tuple[str, Callable]]:
    return _named(module, {f"{name}.w": ("weight", form), f"{name}.b": ("bias", same)})


def _scaled(module: nn.Module, name: str) -> dict[str, tuple[str, Callable]]:
    return _named(module, {f"{name}.scale": ("weight", same), f"{name}.bias": ("bias", same)})


def _in_a_batch(layer: Callable[[Var], Var], axes: int) -> Callable[[Var], Var]:
    """Apply the layer to an input with or without a batch dimension."""
    return lambda x: layer(x) if x.ndim == axes + 2 else ol.op.squeeze(layer(ol.op.unsqueeze(x, 0)), 0)


def linear(m: Any) -> Twin:
    def call(input: Var) -> Var:
        return ol.layer.linear(input, m.out_features, bias=m.bias is not None, name="l")

    return call, _weights(m, "l", transposed)


def bilinear(m: Any) -> Twin:
    copied = _weights(m, "l", lambda w: w.permute(1, 2, 0))
    return lambda x, y: ol.layer.bilinear(x, y, m.out_features, bias=m.bias is not None, name="l"), copied


def convolution(axes: int, *, transposed_one: bool = False) -> Callable[[Any], Twin]:
    layer = getattr(ol.layer, f"conv_transpose{axes}d" if transposed_one else f"conv{axes}d")

    def twin(m: Any) -> Twin:
        how = {
            "stride": m.stride,
            "padding": m.padding,
            "dilation": m.dilation,
            "groups": m.groups,
            "bias": m.bias is not None,
            "name": "l",
        }
        how |= {"output_padding": m.output_padding} if transposed_one else {"padding_mode": m.padding_mode}
        return _in_a_batch(lambda x: layer(x, m.out_channels, m.kernel_size, **how), axes), _weights(m, "l")

    return twin


def _with_places(m: Any, axes: int, *, adaptive: bool) -> Callable[[Var], list[Var]]:
    """Return pooling that also returns indices, which is an operator here."""

    def each(number: Any) -> tuple[int, ...]:
        return number if isinstance(number, tuple) else (number,) * axes

    def call(x: Var) -> list[Var]:
        batched = x.ndim == axes + 2
        x = x if batched else ol.op.unsqueeze(x, 0)
        if adaptive:
            found = ol.op.adaptive_max_pool_with_indices(x, size=each(m.output_size))
        else:
            how = {"stride": each(m.stride), "padding": each(m.padding), "dilation": each(m.dilation), "ceil_mode": m.ceil_mode}
            found = ol.op.max_pool_with_indices(x, size=each(m.kernel_size), **how)
        return [y if batched else ol.op.squeeze(y, 0) for y in found]

    return call


def pooling(axes: int, kind: str) -> Callable[[Any], Twin]:
    def twin(m: Any) -> Twin:
        if getattr(m, "return_indices", False):
            return _with_places(m, axes, adaptive=kind.startswith("adaptive")), {}
        if kind.startswith("adaptive"):
            sizes = m.output_size if isinstance(m.output_size, tuple) else (m.output_size,) * axes
            return _in_a_batch(lambda x: getattr(ol.layer, f"{kind}_pool{axes}d")(x, sizes), axes), {}
        if kind == "lp":
            return _in_a_batch(
                lambda x: ol.layer.lp_pool(x, m.kernel_size, order=m.norm_type, stride=m.stride, ceil_mode=m.ceil_mode), axes
            ), {}
        how = {"stride": m.stride, "padding": m.padding, "ceil_mode": m.ceil_mode}
        if kind == "average":
            how |= {"count_padding": m.count_include_pad, "divisor": getattr(m, "divisor_override", None)}
        else:
            how |= {"dilation": m.dilation}
        return _in_a_batch(lambda x: getattr(ol.layer, f"{kind}_pool{axes}d")(x, m.kernel_size, **how), axes), {}

    return twin


def batch_norm(m: Any) -> Twin:
    affine = {"scale": m.weight is not None, "bias": m.bias is not None, "running": m.track_running_stats}
    return lambda x: ol.layer.batch_norm(x, momentum=m.momentum, epsilon=m.eps, name="l", **affine), _scaled(m, "l")


def instance_norm(axes: int) -> Callable[[Any], Twin]:
    def twin(m: Any) -> Twin:
        affine = {"scale": m.weight is not None, "bias": m.bias is not None}
        affine |= {"running": True, "momentum": m.momentum} if m.track_running_stats else {}
        return _in_a_batch(lambda x: ol.layer.instance_norm(x, epsilon=m.eps, name="l", **affine), axes), _scaled(m, "l")

    return twin


def group_norm(m: Any) -> Twin:
    given = {"scale": m.weight is not None, "bias": m.bias is not None}
    return lambda x: ol.layer.group_norm(x, m.num_groups, epsilon=m.eps, name="l", **given), _scaled(m, "l")


def layer_norm(m: Any) -> Twin:
    given = {"scale": m.weight is not None, "bias": m.bias is not None, "axes": len(m.normalized_shape)}
    return lambda x: ol.layer.layer_norm(x, epsilon=m.eps, name="l", **given), _scaled(m, "l")


def rms_norm(m: Any) -> Twin:
    epsilon = torch.finfo(torch.float64).eps if m.eps is None else m.eps
    axes = len(m.normalized_shape)
    return lambda x: ol.layer.rms_norm(x, epsilon=epsilon, scale=m.weight is not None, axes=axes, name="l"), _scaled(m, "l")


def embedding(m: Any) -> Twin:
    size = (m.num_embeddings, m.embedding_dim)
    how = {"padding_index": m.padding_idx, "max_norm": m.max_norm, "dtype": "float64", "name": "l"}
    return lambda ids: ol.layer.embedding(ids, size, **how), {"l.w": ("weight", same)}


def prelu(m: Any) -> Twin:
    return lambda x: ol.layer.prelu(x, shared=m.num_parameters == 1, name="l"), {"l.slope": ("weight", same)}


def cell(kind: str) -> Callable[[Any], Twin]:
    def twin(m: Any) -> Twin:
        bias = {"bias": m.bias, "recurrent_bias": m.bias, "name": "l"} | ({"act": m.nonlinearity} if kind == "rnn_cell" else {})
        pairs = {"l.w": ("weight_ih", transposed), "l.u": ("weight_hh", transposed), "l.b": ("bias_ih", same), "l.v": ("bias_hh", same)}

        def call(x: Var, states: Any) -> Any:
            given = list(states) if isinstance(states, tuple | list) else [states]
            return getattr(ol.layer, kind)(x, *given, **bias)

        return call, _named(m, pairs)

    return twin


def recurrence(kind: str) -> Callable[[Any], Twin]:
    def twin(m: Any) -> Twin:
        single, count = m.num_layers == 1 and not m.bidirectional, m.num_layers
        how = {"layers": count, "bidirectional": m.bidirectional, "bias": m.bias, "recurrent_bias": m.bias, "name": "l"}
        how |= {"act": m.nonlinearity} if kind == "simple_rnn" else {"projection": m.proj_size or None} if kind == "lstm" else {}
        pairs = {}
        for layer in range(count):
            base = "l" if count == 1 else f"l.{layer}"
            for prefix, suffix in [(base, "")] + [(f"{base}.reverse", "_reverse")] * m.bidirectional:
                pairs |= {
                    f"{prefix}.{part}": (f"{theirs}_l{layer}{suffix}", form)
                    for part, theirs, form in (
                        ("w", "weight_ih", transposed), ("u", "weight_hh", transposed), ("b", "bias_ih", same), ("v", "bias_hh", same),
                        ("p", "weight_hr", transposed),
                    )
                }  # fmt: skip

        def call(x: Var, states: Any = None) -> list[Var]:
            batched = x.ndim == 3
            given = [] if states is None else list(states) if isinstance(states, tuple | list) else [states]
            if not batched:  # a single sequence is one row
                x, given = ol.op.unsqueeze(x, 1), [ol.op.unsqueeze(state, 1) for state in given]
            if single:
                given = [ol.op.squeeze(state, 0) for state in given]
            init = None if not given else tuple(given) if kind == "lstm" else given[0]
            y, *last = getattr(ol.layer, kind)(x, m.hidden_size, init=init, batch_first=m.batch_first and batched, **how)
            last = [ol.op.unsqueeze(state, 0) for state in last] if single else last
            return [y, *last] if batched else [ol.op.squeeze(y, 1), *(ol.op.squeeze(state, 1) for state in last)]

        return call, _named(m, pairs)

    return twin


def _part(number: int) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda w: (lambda rows: rows if rows.ndim == 1 else rows.mT)(w.chunk(3)[number])


def _attention(name: str, prefix: str, together: bool = True) -> dict[str, tuple[str, Callable]]:
    pairs: dict[str, tuple[str, Callable]] = {}
    for number, what in enumerate(("query", "key", "value")):
        weight = (f"{prefix}in_proj_weight", _part(number)) if together else (f"{prefix}{what[0]}_proj_weight", transposed)
        pairs |= {f"{name}.{what}.w": weight, f"{name}.{what}.b": (f"{prefix}in_proj_bias", _part(number))}
    return pairs | {f"{name}.output.w": (f"{prefix}out_proj.weight", transposed), f"{name}.output.b": (f"{prefix}out_proj.bias", same)}


def _seen(mask: Any) -> Any:
    """Return the mask of visible keys from PyTorch's mask of hidden ones; additive masks are unchanged."""
    return ol.op.logical_not(mask) if isinstance(mask, Var) and mask.dtype is ol.DType.BOOL else mask


def _by_head(mask: Any, heads: int, rows: Any) -> Any:
    """Convert PyTorch's mask for each head of each row, [n*heads t s], to our form."""
    if isinstance(mask, Var) and mask.ndim == 3:
        return ol.op.reshape(mask, shape=(rows, heads, *mask.shape[1:]))
    return mask


def attention(m: Any) -> Twin:
    how = {"heads": m.num_heads, "dropout": m.dropout, "bias": m.in_proj_bias is not None, "name": "l"}
    how |= {"extra_key": m.bias_k is not None, "zero_key": m.add_zero_attn}
    pairs = {f"l.{what}.extra": (f"bias_{what[0]}", lambda row: row.reshape(1, -1)) for what in ("key", "value")}

    def call(
        query: Var, key: Var, value: Var, key_padding_mask: Any = None, attn_mask: Any = None, is_causal: bool = False, **rest: Any
    ) -> list[Var]:
        weights = rest.get("need_weights", True)
        batched = query.ndim == 3
        query, key, value = (var if batched else ol.op.unsqueeze(var, 0 if m.batch_first else 1) for var in (query, key, value))
        if not m.batch_first:
            query, key, value = (ol.op.transpose(var, axes=(1, 0, 2)) for var in (query, key, value))
        if key_padding_mask is not None and not batched:
            key_padding_mask = ol.op.unsqueeze(key_padding_mask, 0)
        mask = _by_head(_seen(attn_mask), m.num_heads, query.shape[0])
        found = ol.layer.multi_head_attention(query, key, value, mask=mask, key_mask=_seen(key_padding_mask), return_weights=weights, **how)
        y, *rows = found if weights else (found,)
        y = y if m.batch_first else ol.op.transpose(y, axes=(1, 0, 2))
        y = y if batched else ol.op.squeeze(y, 0 if m.batch_first else 1)
        if not weights:
            return [y]
        each = rows[0] if batched else ol.op.squeeze(rows[0], 0)
        return [y, ol.op.mean(each, axis=-3) if rest.get("average_attn_weights", True) else each]

    return call, _named(m, pairs | _attention("l", "", m._qkv_same_embed_dim))


def _block_pairs(name: str, prefix: str, decoder: bool) -> dict[str, tuple[str, Callable]]:
    pairs = _attention(f"{name}.attention", f"{prefix}self_attn.")
    if decoder:
        pairs |= _attention(f"{name}.cross_attention", f"{prefix}multihead_attn.")
    for linear in ("linear1", "linear2"):
        pairs |= {f"{name}.{linear}.w": (f"{prefix}{linear}.weight", transposed), f"{name}.{linear}.b": (f"{prefix}{linear}.bias", same)}
    for norm in ("norm1", "norm2", *["norm3"] * decoder):
        pairs |= {f"{name}.{norm}.scale": (f"{prefix}{norm}.weight", same), f"{name}.{norm}.bias": (f"{prefix}{norm}.bias", same)}
    return pairs


def _settings(layer: Any) -> dict[str, Any]:
    """Return the settings of a PyTorch block as our arguments."""
    act = layer.activation if isinstance(layer.activation, str) else layer.activation.__name__
    return {
        "heads": layer.self_attn.num_heads,
        "feedforward": layer.linear1.out_features,
        "dropout": layer.dropout.p,
        "act": act,
        "norm_first": layer.norm_first,
        "epsilon": layer.norm1.eps,
        "bias": layer.linear1.bias is not None,
    }


def _front(m: Any, *vars: Var) -> tuple[bool, list[Var]]:
    """Return the variables with the batch first, and whether they had one."""
    batched = vars[0].ndim == 3
    if not batched:
        return False, [ol.op.unsqueeze(var, 0) for var in vars]
    return True, [var if m else ol.op.transpose(var, axes=(1, 0, 2)) for var in vars]


def _back(batch_first: bool, batched: bool, y: Var) -> Var:
    return ol.op.squeeze(y, 0) if not batched else y if batch_first else ol.op.transpose(y, axes=(1, 0, 2))


def _keys(mask: Any, batched: bool) -> Any:
    mask = mask if mask is None or batched else ol.op.unsqueeze(mask, 0)
    if isinstance(mask, Var) and mask.dtype is not ol.DType.BOOL:
        raise NotCovered("key masks of floats")
    return _seen(mask)


def encoder(m: Any, *, stack: bool) -> Twin:
    first = m.layers[0] if stack else m
    how, batch_first = _settings(first), first.self_attn.batch_first
    count = len(m.layers) if stack else 1
    pairs = {}
    for number in range(count):
        pairs |= _block_pairs(f"l.{number}" if stack else "l", f"layers.{number}." if stack else "", False)

    def call(x: Var, mask: Any = None, src_key_padding_mask: Any = None, is_causal: Any = None, src_mask: Any = None) -> Var:
        batched, (x,) = _front(batch_first, x)
        seen = _by_head(_seen(src_mask if mask is None else mask), how["heads"], x.shape[0])
        keys = _keys(src_key_padding_mask, batched)
        if stack:
            y = ol.layer.transformer_encoder(x, layers=count, mask=seen, key_mask=keys, name="l", **how)
        else:
            y = ol.layer.transformer_encoder_layer(x, mask=seen, key_mask=keys, name="l", **how)
        return _back(batch_first, batched, y)

    return call, _named(m, pairs)


def decoder(m: Any) -> Twin:
    how, batch_first = _settings(m), m.self_attn.batch_first

    def call(
        x: Var, memory: Var, tgt_mask: Any = None, memory_mask: Any = None, tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None, tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Var:  # fmt: skip
        batched, (x, memory) = _front(batch_first, x, memory)
        masks = [_by_head(_seen(mask), how["heads"], x.shape[0]) for mask in (tgt_mask, memory_mask)]
        keys = [_keys(mask, batched) for mask in (tgt_key_padding_mask, memory_key_padding_mask)]
        given = {"mask": masks[0], "memory_mask": masks[1], "key_mask": keys[0], "memory_key_mask": keys[1]}
        y = ol.layer.transformer_decoder_layer(x, memory, causal=False, name="l", **given, **how)
        return _back(batch_first, batched, y)

    return call, _named(m, _block_pairs("l", "", True))


def whole(m: Any) -> Twin:
    how, batch_first = _settings(m.encoder.layers[0]), m.batch_first
    pairs: dict[str, tuple[str, Callable]] = {}
    for part, count in (("encoder", len(m.encoder.layers)), ("decoder", len(m.decoder.layers))):
        for number in range(count):
            pairs |= _block_pairs(f"l.{part}.{number}", f"{part}.layers.{number}.", part == "decoder")
        pairs |= {f"l.{part}.norm.scale": (f"{part}.norm.weight", same), f"l.{part}.norm.bias": (f"{part}.norm.bias", same)}

    def call(
        source: Var, target: Var, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None, src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None, **causal: Any,
    ) -> Var:  # fmt: skip
        batched, (x, t) = _front(batch_first, source, target)
        masks = [_by_head(_seen(mask), how["heads"], x.shape[0]) for mask in (src_mask, tgt_mask, memory_mask)]
        keys = [_keys(mask, batched) for mask in (src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask)]
        layers = {"final_norm": True, **how}
        memory = ol.layer.transformer_encoder(x, layers=len(m.encoder.layers), mask=masks[0], key_mask=keys[0], name="l.encoder", **layers)
        given = {"mask": masks[1], "memory_mask": masks[2], "key_mask": keys[1], "memory_key_mask": keys[2]}
        y = ol.layer.transformer_decoder(t, memory, layers=len(m.decoder.layers), causal=False, name="l.decoder", **given, **layers)
        return _back(batch_first, batched, y)

    return call, _named(m, pairs)


TWINS: dict[str, Callable[[Any], Twin]] = {
    "Linear": linear,
    "Bilinear": bilinear,
    "Embedding": embedding,
    "PReLU": prelu,
    "GroupNorm": group_norm,
    "LayerNorm": layer_norm,
    "RMSNorm": rms_norm,
    "RNNCell": cell("rnn_cell"),
    "GRUCell": cell("gru_cell"),
    "LSTMCell": cell("lstm_cell"),
    "RNN": recurrence("simple_rnn"),
    "GRU": recurrence("gru"),
    "LSTM": recurrence("lstm"),
    "MultiheadAttention": attention,
    "TransformerEncoderLayer": lambda m: encoder(m, stack=False),
    "TransformerEncoder": lambda m: encoder(m, stack=True),
    "TransformerDecoderLayer": decoder,
    "Transformer": whole,
}
for _axes in (1, 2, 3):
    TWINS |= {
        f"Conv{_axes}d": convolution(_axes),
        f"ConvTranspose{_axes}d": convolution(_axes, transposed_one=True),
        f"BatchNorm{_axes}d": batch_norm,
        f"InstanceNorm{_axes}d": instance_norm(_axes),
        f"MaxPool{_axes}d": pooling(_axes, "max"),
        f"AvgPool{_axes}d": pooling(_axes, "average"),
        f"AdaptiveMaxPool{_axes}d": pooling(_axes, "adaptive_max"),
        f"AdaptiveAvgPool{_axes}d": pooling(_axes, "adaptive_average"),
        f"LPPool{_axes}d": pooling(_axes, "lp"),
    }
