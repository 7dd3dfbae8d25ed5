"""Tiny configurations of the Transformers models in `models_dev.json`: class, sizes, inputs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["CONFIGURATIONS", "TransformerSubject"]


@dataclass(frozen=True)
class TransformerSubject:
    """A model type, the automatic class that builds it, its tiny configuration, and the kind of its inputs at two sizes."""

    type: str
    auto: str
    inputs: str = "tokens"
    sizes: tuple[int, int] = (10, 14)
    configuration: Mapping[str, object] = field(default_factory=dict)


_ENCODER: dict[str, object] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
    "pad_token_id": 1,
}
_DECODER: dict[str, object] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "use_cache": False,
}
_GPT2: dict[str, object] = {
    "vocab_size": 99,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "n_inner": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "use_cache": False,
}
_TRANSLATION: dict[str, object] = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "forced_eos_token_id": None,
    "scale_embedding": True,
    "use_cache": False,
}
_STAGES: dict[str, object] = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1], "num_labels": 5}
_RESIDUAL_STAGES: dict[str, object] = {**_STAGES, "embedding_size": 8}
_WAVEFORM: dict[str, object] = {
    "vocab_size": 31,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "conv_dim": [16, 16, 16],
    "conv_stride": [5, 2, 2],
    "conv_kernel": [10, 3, 3],
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "apply_spec_augment": False,
    "mask_time_prob": 0.0,
    "pad_token_id": 0,
}
_EXPERTS: dict[str, object] = {"num_experts_per_tok": 2, "output_router_logits": False}


def _encoder(type: str, auto: str = "AutoModelForMaskedLM", **configuration: object) -> TransformerSubject:
    return TransformerSubject(type, auto, configuration={**_ENCODER, **configuration})


def _decoder(type: str, **configuration: object) -> TransformerSubject:
    return TransformerSubject(type, "AutoModelForCausalLM", configuration={**_DECODER, **configuration})


def _images(type: str, size: int = 64, auto: str = "AutoModelForImageClassification", **configuration: object) -> TransformerSubject:
    return TransformerSubject(type, auto, "image", (size, size + 32), configuration)


CONFIGURATIONS: dict[str, TransformerSubject] = {
    "roberta": _encoder("roberta"),
    "xlm-roberta": _encoder("xlm-roberta"),
    "electra": _encoder("electra", embedding_size=16, pad_token_id=0),
    "deberta": _encoder(
        "deberta", type_vocab_size=0, relative_attention=True, pos_att_type=["c2p", "p2c"], position_biased_input=False, pad_token_id=0
    ),
    "deberta-v2": _encoder(
        "deberta-v2",
        type_vocab_size=0,
        relative_attention=True,
        position_buckets=8,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        conv_kernel_size=3,
        conv_act="gelu",
        pad_token_id=0,
    ),
    "squeezebert": _encoder("squeezebert", embedding_size=32, pad_token_id=0),
    "mobilebert": _encoder(
        "mobilebert", embedding_size=16, true_hidden_size=16, intra_bottleneck_size=16, num_feedforward_networks=2, pad_token_id=0
    ),
    "xlnet": TransformerSubject(
        "xlnet",
        "AutoModelForCausalLM",
        configuration={
            "vocab_size": 99, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64, "use_mems_eval": False, "use_mems_train": False
        },
    ),
    "bigbird": _encoder("big_bird", attention_type="original_full", pad_token_id=0),
    "gpt2": TransformerSubject("gpt2", "AutoModelForCausalLM", configuration=_GPT2),
    "gpt-neo": TransformerSubject(
        "gpt_neo",
        "AutoModelForCausalLM",
        configuration={
            "vocab_size": 99, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]],
            "window_size": 6, "max_position_embeddings": 64, "intermediate_size": 64, "bos_token_id": 1, "eos_token_id": 2,
            "use_cache": False,
        },
    ),
    "gpt-neox": _decoder("gpt_neox", rotary_pct=0.5),
    "opt": TransformerSubject(
        "opt",
        "AutoModelForCausalLM",
        configuration={
            "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64,
            "max_position_embeddings": 64, "word_embed_proj_dim": 16, "use_cache": False,
        },
    ),
    "bloom": TransformerSubject(
        "bloom", "AutoModelForCausalLM", configuration={"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4, "use_cache": False}
    ),
    "codegen": TransformerSubject("codegen", "AutoModelForCausalLM", configuration={**_GPT2, "rotary_dim": 4, "n_ctx": 64}),
    "mpt": TransformerSubject(
        "mpt",
        "AutoModelForCausalLM",
        configuration={"vocab_size": 99, "d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64, "use_cache": False},
    ),
    "llama": _decoder("llama"),
    "qwen2": _decoder("qwen2"),
    "qwen3": _decoder("qwen3", head_dim=8),
    "stablelm": _decoder("stablelm", partial_rotary_factor=0.5),
    "cohere": _decoder("cohere"),
    "smollm3": _decoder("smollm3", num_hidden_layers=4),
    "nemotron": _decoder("nemotron", head_dim=8),
    "mixtral": _decoder("mixtral", num_local_experts=4, **_EXPERTS),
    "qwen2-moe": _decoder("qwen2_moe", num_experts=4, moe_intermediate_size=32, shared_expert_intermediate_size=32, **_EXPERTS),
    "gpt-oss": _decoder("gpt_oss", num_local_experts=4, head_dim=8, sliding_window=8, **_EXPERTS),
    "mamba": TransformerSubject(
        "mamba",
        "AutoModelForCausalLM",
        configuration={"vocab_size": 99, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2, "use_cache": False},
    ),
    "mamba2": TransformerSubject(
        "mamba2",
        "AutoModelForCausalLM",
        configuration={
            "vocab_size": 99, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2, "num_heads": 8, "head_dim": 8, "expand": 2,
            "n_groups": 2, "chunk_size": 8, "use_cache": False,
        },
    ),
    "rwkv": TransformerSubject(
        "rwkv",
        "AutoModelForCausalLM",
        configuration={
            "vocab_size": 99, "hidden_size": 32, "attention_hidden_size": 32, "num_hidden_layers": 2, "context_length": 64,
            "use_cache": False,
        },
    ),
    "marian": TransformerSubject("marian", "AutoModelForSeq2SeqLM", "translation", configuration=_TRANSLATION),
    "pegasus": TransformerSubject("pegasus", "AutoModelForSeq2SeqLM", "translation", configuration=_TRANSLATION),
    "mbart": TransformerSubject("mbart", "AutoModelForSeq2SeqLM", "translation", configuration=_TRANSLATION),
    "convnext": _images("convnext", **_STAGES),
    "convnextv2": _images("convnextv2", **_STAGES),
    "resnet": _images("resnet", **_RESIDUAL_STAGES),
    "mobilevit": _images("mobilevit", image_size=64, num_labels=5),
    "mobilenet-v2": _images("mobilenet_v2", depth_multiplier=0.35, num_labels=5),
    "levit": _images(
        "levit",
        auto="LevitForImageClassification",
        hidden_sizes=[16, 24, 32],
        num_attention_heads=[2, 3, 4],
        depths=[1, 1, 1],
        key_dim=[8, 8, 8],
        num_labels=5,
    ),
    "regnet": _images("regnet", groups_width=4, **_RESIDUAL_STAGES),
    "detr": _images(
        "detr",
        auto="AutoModelForObjectDetection",
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_queries=7,
        num_labels=5,
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config={"model_type": "resnet", **_RESIDUAL_STAGES, "out_features": ["stage4"]},
    ),
    "clip": TransformerSubject(
        "clip",
        "AutoModel",
        "image and text",
        (64, 96),
        {
            "text_config": {**_ENCODER, "eos_token_id": 98, "projection_dim": 24},
            "vision_config": {
                "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 64,
                "patch_size": 16, "projection_dim": 24,
            },
            "projection_dim": 24,
        },
    ),
    "wav2vec2": TransformerSubject("wav2vec2", "AutoModelForCTC", "waveform", (800, 1200), _WAVEFORM),
    "hubert": TransformerSubject("hubert", "AutoModelForCTC", "waveform", (800, 1200), _WAVEFORM),
    "patchtst": TransformerSubject(
        "patchtst",
        "PatchTSTForPrediction",
        "series",
        (32, 48),
        {
            "num_input_channels": 3, "patch_length": 8, "patch_stride": 8, "d_model": 16, "num_attention_heads": 4, "ffn_dim": 32,
            "num_hidden_layers": 2, "prediction_length": 8,
        },
    ),
    "decision-transformer": TransformerSubject(
        "decision_transformer",
        "AutoModel",
        "trajectory",
        (4, 6),
        {**_GPT2, "state_dim": 5, "act_dim": 3, "hidden_size": 32, "max_ep_len": 64},
    ),
    "perceiver": TransformerSubject(
        "perceiver",
        "AutoModelForMaskedLM",
        configuration={
            "vocab_size": 99, "d_model": 32, "d_latents": 32, "num_latents": 8, "num_blocks": 1, "num_self_attends_per_block": 2,
            "num_self_attention_heads": 4, "num_cross_attention_heads": 4, "max_position_embeddings": 10, "qk_channels": 16,
            "v_channels": 32,
        },
    ),
}  # fmt: skip
