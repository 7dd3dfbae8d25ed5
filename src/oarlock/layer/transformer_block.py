"""Transformer encoder and decoder layers, and stacks of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict, Unpack

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.dense import fc
from oarlock.layer.normalization import layer_norm
from oarlock.layer.parameter import layer_name, require_number
from oarlock.layer.parameter_options import Given, require_unnamed
from oarlock.layer.projected_attention import multi_head_attention
from oarlock.op.composed.named_activation import Activation, require_activation
from oarlock.op.elementwise import add
from oarlock.op.randomness import dropout as drop
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["transformer", "transformer_decoder", "transformer_decoder_layer", "transformer_encoder", "transformer_encoder_layer"]


class TransformerOptions(TypedDict, total=False):
    """The keywords shared by transformer layers and stacks. The defaults are as in `transformer_encoder_layer`."""

    kv_heads: int | None
    feedforward: int | None
    dropout: float
    attention_dropout: float | None
    act: Activation
    norm_first: bool
    rotary: bool | float
    epsilon: float
    bias: bool
    weight: Given | None
    shard: bool


def transformer_encoder_layer(
    x: Var,
    *,
    heads: int,
    kv_heads: int | None = None,
    feedforward: int | None = None,
    dropout: float = 0.1,
    attention_dropout: float | None = None,
    act: Activation = "relu",
    norm_first: bool = False,
    mask: Var | None = None,
    key_mask: Var | None = None,
    causal: bool = False,
    rotary: bool | float = False,
    epsilon: float = 1e-5,
    bias: bool = True,
    weight: Given | None = None,
    shard: bool = False,
    name: str | None = None,
) -> Var:
    """Apply a transformer encoder layer: self-attention, then two fully connected layers: float[*b t d] -> float[*b t d].

    ``x = norm1(x + attention(x)); x = norm2(x + linear2(act(linear1(x))))``; with `norm_first`, normalization precedes each part: ``x = x +
    attention(norm1(x))`` (Vaswani et al., 2017; Xiong et al., 2020). `feedforward` is the number of columns of `linear1`, by default 4 d.
    `heads`, `kv_heads`, `mask`, `key_mask`, `causal` and `rotary` are arguments of `multi_head_attention`. In training, `dropout` applies
    to the output of each part, between the two fully connected layers, and to attention weights. `attention_dropout` overrides it for
    attention weights; 0 avoids storing them, which is faster for long sequences. With `shard`, workers divide the heads and the columns of
    `linear1`, see `ol.passes.tensor_parallel`; each pass exchanges two sums forward and two backward.

    Parameters are `<name>.attention.query.w` ..., `<name>.linear1.w` [d, feedforward], `<name>.linear2.w`, `<name>.norm1.scale`,
    `<name>.norm2.scale` and, with `bias`, their biases. Raises as `multi_head_attention`.

        y = ol.layer.transformer_encoder_layer(vectors, heads=2, feedforward=32)
    """
    block = _Block(heads, kv_heads, feedforward, dropout, attention_dropout, act, norm_first, rotary, epsilon, bias, weight, shard)
    return _layers("transformer_encoder_layer", x, name, block, lambda x, name: block.encode(x, mask, key_mask, causal, name))


def transformer_decoder_layer(
    x: Var,
    memory: Var,
    *,
    heads: int,
    mask: Var | None = None,
    key_mask: Var | None = None,
    causal: bool = True,
    memory_mask: Var | None = None,
    memory_key_mask: Var | None = None,
    name: str | None = None,
    **options: Unpack[TransformerOptions],
) -> Var:
    """Apply a transformer decoder layer: self-attention, attention to `memory`, then two fully connected layers.

    float[*b t d], float[*b s e] -> float[*b t d]. Each part is added and normalized as in `transformer_encoder_layer`. Self-attention is
    causal by default. `memory`, usually the output of an encoder, is masked by `memory_mask` and `memory_key_mask`. `options` are the
    keywords `kv_heads`, `feedforward`, `dropout`, `attention_dropout`, `act`, `norm_first`, `rotary`, `epsilon`, `bias`, `weight` and
    `shard` of `transformer_encoder_layer`.

    Parameters are `<name>.attention.query.w` ..., `<name>.cross_attention.query.w` ..., `<name>.linear1.w`, `<name>.linear2.w`,
    `<name>.norm1.scale` to `<name>.norm3.scale`, and their biases. Raises as `multi_head_attention`.

        y = ol.layer.transformer_decoder_layer(vectors, memory, heads=2)
    """
    block = _Block(heads, **options)
    masks = mask, key_mask, causal, memory_mask, memory_key_mask
    return _layers("transformer_decoder_layer", x, name, block, lambda x, name: block.decode(x, memory, *masks, name))


def transformer_encoder(
    x: Var,
    *,
    layers: int,
    heads: int,
    final_norm: bool = False,
    mask: Var | None = None,
    key_mask: Var | None = None,
    causal: bool = False,
    name: str | None = None,
    **options: Unpack[TransformerOptions],
) -> Var:
    """Apply a stack of `layers` transformer encoder layers: float[*b t d] -> float[*b t d].

    `final_norm` adds a `layer_norm` at the end. The other arguments are as in `transformer_encoder_layer`; `options` are its keywords
    `kv_heads`, `feedforward`, `dropout`, `attention_dropout`, `act`, `norm_first`, `rotary`, `epsilon`, `bias`, `weight` and `shard`. With
    `causal` and `norm_first` it is the body of a language model. Parameters are `<name>.0.attention.query.w` ..., and `<name>.norm.scale`.
    Raises as `multi_head_attention`.

        y = ol.layer.transformer_encoder(vectors, layers=2, heads=2, causal=True, norm_first=True, final_norm=True)
    """
    block = _Block(heads, **options)

    def each(x: Var, name: str) -> Var:
        return block.encode(x, mask, key_mask, causal, name)

    return _layers("transformer_encoder", x, name, block, each, layers=layers, final_norm=final_norm)


def transformer_decoder(
    x: Var,
    memory: Var,
    *,
    layers: int,
    heads: int,
    final_norm: bool = False,
    mask: Var | None = None,
    key_mask: Var | None = None,
    causal: bool = True,
    memory_mask: Var | None = None,
    memory_key_mask: Var | None = None,
    name: str | None = None,
    **options: Unpack[TransformerOptions],
) -> Var:
    """Apply a stack of `layers` transformer decoder layers: float[*b t d], float[*b s e] -> float[*b t d].

    `final_norm` adds a `layer_norm` at the end. The other arguments, `options` included, are as in `transformer_decoder_layer`. Parameters
    are `<name>.0.attention.query.w` ..., and `<name>.norm.scale`. Raises as `multi_head_attention`.

        y = ol.layer.transformer_decoder(vectors, memory, layers=2, heads=2)
    """
    block = _Block(heads, **options)
    masks = mask, key_mask, causal, memory_mask, memory_key_mask

    def each(x: Var, name: str) -> Var:
        return block.decode(x, memory, *masks, name)

    return _layers("transformer_decoder", x, name, block, each, layers=layers, final_norm=final_norm)


def transformer(
    source: Var,
    target: Var,
    *,
    heads: int,
    encoder_layers: int = 6,
    decoder_layers: int = 6,
    source_key_mask: Var | None = None,
    target_key_mask: Var | None = None,
    name: str | None = None,
    **options: Unpack[TransformerOptions],
) -> Var:
    """Apply an encoder to the source, and a decoder to the target and the encoder's output: float[*b s d], float[*b t d] -> float[*b t d].

    Both end with a `layer_norm` (Vaswani et al., 2017, figure 1). The key masks are False for padding of the source and the target. Inputs
    and outputs are vectors: add `ol.layer.embedding`, `ol.layer.sinusoidal_positions` and a final `ol.layer.fc` around it. `options` are
    the keywords `kv_heads`, `feedforward`, `dropout`, `attention_dropout`, `act`, `norm_first`, `rotary`, `epsilon`, `bias`, `weight` and
    `shard` of `transformer_encoder_layer`. Parameters are `<name>.encoder.0.attention.query.w` ... and `<name>.decoder.0.attention.query.w`
    .... Raises as `multi_head_attention`.

        y = ol.layer.transformer(memory, vectors, heads=2, encoder_layers=1, decoder_layers=1)
    """
    source, target = require_type(source, "transformer: source"), require_type(target, "transformer: target")
    program = source.block.program
    name = layer_name(program, name, "transformer")
    with undone_on_error(program):
        memory = transformer_encoder(
            source, layers=encoder_layers, heads=heads, final_norm=True, key_mask=source_key_mask, name=f"{name}.encoder", **options
        )
        return transformer_decoder(
            target,
            memory,
            layers=decoder_layers,
            heads=heads,
            final_norm=True,
            key_mask=target_key_mask,
            memory_key_mask=source_key_mask,
            name=f"{name}.decoder",
            **options,
        )


@dataclass(frozen=True)
class _Block:
    """The settings of transformer layers."""

    heads: int
    kv_heads: int | None = None
    feedforward: int | None = None
    dropout: float = 0.1
    attention_dropout: float | None = None
    act: Activation = "relu"
    norm_first: bool = False
    rotary: bool | float = False
    epsilon: float = 1e-5
    bias: bool = True
    weight: Given | None = None
    shard: bool = False

    def encode(self, x: Var, mask: Var | None, key_mask: Var | None, causal: bool, name: str) -> Var:
        x = self._residual(x, f"{name}.norm1", lambda x: self._attend(x, None, mask, key_mask, causal, f"{name}.attention"))
        return self._residual(x, f"{name}.norm2", lambda x: self._feed(x, name))

    def decode(
        self,
        x: Var,
        memory: Var,
        mask: Var | None,
        key_mask: Var | None,
        causal: bool,
        memory_mask: Var | None,
        memory_key_mask: Var | None,
        name: str,
    ) -> Var:
        x = self._residual(x, f"{name}.norm1", lambda x: self._attend(x, None, mask, key_mask, causal, f"{name}.attention"))
        x = self._residual(
            x, f"{name}.norm2", lambda x: self._attend(x, memory, memory_mask, memory_key_mask, False, f"{name}.cross_attention")
        )
        return self._residual(x, f"{name}.norm3", lambda x: self._feed(x, name))

    def norm(self, x: Var, name: str) -> Var:
        return layer_norm(x, epsilon=self.epsilon, bias=self.bias, name=name)

    def _residual(self, x: Var, norm: str, inside: Callable[[Var], Var]) -> Var:
        """Add a part of the layer to its input `x`, and normalize the sum, or the input of the part."""
        if self.norm_first:
            return add(x, self._dropped(inside(self.norm(x, norm))))
        return self.norm(add(x, self._dropped(inside(x))), norm)

    def _attend(self, x: Var, memory: Var | None, mask: Var | None, key_mask: Var | None, causal: bool, name: str) -> Var:
        return multi_head_attention(
            x,
            memory,
            heads=self.heads,
            kv_heads=self.kv_heads,
            mask=mask,
            key_mask=key_mask,
            causal=causal,
            rotary=memory is None and self.rotary,
            dropout=self.dropout if self.attention_dropout is None else self.attention_dropout,
            bias=self.bias,
            weight=self.weight,
            shard=self.shard,
            name=name,
        )

    def _feed(self, x: Var, name: str) -> Var:
        columns = require_number(x.shape, -1, "transformer", x)
        wide = 4 * columns if self.feedforward is None else require_count("transformer: feedforward", self.feedforward)
        first, second = ("columns", "rows") if self.shard else (None, None)
        inside = fc(x, wide, act=self.act, bias=self.bias, weight=self.weight, shard=first, name=f"{name}.linear1")
        return fc(self._dropped(inside), columns, bias=self.bias, weight=self.weight, shard=second, name=f"{name}.linear2")

    def _dropped(self, x: Var) -> Var:
        return drop(x, rate=self.dropout) if self.dropout else x

    def validate(self, kind: str) -> None:
        """Raise ArgumentError for invalid settings."""
        require_activation(self.act)
        require_unnamed(kind, self.weight)
        if not isinstance(self.bias, bool):
            raise ArgumentError(f"{kind}: bias must be True or False, not {self.bias!r:.60}", location=here())


def _layers(
    kind: str,
    x: Var,
    name: str | None,
    block: _Block,
    each: Callable[[Var, str], Var],
    *,
    layers: int | None = None,
    final_norm: bool = False,
) -> Var:
    """Write one layer, or `layers` of them and an optional norm. If one raises, all of them are removed."""
    x = require_type(x, f"{kind}: x")
    block.validate(kind)
    program = x.block.program
    name = layer_name(program, name, kind)
    with undone_on_error(program):
        if layers is None:
            return each(x, name)
        for number in range(require_count(f"{kind}: layers", layers)):
            x = each(x, f"{name}.{number}")
        return block.norm(x, f"{name}.norm") if final_norm else x
