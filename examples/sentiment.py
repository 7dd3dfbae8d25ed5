"""Classify sentiment with a gated recurrent network, written as one step, over sentences of different lengths.

oarlock train examples/sentiment.py
"""

import argparse

import numpy

import oarlock as ol

GLAD = ["good", "great", "happy", "lovely", "brilliant", "charming"]
SAD = ["bad", "awful", "sad", "dull", "tedious", "clumsy"]
TURNS = ["not", "never", "hardly"]
PLAIN = ["the", "a", "film", "plot", "actor", "was", "and", "it", "with", "scene", "music", "very"]
WORDS = PLAIN + TURNS + GLAD + SAD


def make_sentences(count: int, seed: int) -> dict[str, object]:
    """Generate sentences of 3 to 30 words, most of them short, as rows of ids with a label: {"words": rows, "glad": int64[count]}.

    A glad word counts 1 and a sad one -1, but the first of them after "not" is negated, whatever the number of neutral words
    in between. The sum is never 0. The label therefore depends on the order of the words, not only on their counts.
    """
    random = numpy.random.default_rng(seed)
    rows: list[list[int]] = []
    glad: list[int] = []
    while len(rows) < count:
        kinds = random.choice(4, size=min(2 + random.geometric(0.12), 30), p=[0.5, 0.2, 0.15, 0.15])
        words = [(PLAIN, TURNS, GLAD, SAD)[kind][random.integers((len(PLAIN), 3, 6, 6)[kind])] for kind in kinds]
        total, turned = 0, False
        for kind in kinds:
            if kind >= 2:
                total += 1 if (kind == 2) != turned else -1
            turned = kind == 1 or (turned and kind == 0)
        if total:
            rows.append([WORDS.index(word) for word in words])
            glad.append(int(total > 0))
    return {"words": rows, "glad": numpy.array(glad)}


def gated(words: ol.Var, size: int) -> ol.Var:
    """Return the state after each word, float[t size], ragged like `words`, float[t d] (Cho et al., 2014)."""
    rnn = ol.rnn()
    with rnn.step():
        word = rnn.step_input(words)
        state = rnn.memory(shape=[size])
        before = rnn.previous_memory(state)
        both = ol.layer.concat([word, before], axis=1)
        reset, update = ol.layer.split(ol.layer.fc(both, 2 * size, act="sigmoid"), sections=2, axis=1)
        proposed = ol.layer.fc(ol.layer.concat([word, reset * before], axis=1), size, act="tanh")
        after = before + update * (proposed - before)
        rnn.update_memory(state, after)
        rnn.output(after)
    return rnn()


def main(seed: int = 0, epochs: int = 20) -> dict[str, float]:
    """Train until the loss on held-out sentences is below 0.2; return the validation metrics of the last epoch."""
    with ol.Program(seed=seed):
        words = ol.layer.data("words", [], dtype="int64", ragged=1)
        glad = ol.layer.data("glad", [], dtype="int64")
        states = gated(ol.layer.embedding(words, (len(WORDS), 16)), 32)
        logits = ol.layer.fc(ol.layer.sequence_pool(states, "last"), 2)
        cost = ol.layer.cross_entropy(logits, glad)
        accuracy = ol.layer.accuracy(logits, glad)

    train, test = make_sentences(3000, seed), make_sentences(500, seed + 1)
    adam = ol.optimizer.Adam(1e-2)
    result = ol.train(cost, train, optimizer=adam, epochs=1, batch_size=100, validate=test, show={"accuracy": accuracy})
    for epoch in range(2, epochs + 1):
        if result.history[-1].validation["loss"] < 0.2:
            break
        result = ol.train(result, train, epochs=epoch, validate=test)
    return result.history[-1].validation


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the sentences, the initial values and the order of the data")
    arguments.add_argument("--epochs", type=int, default=20, help="maximum number of epochs")
    main(**vars(arguments.parse_args()))
