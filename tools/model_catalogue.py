"""Models by their names in `models_dev.json`, with random weights and small sizes, and inputs of a size and a batch."""

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is fetched: all weights are random

import torch
from model_classics import CLASSICS
from torch import nn
from torchvision_operators import declare_missing_operators
from transformer_configurations import CONFIGURATIONS, TransformerSubject

__all__ = ["Subject", "find_subject"]

_CLASSES = 5
_VIDEO_SIZES = {"s3d": ((16, 224), (16, 256)), "swin3d_t": ((8, 64), (8, 96))}
_TIMM_SIZES = {
    "beit_large_patch16_512": (64, 96),
    "crossvit_tiny_240": (240, 480),
    "deit_tiny_patch16_224": (64, 96),
    "gmlp_s16_224": (64, 96),
    "halonet26t": (256, 512),
    "hiera_tiny_224": (64, 128),
    "levit_384_s8": (64, 128),
    "mvitv2_tiny": (64, 96),
    "naflexvit_base_patch16_siglip": (64, 96),
    "nasnetalarge": (96, 128),
    "pnasnet5large": (96, 128),
    "sam2_hiera_tiny": (64, 128),
}
_TIMM_SHALLOW = {"beit_large_patch16_512": {"depth": 3}, "naflexvit_base_patch16_siglip": {"depth": 3}}
_TIMM_BLOCKS = {"gmlp_s16_224": 4}
"""Smaller numbers of repeated blocks: by an argument, or by removing blocks of the built model."""


@dataclass(frozen=True)
class Subject:
    """A model: `module(size)` builds it, `inputs(size, batch)` returns its arguments by parameter name."""

    name: str
    sizes: tuple[Any, Any]
    of_size: bool = False
    """Whether the module is another for another size."""

    def module(self, size: Any) -> nn.Module:
        """Return the module for inputs of `size`, in evaluation mode, with seeded random weights, none of them all zero."""
        torch.manual_seed(0)
        source, _, name = self.name.partition("/")
        made = _BUILDERS[source](name, size)
        without_dropout(made)
        randomize(made)
        return made.eval()

    def inputs(self, size: Any, batch: int) -> dict[str, torch.Tensor]:
        """Return seeded arguments of the module: float32, int64 or bool."""
        source, _, name = self.name.partition("/")
        generator = torch.Generator().manual_seed(1000 * batch + 1)
        return _INPUTS[source](name, size, batch, generator)


def find_subject(name: str) -> Subject | None:
    """Return the model `source/name`, whose source is tv, tvseg, tvvid, timm, hf or nn."""
    source, _, short = name.partition("/")
    if source in ("tv", "tvseg"):
        return Subject(name, (64, 96))
    if source == "tvvid":
        return Subject(name, _VIDEO_SIZES.get(short, ((8, 32), (8, 48))))
    if source == "timm":
        return Subject(name, _TIMM_SIZES.get(short, (64, 96)), of_size=True)
    if source == "hf" and short in CONFIGURATIONS:
        return Subject(name, CONFIGURATIONS[short].sizes, of_size=True)
    if source == "nn" and short in CLASSICS:
        return Subject(name, CLASSICS[short].sizes)
    return None


def without_dropout(module: nn.Module) -> None:
    """Set all rates of dropout and of stochastic depth to 0: random draws of two frameworks differ."""
    for part in module.modules():
        for name, value in vars(part).items():
            rate = isinstance(value, float) and ("drop" in name or (name == "p" and "epth" in type(part).__name__))
            if rate or (name == "p" and isinstance(part, nn.modules.dropout._DropoutNd)):
                setattr(part, name, 0.0)


@torch.no_grad()
def randomize(module: nn.Module) -> None:
    """Randomize parameters that are constant initially, such as a head of zeros or a layer scale of 1e-6: otherwise a test is vacuous."""
    generator = torch.Generator().manual_seed(7)
    for parameter in module.parameters():
        if parameter.numel() and parameter.is_floating_point() and bool((parameter == parameter.flatten()[0]).all()):
            middle = 1.0 if float(parameter.flatten()[0]) == 1.0 else 0.0
            parameter.copy_(middle + 0.2 * torch.randn(parameter.shape, generator=generator))
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.running_mean is not None and part.running_var is not None:
            part.running_mean.copy_(0.1 * torch.randn(part.running_mean.shape, generator=generator))
            part.running_var.copy_(0.75 + 0.5 * torch.rand(part.running_var.shape, generator=generator))


def _torchvision(name: str, size: Any) -> nn.Module:
    declare_missing_operators()
    import torchvision

    builder = torchvision.models.get_model_builder(name)
    given: dict[str, Any] = {"weights": None, "num_classes": _CLASSES}
    if name == "googlenet":
        given["init_weights"] = False  # else SciPy draws for a minute
    if name.startswith("fcn"):
        given |= {"weights_backbone": None, "aux_loss": True}
    return builder(**given)


def _timm(name: str, size: int) -> nn.Module:
    declare_missing_operators()
    import timm

    given: dict[str, Any] = {"num_classes": _CLASSES, **_TIMM_SHALLOW.get(name, {})}
    if name in _TIMM_SIZES and name not in ("nasnetalarge", "pnasnet5large"):
        given["img_size"] = size
    try:
        made = timm.create_model(name, pretrained=False, **given)
    except TypeError:
        given.pop("img_size", None)
        made = timm.create_model(name, pretrained=False, **given)
    if name in _TIMM_BLOCKS:
        made.blocks = made.blocks[: _TIMM_BLOCKS[name]]
    return made


def _transformer(name: str, size: int) -> nn.Module:
    declare_missing_operators()  # Transformers looks for torchvision
    import transformers

    subject = CONFIGURATIONS[name]
    if subject.type in ("mobilevit", "levit", "vit"):
        subject = _with(subject, image_size=size)
    if subject.inputs == "image and text":
        vision = subject.configuration["vision_config"]
        assert isinstance(vision, Mapping)
        subject = _with(subject, vision_config={**vision, "image_size": size})
    if subject.type == "patchtst":
        subject = _with(subject, context_length=size)
    if subject.type == "perceiver":
        subject = _with(subject, max_position_embeddings=size)
    configuration: Any = transformers.AutoConfig.for_model(subject.type, **subject.configuration)
    for part in (configuration, *(value for value in vars(configuration).values() if isinstance(value, type(configuration).__mro__[-2]))):
        _zero_rates(part)
    auto = getattr(transformers, subject.auto)
    return auto.from_config(configuration) if hasattr(auto, "from_config") else auto(configuration)


def _with(subject: TransformerSubject, **changes: object) -> TransformerSubject:
    return TransformerSubject(subject.type, subject.auto, subject.inputs, subject.sizes, {**subject.configuration, **changes})


def _zero_rates(configuration: Any) -> None:
    for key, value in vars(configuration).items():
        if isinstance(value, float) and ("drop" in key or key in ("attn_pdrop", "resid_pdrop", "embd_pdrop")):
            setattr(configuration, key, 0.0)
        elif hasattr(value, "to_dict"):
            _zero_rates(value)


def _images(name: str, size: int, batch: int, generator: torch.Generator) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, 3, size, size, generator=generator)}


def _videos(name: str, size: tuple[int, int], batch: int, generator: torch.Generator) -> dict[str, torch.Tensor]:
    frames, side = size
    return {"x": torch.randn(batch, 3, frames, side, side, generator=generator)}


def _tokens(count: int, batch: int, generator: torch.Generator, prefix: str = "") -> dict[str, torch.Tensor]:
    """Return token numbers, and a mask that hides the last two positions of the last row."""
    ids = torch.randint(3, 98, (batch, count), generator=generator)
    mask = torch.ones(batch, count, dtype=torch.int64)
    mask[-1, -2:] = 0
    return {f"{prefix}input_ids": ids, f"{prefix}attention_mask": mask}


def _transformer_inputs(name: str, size: int, batch: int, generator: torch.Generator) -> dict[str, torch.Tensor]:
    kind = CONFIGURATIONS[name].inputs
    if kind == "tokens":
        tokens = _tokens(size, batch, generator)
        return tokens if name != "rwkv" else {"input_ids": tokens["input_ids"]}
    if kind == "translation":
        return {**_tokens(size, batch, generator), "decoder_input_ids": torch.randint(3, 98, (batch, size - 2), generator=generator)}
    if kind == "image":
        return {"pixel_values": torch.randn(batch, 3, size, size, generator=generator)}
    if kind == "image and text":
        return {**_tokens(10, batch, generator), "pixel_values": torch.randn(batch, 3, size, size, generator=generator)}
    if kind == "waveform":
        return {"input_values": torch.randn(batch, size, generator=generator)}
    if kind == "series":
        return {"past_values": torch.randn(batch, size, 3, generator=generator)}
    assert kind == "trajectory"
    return {
        "states": torch.randn(batch, size, 5, generator=generator),
        "actions": torch.randn(batch, size, 3, generator=generator),
        "rewards": torch.randn(batch, size, 1, generator=generator),
        "returns_to_go": torch.randn(batch, size, 1, generator=generator),
        "timesteps": torch.arange(size).repeat(batch, 1),
        "attention_mask": torch.ones(batch, size, dtype=torch.int64),
    }


def _classic_inputs(name: str, size: Any, batch: int, generator: torch.Generator) -> dict[str, torch.Tensor]:
    return CLASSICS[name].inputs(size, batch, generator)


def renamed_first(module: nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return `inputs`; a single input gets the name of `forward`'s first parameter."""
    if len(inputs) != 1:
        return inputs
    first = next(iter(inspect.signature(module.forward).parameters))
    return {first: next(iter(inputs.values()))}


_BUILDERS = {
    "tv": _torchvision,
    "tvseg": _torchvision,
    "tvvid": _torchvision,
    "timm": _timm,
    "hf": _transformer,
    "nn": lambda name, size: CLASSICS[name].build(),
}
_INPUTS = {
    "tv": _images,
    "tvseg": _images,
    "tvvid": _videos,
    "timm": _images,
    "hf": _transformer_inputs,
    "nn": _classic_inputs,
}
