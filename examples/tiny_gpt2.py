"""Train a tiny GPT-2, a PyTorch module, to write Python, on the source of Python's standard library.

python examples/tiny_gpt2.py
python examples/tiny_gpt2.py --transformers     Hugging Face's GPT2LMHeadModel in the same sizes
"""

import argparse
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional

import oarlock as ol

LAYERS, HEADS, WIDTH, CONTEXT = 3, 4, 96, 64
CHARACTERS = len(ol.datasets.standard_library.vocabulary)  # a token is an ASCII character


class Block(nn.Module):
    """Attention and a perceptron, each with a normalization and a shortcut; parameter names as in GPT-2 (Radford et al., 2019)."""

    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(WIDTH, 3 * WIDTH), "c_proj": nn.Linear(WIDTH, WIDTH)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(WIDTH, 4 * WIDTH), "c_proj": nn.Linear(4 * WIDTH, WIDTH)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.attn["c_attn"](self.ln_1(x)).split(WIDTH, dim=2)
        query, key, value = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in parts)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attn["c_proj"](seen.transpose(1, 2).flatten(2))
        return x + self.mlp["c_proj"](functional.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """The logits of the next character, int64[n t] to float32[n t CHARACTERS]. The last layer shares the weights of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(CHARACTERS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.h = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, CHARACTERS, bias=False)
        self.lm_head.weight = self.wte.weight
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.wte(input_ids) + self.wpe(torch.arange(input_ids.shape[1]))
        return self.lm_head(self.ln_f(self.h(x)))


def make_gpt2(from_transformers: bool) -> nn.Module:
    """Return the module above, or the one of Transformers with the same sizes."""
    if not from_transformers:
        return GPT2()
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        sys.exit("Transformers is not installed: pip install transformers, or leave out --transformers")
    sizes = {"vocab_size": CHARACTERS, "n_positions": CONTEXT, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS}
    return GPT2LMHeadModel(GPT2Config(**sizes, use_cache=False, bos_token_id=0, eos_token_id=0))


def write(model: ol.Model, begin: str, length: int, seed: int) -> str:
    """Return `begin` and its continuation by the model; each character is sampled from a slightly sharpened softmax."""
    random, ids = numpy.random.default_rng(seed), list(begin.encode("ascii"))
    for _ in range(length):
        logits = ol.infer(model, {"input_ids": numpy.array([ids[-CONTEXT:]])})[0, -1] / 0.7
        shares = numpy.exp(logits - logits.max())
        ids.append(int(random.choice(CHARACTERS, p=shares / shares.sum())))
    return bytes(ids).decode("ascii")


def main(
    seed: int = 0, steps: int = 1500, files: int = 200, transformers: bool = False, length: int = 300, path: str = "gpt2.safetensors"
) -> float:
    """Import the module, train it, save it, and generate text with the saved file; return the bits per held-out character."""
    torch.manual_seed(seed)
    parts = ol.datasets.standard_library.split(length=CONTEXT, files=files)
    train, held_out = ({"input_ids": part["ids"], "next": part["next"]} for part in parts)
    imported = ol.from_torch(
        make_gpt2(transformers), {"input_ids": torch.zeros(2, CONTEXT, dtype=torch.int64)}, dynamic={"input_ids": {0: "n", 1: "t"}}
    )
    program, logits = imported.program, imported.outputs.get("logits", imported.output)
    with program:
        following = ol.layer.data("next", shape=["t"], dtype="int64")
        cost = ol.layer.mean(ol.layer.cross_entropy(logits, following))
    count = sum(int(numpy.prod(var.shape)) for var in program.parameters())
    print(f"{count:,} parameters, {train['input_ids'].size:,} characters to train on")

    rows = 16
    epochs = -(-steps * rows // len(train["next"]))
    adam = ol.optimizer.Adam(3e-3)
    result = ol.train(cost, train, optimizer=adam, epochs=epochs, batch_size=rows, steps=steps, scope=imported.scope)
    sample = {name: array[:256] for name, array in held_out.items()}
    bits = float(ol.infer(cost, sample, result.parameters)) / numpy.log(2)
    print(f"{bits:.2f} bits for a character of held-out files; 7 before training")

    ol.save_model(logits, result.parameters, path)
    print(f"saved {path}\n")
    print(write(ol.load_model(path), "def ", length, seed))
    return bits


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the initial values, the order of the data and the generated text")
    arguments.add_argument("--steps", type=int, default=1500)
    arguments.add_argument("--files", type=int, default=200, help="maximum number of files of the standard library to read")
    arguments.add_argument("--transformers", action="store_true", help="use the module of Transformers")
    arguments.add_argument("--length", type=int, default=300, help="number of characters to generate at the end")
    arguments.add_argument("--path", default="gpt2.safetensors", help="output file")
    main(**vars(arguments.parse_args()))
