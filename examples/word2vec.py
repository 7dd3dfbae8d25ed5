"""Word vectors: a network predicts a word from the four before it, so that words with similar uses get similar vectors.

oarlock train examples/word2vec.py
"""

import argparse
import re
from collections import Counter

import numpy

import oarlock as ol

BEFORE, SIZE = 4, 32


def read_docstrings(files: int) -> list[str]:
    """Return the words in the docstrings of Python's standard library, in order. They replace the Penn Treebank, which is not free."""
    texts = ol.datasets.standard_library.docstrings(files=files)
    return [word for text in texts for word in re.findall(r"[a-z]+|[.,]", text.lower())]


def number_words(words: list[str], count: int) -> tuple[numpy.ndarray, list[str]]:
    """Return each word as its rank among the `count` most frequent, or 0 for others: int64[n]; and these words."""
    vocabulary = ["?", *(word for word, _ in Counter(words).most_common(count - 1))]
    numbers = {word: number for number, word in enumerate(vocabulary)}
    return numpy.array([numbers.get(word, 0) for word in words]), vocabulary


def main(seed: int = 0, epochs: int = 12, files: int = 300, words: int = 1000) -> dict[str, object]:
    """Train until the held-out loss is below 5.0, as in the book chapter, or no longer decreases; return vectors and neighbors."""
    ids, vocabulary = number_words(read_docstrings(files), words)
    windows = numpy.lib.stride_tricks.sliding_window_view(ids, BEFORE + 1)
    data = {f"word{place}": windows[:, place].copy() for place in range(BEFORE)} | {"next": windows[:, BEFORE].copy()}
    cut = len(windows) * 9 // 10
    train, test = {name: part[:cut] for name, part in data.items()}, {name: part[cut:] for name, part in data.items()}

    with ol.Program(seed=seed):
        before = [ol.layer.data(f"word{place}", shape=[], dtype="int64") for place in range(BEFORE)]
        following = ol.layer.data("next", shape=[], dtype="int64")
        vectors = [ol.layer.embedding(word, (words, SIZE), params=["vectors"]) for word in before]  # one shared table
        hidden = ol.layer.fc(ol.layer.concat(vectors, axis=1), 128, act="sigmoid")
        logits = ol.layer.fc(hidden, words)
        cost = ol.layer.cross_entropy(logits, following)
        among_ten = ol.metric.top_k_accuracy(logits, following, 10)

    show = {"among_ten": among_ten}
    result = ol.train(cost, train, optimizer=ol.optimizer.Adam(2e-3), epochs=1, batch_size=128, validate=test, show=show)
    measured = [result.history[-1].validation]
    for epoch in range(2, epochs + 1):
        result = ol.train(result, train, epochs=epoch, validate=test)
        measured.append(result.history[-1].validation)
        if measured[-1]["loss"] < 5.0 and measured[-1]["loss"] > 0.99 * measured[-2]["loss"]:
            break

    table = result.parameters["vectors"].numpy()
    unit = table / numpy.linalg.norm(table, axis=1, keepdims=True)
    neighbours = {}
    for word in ("return", "first", "list", "if", "is", "file", "one", "the", "raises", "name"):
        if word in vocabulary:
            nearest = numpy.argsort(-unit @ unit[vocabulary.index(word)])[1:6]
            neighbours[word] = [vocabulary[number] for number in nearest]
            print(f"{word}: {', '.join(neighbours[word])}")
    return {"loss": [record["loss"] for record in measured], "neighbours": neighbours, "words": vocabulary, "vectors": table}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the initial values and the order of the data")
    arguments.add_argument("--epochs", type=int, default=12, help="maximum number of epochs")
    arguments.add_argument("--files", type=int, default=300, help="maximum number of files of the standard library to read")
    arguments.add_argument("--words", type=int, default=1000, help="size of the vocabulary")
    main(**vars(arguments.parse_args()))
