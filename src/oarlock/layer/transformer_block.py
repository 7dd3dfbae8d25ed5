"""Transformer blocks and stacks of them: encoders, which read a sequence, and decoders, which read another one besides."""

from collections.abc import Callable
from dataclasses import dataclass

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
    """Attention of a sequence to itself, then two layers at each step, each added to what it reads and normalized: float[*b t d] -> the
    same.

    ``x = norm1(x + attention(x)); x = norm2(x + linear2(act(linear1(x))))``, or, with `norm_first`, ``x = x + attention(norm1(x))`` and so
    on (Vaswani et al., 2017; Xiong et al., 2020). The first of the two layers has `feedforward` columns, 4 d unless it is given. `heads`,
    `kv_heads`, `mask`, `key_mask`, `causal` and `rotary` are those of `multi_head_attention`. In training, elements of what is added, of
    the layers in between, and weights of the attention are dropped with probability `dropout`; `attention_dropout` is for these weights
    alone: where it is 0, they are never held all at once, which is faster for long sequences. With `shard`, workers divide the heads, and
    the columns between the two layers, as `ol.passes.tensor_parallel` says: they exchange two sums forward and two back.

    Parameters `<name>.attention.query.w` ..., `<name>.linear1.w` [d, feedforward], `<name>.linear2.w`, `<name>.norm1.scale`,
    `<name>.norm2.scale` and, with `bias`, theirs. Raises what `multi_head_attention` does.

        y = ol.layer.transformer_encoder_layer(vectors, heads=2, feedforward=32)
    """
    block = _Block(heads, kv_heads, feedforward, dropout, attention_dropout, act, norm_first, rotary, epsilon, bias, weight, shard)
    return _layers("transformer_encoder_layer", x, name, block, lambda x, name: block.encode(x, mask, key_mask, causal, name))


def transformer_decoder_layer(
    x: Var,
    memory: Var,
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
    causal: bool = True,
    rotary: bool | float = False,
    memory_mask: Var | None = None,
    memory_key_mask: Var | None = None,
    epsilon: float = 1e-5,
    bias: bool = True,
    weight: Given | None = None,
    shard: bool = False,
    name: str | None = None,
) -> Var:
    """Attention of a sequence to itself, then to `memory`, then two layers at each step: float[*b t d], float[*b s e] -> float[*b t d].

    Each is added and normalized as in `transformer_encoder_layer`, which says the rest. No step sees one after it unless `causal` is False.
    `memory_mask` and `memory_key_mask` are for the attention to the memory, what an encoder gives.

    Parameters `<name>.attention.query.w` ..., `<name>.cross_attention.query.w` ..., `<name>.linear1.w`, `<name>.linear2.w`,
    `<name>.norm1.scale` to `<name>.norm3.scale`, and their biases. Raises what `multi_head_attention` does.

        y = ol.layer.transformer_decoder_layer(vectors, memory, heads=2)
    """
    block = _Block(heads, kv_heads, feedforward, dropout, attention_dropout, act, norm_first, rotary, epsilon, bias, weight, shard)
    masks = mask, key_mask, causal, memory_mask, memory_key_mask
    return _layers("transformer_decoder_layer", x, name, block, lambda x, name: block.decode(x, memory, *masks, name))


def transformer_encoder(
    x: Var,
    *,
    layers: int,
    heads: int,
    kv_heads: int | None = None,
    feedforward: int | None = None,
    dropout: float = 0.1,
    attention_dropout: float | None = None,
    act: Activation = "relu",
    norm_first: bool = False,
    final_norm: bool = False,
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
    """So many of `transformer_encoder_layer`, one after another: float[*b t d] -> float[*b t d]; with `final_norm`, a `layer_norm` at the
    end.

    Parameters `<name>.0.attention.query.w` ..., and `<name>.norm.scale`. With `causal` and `norm_first` it is the body of a language model.
    Raises what `multi_head_attention` does.

        y = ol.layer.transformer_encoder(vectors, layers=2, heads=2, causal=True, norm_first=True, final_norm=True)
    """
    block = _Block(heads, kv_heads, feedforward, dropout, attention_dropout, act, norm_first, rotary, epsilon, bias, weight, shard)

    def each(x: Var, name: str) -> Var:
        return block.encode(x, mask, key_mask, causal, name)

    return _layers("transformer_encoder", x, name, block, each, layers=layers, final_norm=final_norm)


def transformer_decoder(
    x: Var,
    memory: Var,
    *,
    layers: int,
    heads: int,
    kv_heads: int | None = None,
    feedforward: int | None = None,
    dropout: float = 0.1,
    attention_dropout: float | None = None,
    act: Activation = "relu",
    norm_first: bool = False,
    final_norm: bool = False,
    mask: Var | None = None,
    key_mask: Var | None = None,
    causal: bool = True,
    rotary: bool | float = False,
    memory_mask: Var | None = None,
    memory_key_mask: Var | None = None,
    epsilon: float = 1e-5,
    bias: bool = True,
    weight: Given | None = None,
    shard: bool = False,
    name: str | None = None,
) -> Var:
    """So many of `transformer_decoder_layer`, one after another: float[*b t d], float[*b s e] -> float[*b t d].

    With `final_norm`, a `layer_norm` stands at the end. Parameters `<name>.0.attention.query.w` ..., and `<name>.norm.scale`. Raises what
    `multi_head_attention` does.

        y = ol.layer.transformer_decoder(vectors, memory, layers=2, heads=2)
    """
    block = _Block(heads, kv_heads, feedforward, dropout, attention_dropout, act, norm_first, rotary, epsilon, bias, weight, shard)
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
    feedforward: int | None = None,
    dropout: float = 0.1,
    act: Activation = "relu",
    norm_first: bool = False,
    source_key_mask: Var | None = None,
    target_key_mask: Var | None = None,
    epsilon: float = 1e-5,
    bias: bool = True,
    weight: Given | None = None,
    shard: bool = False,
    name: str | None = None,
) -> Var:
    """An encoder of the source and a decoder of the target that reads what it gives: float[*b s d], float[*b t d] -> float[*b t d].

    Both end with a `layer_norm` (Vaswani et al., 2017, figure 1). The source's padding, where `source_key_mask` is false, is seen by
    nobody. It takes vectors and gives vectors: `ol.layer.embedding`, `ol.layer.sinusoidal_positions` and a last `ol.layer.fc` stand around
    it. Parameters `<name>.encoder.0.attention.query.w` ... and `<name>.decoder.0.attention.query.w` .... Raises what `multi_head_attention`
    does.

        y = ol.layer.transformer(memory, vectors, heads=2, encoder_layers=1, decoder_layers=1)
    """
    source, target = require_type(source, "transformer: source"), require_type(target, "transformer: target")
    program = source.block.program
    name = layer_name(program, name, "transformer")
    how = {"heads": heads, "feedforward": feedforward, "dropout": dropout, "act": act, "norm_first": norm_first, "final_norm": True}
    how |= {"epsilon": epsilon, "bias": bias, "weight": weight, "shard": shard}
    with undone_on_error(program):
        memory = transformer_encoder(source, layers=encoder_layers, key_mask=source_key_mask, name=f"{name}.encoder", **how)
        return transformer_decoder(
            target, memory, layers=decoder_layers, key_mask=target_key_mask, memory_key_mask=source_key_mask, name=f"{name}.decoder", **how
        )


@dataclass(frozen=True)
class _Block:
    """How the blocks of a stack are made."""

    heads: int
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

    def encode(self, x: Var, mask: Var | None, key_mask: Var | None, causal: bool, name: str) -> Var:
        x = self._beside(x, f"{name}.norm1", lambda x: self._attend(x, None, mask, key_mask, causal, f"{name}.attention"))
        return self._beside(x, f"{name}.norm2", lambda x: self._feed(x, name))

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
        x = self._beside(x, f"{name}.norm1", lambda x: self._attend(x, None, mask, key_mask, causal, f"{name}.attention"))
        x = self._beside(
            x, f"{name}.norm2", lambda x: self._attend(x, memory, memory_mask, memory_key_mask, False, f"{name}.cross_attention")
        )
        return self._beside(x, f"{name}.norm3", lambda x: self._feed(x, name))

    def norm(self, x: Var, name: str) -> Var:
        return layer_norm(x, epsilon=self.epsilon, bias=self.bias, name=name)

    def _beside(self, x: Var, norm: str, inside: Callable[[Var], Var]) -> Var:
        """`x` and what a part of the block makes of it, normalized after the sum, or before the part."""
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

    def require_sound(self, kind: str) -> None:
        """Raises ArgumentError for settings that no block can have."""
        require_activation(self.act)
        require_unnamed(kind, self.weight)
        if not isinstance(self.bias, bool):
            raise ArgumentError(f"{kind}: bias is True or False, not {self.bias!r:.60}", location=here())


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
    """One block, or so many of them, then a norm. Takes back all where one is refused."""
    x = require_type(x, f"{kind}: x")
    block.require_sound(kind)
    program = x.block.program
    name = layer_name(program, name, kind)
    with undone_on_error(program):
        if layers is None:
            return each(x, name)
        for number in range(require_count(f"{kind}: layers", layers)):
            x = each(x, f"{name}.{number}")
        return block.norm(x, f"{name}.norm") if final_norm else x
