"""A word-level language model: two LSTM layers read a long text piece by piece, and keep their state between pieces.

oarlock train examples/language_model.py
"""

import argparse
import re
from collections import Counter

import numpy

import oarlock as ol

LAYERS, SIZE, STEPS, ROWS = 2, 96, 20, 20  # as in the small model of the book chapter, whose SIZE is 200


def read_docstrings(files: int, count: int) -> tuple[numpy.ndarray, list[str]]:
    """Return the docstrings of the standard library as ranks of the most frequent words, 0 for others: int64[n]; and these words.

    They replace the Penn Treebank, which is not free.
    """
    words = [word for text in ol.datasets.standard_library.docstrings(files=files) for word in re.findall(r"[a-z]+|[.,:]", text.lower())]
    vocabulary = ["?", *(word for word, _ in Counter(words).most_common(count - 1))]
    numbers = {word: number for number, word in enumerate(vocabulary)}
    return numpy.array([numbers.get(word, 0) for word in words]), vocabulary


def pieces(ids: numpy.ndarray, rows: int) -> list[dict[str, numpy.ndarray]]:
    """Split the text into `rows` parallel columns and pieces of STEPS words: words and next words, int64[STEPS rows]."""
    length = (len(ids) - 1) // rows
    columns = [ids[start : start + rows * length].reshape(rows, length).T for start in (0, 1)]
    starts = range(0, length - STEPS + 1, STEPS)
    return [{name: column[start : start + STEPS] for name, column in zip(("words", "next"), columns, strict=True)} for start in starts]


def main(seed: int = 0, epochs: int = 8, files: int = 300, words: int = 2000, path: str = "language.safetensors") -> dict[str, object]:
    """Train until the perplexity of held-out text no longer decreases; save the model, and return the perplexities and a text."""
    ids, vocabulary = read_docstrings(files, words)
    cut = len(ids) * 9 // 10
    train, test = pieces(ids[:cut], ROWS), pieces(ids[cut:], ROWS)

    with ol.Program(seed=seed) as program:
        read = ol.layer.data("words", ["n"], dtype="int64", batch="t")
        following = ol.layer.data("next", ["n"], dtype="int64", batch="t")
        h, c = (ol.layer.data(name, [LAYERS, "n", SIZE], batch=None) for name in ("h", "c"))
        vectors = ol.layer.embedding(read, (words, SIZE), initializer=ol.initializer.uniform(-0.1, 0.1))
        states, last_h, last_c = ol.layer.lstm(vectors, SIZE, init=(h, c), layers=LAYERS, dropout=0.2)
        logits = ol.layer.fc(states, words)
        cost = ol.layer.mean(ol.layer.cross_entropy(logits, following))
        perplexity = ol.metric.perplexity(logits, following)
        ol.optimizer.Adam(2e-3, clip=ol.optimizer.ClipByGlobalNorm(5.0)).minimize(cost)

    scope, executor = ol.init(program, ol.Scope()), ol.Executor()
    steps = {
        training: executor.prepare(program, [perplexity, last_h, last_c], scope=scope, training=training) for training in (True, False)
    }
    measured: list[dict[str, float]] = []
    for epoch in range(1, epochs + 1):
        record = {}
        for name, part, training in (("training", train, True), ("held out", test, False)):
            state = {"h": numpy.zeros((LAYERS, ROWS, SIZE), "float32"), "c": numpy.zeros((LAYERS, ROWS, SIZE), "float32")}
            for piece in part:
                value, state["h"], state["c"] = steps[training]({**piece, **state})
            record[name] = float(value)
            ol.metric.reset(perplexity, scope)
        measured.append(record)
        print(f"epoch {epoch}: perplexity {record['training']:.0f} of training text, {record['held out']:.0f} of held-out text")
        if epoch > 1 and record["held out"] > 0.98 * measured[-2]["held out"]:
            break

    ol.save_model({"logits": logits, "h": last_h, "c": last_c}, scope, path)
    text = write(ol.load_model(path), vocabulary, seed)
    print(f"saved {path}\n{text}")
    return {"perplexity": measured, "text": text}


def write(model: ol.Model, vocabulary: list[str], seed: int, length: int = 60) -> str:
    """Generate a text: each word is sampled from the prediction and fed back."""
    random, word, text = numpy.random.default_rng(seed), vocabulary.index("the"), ["the"]
    state = {"h": numpy.zeros((LAYERS, 1, SIZE), "float32"), "c": numpy.zeros((LAYERS, 1, SIZE), "float32")}
    for _ in range(length):
        found = ol.infer(model, {"words": numpy.full((1, 1), word), **state})
        assert isinstance(found, dict)
        state = {"h": found["h"], "c": found["c"]}
        shares = numpy.exp(found["logits"][0, 0].astype("float64") / 0.7)
        shares[0] = 0.0  # never sample an unknown word
        word = int(random.choice(len(shares), p=shares / shares.sum()))
        text.append(vocabulary[word])
    return " ".join(text).replace(" .", ".").replace(" ,", ",").replace(" :", ":")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the initial values and the generated text")
    arguments.add_argument("--epochs", type=int, default=8, help="maximum number of epochs")
    arguments.add_argument("--files", type=int, default=300, help="maximum number of files of the standard library to read")
    arguments.add_argument("--words", type=int, default=2000, help="size of the vocabulary")
    arguments.add_argument("--path", default="language.safetensors", help="output file")
    main(**vars(arguments.parse_args()))
