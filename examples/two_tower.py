"""A two-tower recommender: users and items are vectors in one space, in large tables of which a step reads and changes only a few rows.

oarlock train examples/two_tower.py
"""

import argparse

import numpy

import oarlock as ol

USERS, ITEMS, GROUPS, SIZE = 20_000, 5_000, 50, 24


def make_clicks(count: int, seed: int) -> dict[str, numpy.ndarray]:
    """Generate the users and items of clicks, int64[count] each, and the rarity of the item, float32[count].

    Users belong to groups that mostly click the same items, some of these more often.
    This replaces the log of a shop, in which most users occur a few times, without other features.
    """
    random = numpy.random.default_rng(seed)
    user = random.integers(0, USERS, count)
    own = (user * 7919 % GROUPS) * (ITEMS // GROUPS) + numpy.minimum(random.geometric(0.05, count), ITEMS // GROUPS) - 1
    item = numpy.where(random.random(count) < 0.1, random.integers(0, ITEMS, count), own)
    often = numpy.bincount(item, minlength=ITEMS) / count
    return {"user": user, "item": item, "rarity": -numpy.log(often[item]).astype("float32")}


def tower(ids: ol.Var, rows: int, name: str) -> ol.Var:
    """Look up the vectors of ids, normalized to length 1: int64[n] -> float[n SIZE]."""
    start = ol.initializer.normal(deviation=0.1)
    return ol.op.normalize(ol.layer.embedding(ids, (rows, SIZE), initializer=start, name=name), axis=-1)


def main(seed: int = 0, epochs: int = 15, rows: int = 200_000, path: str = "two_tower.safetensors") -> dict[str, object]:
    """Train until 49 % of the held-out clicks are among the user's top 20 items; save the model; return the vectors of items."""
    with ol.Program(seed=seed):
        user, item = ol.layer.data("user", [], dtype="int64"), ol.layer.data("item", [], dtype="int64")
        of_user, of_item = tower(user, USERS, "user"), tower(item, ITEMS, "item")
        rarity = ol.layer.data("rarity", [])  # corrects for frequent items, which are in many batches (Yi et al., 2019)
        scores = 10.0 * (of_user @ ol.op.transpose(of_item, axes=(1, 0))) + rarity  # each user with the items of all rows
        cost = ol.layer.cross_entropy(scores, ol.op.arange([user], stop=("n",)))
        every = ol.op.normalize(ol.layer.create_parameter([ITEMS, SIZE], name="item.w", initializer=ol.initializer.normal(deviation=0.1)))
        ranked = of_user @ ol.op.transpose(every, axes=(1, 0))
        recall = ol.metric.top_k_accuracy(ranked, item, 20)
        _, best = ol.layer.top_k(ranked, k=20)

    train, test = make_clicks(rows, seed), make_clicks(2000, seed + 1)
    result = ol.train(cost, train, optimizer=ol.optimizer.SGD(20.0), epochs=1, batch_size=512, progress=False)
    recalls: list[float] = []
    while True:
        recalls.append(float(ol.evaluate({"recall": recall}, test, result)["recall"]))
        print(f"after {result.steps} steps {recalls[-1]:.1%} of the held-out clicks are among the top 20 of {ITEMS} items")
        if recalls[-1] > 0.49 or len(recalls) == epochs:
            break
        result = ol.train(result, train, epochs=len(recalls) + 1, progress=False)

    ol.save_model(best, result.parameters, path)
    print(f"saved {path}, which returns the top 20 items of a user")
    return {"recall": recalls, "item": result.parameters["item.w"].numpy(), "groups": GROUPS}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the clicks, the initial values and the order of the data")
    arguments.add_argument("--epochs", type=int, default=15, help="maximum number of epochs")
    arguments.add_argument("--rows", type=int, default=200_000, help="number of training clicks")
    arguments.add_argument("--path", default="two_tower.safetensors", help="output file")
    main(**vars(arguments.parse_args()))
