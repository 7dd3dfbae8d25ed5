"""Label semantic roles (who did what to whom) with a bidirectional recurrent network and a conditional random field.

oarlock train examples/semantic_roles.py
"""

import argparse

import numpy

import oarlock as ol

NAMES = ["Ada", "Emmy", "Grace", "Kurt", "Alan", "Sofia"]
THINGS = ["letter", "lamp", "proof", "engine", "violin", "map"]
PLACES = ["garden", "station", "library", "harbour"]
VERBS = ["gave", "sent", "showed", "sold"]
PLAIN = ["the", "a", "old", "red", "to", "in", "was", "by", "and", "slept"]
WORDS = NAMES + THINGS + PLACES + VERBS + PLAIN
ROLES = ["giver", "thing", "receiver", "place"]
OUTSIDE = 2 * len(ROLES)  # role i has the tag 2 i at its first word, and 2 i + 1 after it


def make_sentences(count: int, seed: int) -> dict[str, object]:
    """Generate sentences with a marked verb and tagged roles: {"words": rows of ids, "mark": rows of 0 and 1, "tags": rows of tags}.

    They replace CoNLL-2005, which is not free: roles depend on the order of words, on prepositions and on whether the verb is
    passive, not on the words alone; if there are two verbs, the roles are those of the marked one.
    """
    random = numpy.random.default_rng(seed)

    def thing() -> list[str]:
        adjective = [[], ["old"], ["red"], ["old", "red"]][random.integers(4)]
        return [["the", "a"][random.integers(2)], *adjective, THINGS[random.integers(len(THINGS))]]

    def name() -> list[str]:
        first, other = random.permutation(NAMES)[:2]
        return [str(first)] if random.random() < 0.7 else [str(first), "and", str(other)]

    def sentence() -> list[tuple[list[str], str, bool]]:
        verb = VERBS[random.integers(len(VERBS))]
        giver, given, receiver = (name(), "giver", False), (thing(), "thing", False), (name(), "receiver", False)
        word = ([verb], "", True)
        if random.random() < 0.5:
            parts = [giver, word, receiver, given] if random.random() < 0.5 else [giver, word, given, (["to"], "", False), receiver]
        else:
            parts = [given, (["was"], "", False), word, (["to"], "", False), receiver, (["by"], "", False), giver]
        if random.random() < 0.5:
            parts += [(["in"], "", False), (["the", PLACES[random.integers(len(PLACES))]], "place", False)]
        return parts

    rows: dict[str, list[list[int]]] = {"words": [], "mark": [], "tags": []}
    for _ in range(count):
        asked = sentence()
        other = [(words, "", False) for words, _, _ in sentence()]
        parts = [[*asked, (["and"], "", False), *other], [*other, (["and"], "", False), *asked], asked][random.integers(3)]
        rows["words"].append([WORDS.index(word) for words, _, _ in parts for word in words])
        rows["mark"].append([int(marked) for words, _, marked in parts for _ in words])
        tags = [(2 * ROLES.index(role) + (place > 0) if role else OUTSIDE) for words, role, _ in parts for place in range(len(words))]
        rows["tags"].append(tags)
    return rows


def main(seed: int = 0, epochs: int = 10, rows: int = 2000, path: str = "roles.safetensors") -> dict[str, object]:
    """Train until the F1 on held-out sentences is above 0.97; save the tagger, and return some tagged sentences."""
    with ol.Program(seed=seed):
        words = ol.layer.data("words", [], dtype="int64", ragged=1)
        mark = ol.layer.data("mark", [], dtype="int64", batch="words.t")
        tags = ol.layer.data("tags", [], dtype="int64", batch="words.t")
        x = ol.layer.concat([ol.layer.embedding(words, (len(WORDS), 16)), ol.layer.embedding(mark, (2, 4))], axis=1)
        states, _, _ = ol.layer.lstm(x, 24, bidirectional=True)
        emissions = ol.layer.fc(states, OUTSIDE + 1)
        cost = ol.layer.mean(ol.layer.crf(emissions, tags, name="crf"))
        path_told, _ = ol.layer.crf_decode(emissions, name="crf")
        f1 = ol.metric.chunk_f1(path_told, tags, len(ROLES))

    train, test = make_sentences(rows, seed), make_sentences(200, seed + 1)
    result = ol.train(cost, train, optimizer=ol.optimizer.Adam(1e-2), epochs=1, batch_size=50, validate=test, show={"f1": f1})
    measured = [result.history[-1].validation["f1"]]
    for epoch in range(2, epochs + 1):
        if measured[-1] > 0.97:
            break
        result = ol.train(result, train, epochs=epoch, validate=test)
        measured.append(result.history[-1].validation["f1"])

    ol.save_model(path_told, result.parameters, path)
    print(f"saved {path}")
    some = {name: row[:6] for name, row in test.items()}
    told = ol.infer(ol.load_model(path), {"words": some["words"], "mark": numpy.concatenate(some["mark"])})
    cuts = numpy.cumsum([len(row) for row in some["words"]])[:-1]
    sentences = [[WORDS[number] for number in row] for row in some["words"]]
    return {"f1": measured, "words": sentences, "mark": some["mark"], "told": [part.tolist() for part in numpy.split(told, cuts)]}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the sentences, the initial values and the order of the data")
    arguments.add_argument("--epochs", type=int, default=10, help="maximum number of epochs")
    arguments.add_argument("--rows", type=int, default=2000, help="number of training sentences")
    arguments.add_argument("--path", default="roles.safetensors", help="output file")
    main(**vars(arguments.parse_args()))
