"""Translate with an encoder, a decoder with attention, and beam search, all in one program.

oarlock train examples/translation.py
"""

import argparse

import numpy

import oarlock as ol

BEGIN, END, WORDS = 0, 1, 20
SIZE = 48


def make_pairs(count: int, seed: int) -> dict[str, list[list[int]]]:
    """Generate sentences of 2 to 6 words and their translations: every word is replaced by another, and the order is reversed.

    {"source": rows of ids, "target": rows of pairs (the word before, the word that follows), from BEGIN to END}
    """
    random = numpy.random.default_rng(seed)
    dictionary = 2 + (7 * numpy.arange(WORDS - 2) + 3) % (WORDS - 2)
    sources = [random.integers(2, WORDS, size=random.integers(2, 7)) for _ in range(count)]
    targets = [dictionary[source[::-1] - 2].tolist() for source in sources]
    pairs = [[[before, after] for before, after in zip([BEGIN, *words], [*words, END], strict=True)] for words in targets]
    return {"source": [source.tolist() for source in sources], "target": pairs}


def gated(x: ol.Var, before: ol.Var, name: str) -> ol.Var:
    """Return the state after a step, float[m SIZE]; calls with the same name share parameters (Cho et al., 2014)."""
    both = ol.layer.concat([x, before], axis=1)
    reset, update = ol.layer.split(ol.layer.fc(both, 2 * SIZE, act="sigmoid", name=f"{name}.gates"), sections=2, axis=1)
    proposed = ol.layer.fc(ol.layer.concat([x, reset * before], axis=1), SIZE, act="tanh", name=f"{name}.proposed")
    return before + update * (proposed - before)


def encode(words: ol.Var) -> tuple[ol.Var, ol.Var]:
    """Return the state at each word, float[t SIZE], ragged like the words, and the last one of each sentence, float[n SIZE]."""
    rnn = ol.rnn()
    with rnn.step():
        word = rnn.step_input(words)
        state = rnn.memory(shape=[SIZE])
        after = gated(word, rnn.previous_memory(state), "encoder")
        rnn.update_memory(state, after)
        rnn.output(after)
    return rnn(), rnn.final_memory(state)


def decode(word: ol.Var, before: ol.Var, encoded: ol.Var, absent: ol.Var) -> tuple[ol.Var, ol.Var]:
    """Run one step of the decoder, in training or in search; return the logits of the next word, float[m WORDS], and the state.

    `encoded`, float[m longest SIZE], is the encoding of each word; `absent`, float[m longest], is a large negative number for padding.
    """
    x = ol.layer.embedding(word, (WORDS, 16), name="target")
    query = ol.layer.reshape(ol.layer.fc(before, SIZE, name="query"), shape=(-1, 1, SIZE))
    weights = ol.layer.softmax(ol.op.reduce_sum(query * encoded, axis=2) + absent)
    seen = ol.layer.reshape(ol.layer.stack([weights], axis=1) @ encoded, shape=(-1, SIZE))
    after = gated(ol.layer.concat([x, seen], axis=1), before, "decoder")
    return ol.layer.fc(ol.layer.concat([after, seen], axis=1), WORDS, name="words"), after


def write(seed: int, beam_size: int) -> tuple[ol.Var, ol.Var]:
    """Write one program with the cost for training, float[], and the translations, int64[n beam_size length]."""
    with ol.Program(seed=seed):
        source = ol.layer.data("source", [], dtype="int64", ragged=1)
        target = ol.layer.data("target", [2], dtype="int64", ragged=1)
        states, last = encode(ol.layer.embedding(source, (WORDS, 16), name="source_words"))
        present = ol.op.full_batch_size_like(states, shape=(1,), value=1.0)
        padded = ol.layer.sequence_pad(ol.layer.concat([states, present], axis=1))
        encoded = ol.op.slice(padded, axis=2, stop=SIZE)
        absent = (ol.op.reduce_sum(ol.op.slice(padded, axis=2, start=SIZE), axis=2) - 1) * 1e9

        previous, following = (ol.layer.flatten(column, start=0) for column in ol.layer.split(target, sections=2, axis=1))
        rnn = ol.rnn()
        with rnn.step():
            word = rnn.step_input(previous)
            state = rnn.memory(init=last)
            logits, after = decode(word, rnn.previous_memory(state), encoded, absent)
            rnn.update_memory(state, after)
            rnn.output(logits)
        cost = ol.layer.cross_entropy(rnn(), following)

        def step(word: ol.Var, before: ol.Var, encoded: ol.Var, absent: ol.Var) -> tuple[ol.Var, ...]:
            logits, after = decode(word, before, encoded, absent)
            return ol.layer.log_softmax(logits), after, encoded, absent

        found, _ = ol.layer.beam_search(step, [last, encoded, absent], beam_size=beam_size, begin=BEGIN, end=END, max_length=10)
    return cost, found


def share_right(found: numpy.ndarray, pairs: dict[str, list[list[int]]]) -> float:
    """Return the share of best hypotheses that equal the translation, word for word."""
    right = 0
    for words, target in zip(found[:, 0].tolist(), pairs["target"], strict=True):
        wanted = [following for _, following in target]
        right += words[: len(wanted)] == wanted
    return right / len(found)


def main(seed: int = 0, epochs: int = 20, beam_size: int = 3, path: str = "translation.safetensors") -> float:
    """Train until more than 95 % of 200 held-out sentences are translated correctly, save the model, and return the share."""
    cost, found = write(seed, beam_size)
    train, test = make_pairs(4000, seed), make_pairs(200, seed + 1)
    result = ol.train(cost, train, optimizer=ol.optimizer.Adam(3e-3), epochs=1, batch_size=50)
    for epoch in range(2, epochs + 1):
        share = share_right(ol.infer(found, {"source": test["source"]}, result.parameters), test)
        print(f"{share:.1%} translated correctly")
        if share > 0.95:
            break
        result = ol.train(result, train, epochs=epoch)
    ol.save_model(found, result.parameters, path)
    print(f"saved {path}")
    return share_right(ol.infer(ol.load_model(path), {"source": test["source"]}), test)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the sentences, the initial values and the order of the data")
    arguments.add_argument("--epochs", type=int, default=20, help="maximum number of epochs")
    arguments.add_argument("--beam-size", type=int, default=3, help="number of hypotheses to keep")
    arguments.add_argument("--path", default="translation.safetensors", help="output file")
    main(**vars(arguments.parse_args()))
