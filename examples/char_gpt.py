"""A character GPT, trained on the source of Python's standard library, that generates text with a cache of keys and values.

oarlock train examples/char_gpt.py
"""

import argparse

import numpy

import oarlock as ol

LAYERS, HEADS, WIDTH, CONTEXT = 2, 4, 64, 64
CHARACTERS = len(ol.datasets.standard_library.vocabulary)  # ASCII


def gpt(ids: ol.Var, dtype: str = "float32") -> ol.Var:
    """Return the logits of the next character: int64[n t] -> float[n t CHARACTERS] (Radford et al., 2018)."""
    x = ol.layer.embedding(ids, (CHARACTERS, WIDTH), initializer=ol.initializer.normal(deviation=0.02), dtype=dtype, name="characters")
    x = ol.layer.learned_positions(x, CONTEXT, name="positions")
    how = {"dropout": 0.0, "act": "gelu", "norm_first": True, "final_norm": True, "causal": True}
    return ol.layer.fc(ol.layer.transformer_encoder(x, layers=LAYERS, heads=HEADS, name="gpt", **how), CHARACTERS, name="head")


def step(ids: ol.Var, place: ol.Var, caches: list[ol.Var]) -> tuple[ol.Var, list[ol.Var]]:
    """Return the logits after one character per row, int64[n], at position `place`, int64[]: float[n CHARACTERS], and the updated caches.

    A cache, float[n CONTEXT WIDTH], has the keys or the values of a layer at all positions so far. Layers with one name share parameters.
    """
    places = ol.op.arange(stop=(CONTEXT,), dtype="int64")
    seen = ol.layer.reshape(places <= place, shape=(1, 1, 1, CONTEXT))
    now = ol.layer.reshape(ol.op.equal(places, place), shape=(1, CONTEXT, 1))
    x = ol.layer.embedding(ids, (CHARACTERS, WIDTH), name="characters")
    x = ol.layer.reshape(x + ol.op.gather(ol.layer.create_parameter([CONTEXT, WIDTH], name="positions.w"), place), shape=(-1, 1, WIDTH))
    following = []
    for number in range(LAYERS):
        name = f"gpt.{number}"
        inside = ol.layer.layer_norm(x, name=f"{name}.norm1")
        query, key, value = (ol.layer.fc(inside, WIDTH, name=f"{name}.attention.{what}") for what in ("query", "key", "value"))
        keys, values = (ol.op.where(now, new, cache) for new, cache in zip((key, value), caches[2 * number :][:2], strict=True))
        following += [keys, values]
        found = ol.op.scaled_dot_product_attention(query, keys, values, seen, heads=HEADS)
        x = x + ol.layer.fc(found, WIDTH, name=f"{name}.attention.output")
        inside = ol.layer.fc(ol.layer.layer_norm(x, name=f"{name}.norm2"), 4 * WIDTH, act="gelu", name=f"{name}.linear1")
        x = x + ol.layer.fc(inside, WIDTH, name=f"{name}.linear2")
    x = ol.layer.layer_norm(x, name="gpt.norm")
    return ol.layer.reshape(ol.layer.fc(x, CHARACTERS, name="head"), shape=(-1, CHARACTERS)), following


def generate(text: ol.Var, length: ol.Var, temperature: ol.Var) -> ol.Var:
    """Continue the rows of `text`, int64[n CONTEXT], after their first `length` characters."""
    caches = [ol.op.full_batch_size_like(text, shape=(CONTEXT, WIDTH), value=0.0) for _ in range(2 * LAYERS)]
    place = ol.op.full(shape=(), value=0.0, dtype="int64")
    places = ol.op.arange(stop=(CONTEXT,), dtype="int64")
    loop = ol.while_loop(place < CONTEXT - 1, max_trips=CONTEXT)
    with loop.block():
        ids = ol.op.reduce_sum(text * ol.op.cast(ol.op.equal(places, place), dtype="int64"), axis=1)
        logits, following = step(ids, place, caches)
        noise = -ol.op.log(-ol.op.log(ol.op.random_uniform_like(logits) + 1e-20) + 1e-20)
        drawn = ol.layer.reshape(ol.layer.argmax(logits / temperature + noise, axis=1), shape=(-1, 1))  # sampling by Gumbel's trick
        written = ol.op.logical_and(ol.op.equal(places, place + 1), places >= length)
        loop.carry(text, ol.op.where(written, drawn, text))
        for cache, value in zip(caches, following, strict=True):
            loop.carry(cache, value)
        loop.carry(place, place + 1)
        loop.update_condition(place + 1 < CONTEXT - 1)
    return loop()[0]


def write_on(model: ol.Model, begin: str, rows: int, temperature: float = 0.7) -> list[str]:
    """Return `begin` with several continuations by the model."""
    text = numpy.zeros((rows, CONTEXT), "int64")
    text[:, : len(begin)] = list(begin.encode("ascii"))
    written = ol.infer(model, {"text": text, "length": len(begin), "temperature": temperature})
    return [bytes(row.tolist()).decode("ascii") for row in written]


def main(seed: int = 0, steps: int = 2000, files: int = 200, path: str = "char_gpt.safetensors") -> dict[str, object]:
    """Train until a held-out character costs less than 2.6 bits, save the generator, and generate text; return bits and text."""
    train, held_out = ol.datasets.standard_library.split(length=CONTEXT, files=files)
    with ol.Program(seed=seed):
        following = ol.layer.data("next", [CONTEXT], dtype="int64")
        logits = gpt(ol.layer.data("ids", [CONTEXT], dtype="int64"))
        cost = ol.layer.mean(ol.layer.cross_entropy(logits, following))
        perplexity = ol.metric.perplexity(logits, following)
        text = ol.layer.data("text", [CONTEXT], dtype="int64")
        length, temperature = ol.layer.data("length", [], dtype="int64", batch=None), ol.layer.data("temperature", [], batch=None)
        written = generate(text, length, temperature)

    sample = {name: array[:200] for name, array in held_out.items()}
    schedule = ol.optimizer.schedule
    rate = schedule.WarmUp(schedule.CosineDecay(5e-3, steps=2000), steps=50)
    adamw = ol.optimizer.AdamW(rate, weight_decay=0.05, clip=ol.optimizer.ClipByGlobalNorm(1.0))
    result = ol.train(cost, train, optimizer=adamw, epochs=1000, batch_size=32, steps=min(200, steps), progress=False)
    bits: list[float] = []
    while True:
        bits.append(float(numpy.log2(ol.evaluate({"perplexity": perplexity}, sample, result)["perplexity"])))
        print(f"step {result.steps}: {bits[-1]:.2f} bits for a held-out character")
        if bits[-1] < 2.6 or result.steps >= steps:
            break
        result = ol.train(result, train, steps=min(200, steps - result.steps), progress=False)

    ol.save_model(written, result.parameters, path)
    lines = write_on(ol.load_model(path), "    def ", 6)
    print(f"saved {path}\n", *lines, sep="\n")
    return {"bits": bits, "text": lines}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the initial values, the order of the data and the generated text")
    arguments.add_argument("--steps", type=int, default=2000, help="maximum number of steps")
    arguments.add_argument("--files", type=int, default=200, help="maximum number of files of the standard library to read")
    arguments.add_argument("--path", default="char_gpt.safetensors", help="output file")
    main(**vars(arguments.parse_args()))
