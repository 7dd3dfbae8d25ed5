"""Recommend films: predict the rating of a film from the user's profile, and from the genres and the title of the film.

oarlock train examples/recommender.py
"""

import argparse

import numpy

import oarlock as ol

USERS, FILMS, JOBS, AGES = 150, 200, 8, 5
KINDS = ["comedy", "crime", "love", "space", "war", "music"]
TITLE = [
    "the",
    "a",
    "of",
    "night",
    "last",
    "laughing",
    "murder",
    "heart",
    "star",
    "battle",
    "song",
]  # from "laughing" on, one for each genre


def make_ratings(count: int, seed: int) -> tuple[dict[str, object], numpy.ndarray]:
    """Generate ratings from 1 to 5, and the noise-free rating of each film by each user, float64[USERS FILMS].

    They replace MovieLens, which must be downloaded. Preferences depend in part on age and job, in part on the individual user.
    """
    random = numpy.random.default_rng(seed)
    gender, age, job = (random.integers(0, most, USERS) for most in (2, AGES, JOBS))
    taste = random.normal(0, 1.0, (AGES, len(KINDS)))[age] + random.normal(0, 1.0, (JOBS, len(KINDS)))[job]
    taste += random.normal(0, 0.5, (USERS, len(KINDS))) + 0.5 * gender[:, None]
    kinds = [sorted(random.choice(len(KINDS), random.integers(1, 3), replace=False).tolist()) for _ in range(FILMS)]
    titles = [[*random.integers(0, 5, random.integers(1, 4)).tolist(), 5 + row[0]] for row in kinds]
    quality = random.normal(0, 0.5, FILMS)
    liking = numpy.stack([taste[:, row].mean(1) for row in kinds], axis=1) + quality
    whole = numpy.clip(3 + liking, 1, 5)
    user, film = random.integers(0, USERS, count), random.integers(0, FILMS, count)
    rating = numpy.clip(whole[user, film] + random.normal(0, 0.3, count), 1, 5).astype("float32")
    data = {"user": user, "gender": gender[user], "age": age[user], "job": job[user], "film": film}
    return {**data, "kinds": [kinds[number] for number in film], "title": [titles[number] for number in film], "rating": rating}, whole


def embedded(name: str, count: int, size: int = 16) -> ol.Var:
    """Look up a row of a table for each id, float[n size]; for ragged ids, return the sum of the rows."""
    ragged = name in ("kinds", "title")
    ids = ol.layer.data(name, [], dtype="int64", ragged=int(ragged))
    rows = ol.layer.embedding(ids, (count, size), initializer=ol.initializer.normal(deviation=0.1))
    return ol.layer.sequence_pool(rows, "sum") if ragged else rows


def side(parts: list[ol.Var]) -> ol.Var:
    """Combine all features of a user or a film into a vector: float[n 32]."""
    return ol.layer.fc(ol.layer.concat([ol.layer.fc(part, 16) for part in parts], axis=1), 32, act="tanh")


def cosine(x: ol.Var, y: ol.Var) -> ol.Var:
    return ol.op.reduce_sum(ol.op.normalize(x) * ol.op.normalize(y), axis=1)


def main(seed: int = 0, epochs: int = 30, rows: int = 8000, path: str = "recommender.safetensors") -> dict[str, object]:
    """Train until the mean error on held-out ratings is below 0.5; save the model, and return the ratings of all users and films."""
    with ol.Program(seed=seed):
        person = side([embedded("user", USERS), embedded("gender", 2), embedded("age", AGES), embedded("job", JOBS)])
        film = side([embedded("film", FILMS), embedded("kinds", len(KINDS)), embedded("title", len(TITLE))])
        rating = ol.layer.data("rating", [])
        predict = 3.0 + 2.5 * cosine(person, film)
        cost = ol.layer.mse(predict, rating)
        error = ol.metric.root_mean_squared_error(predict, rating)

    data, whole = make_ratings(rows + 1000, seed)
    train, test = ({name: column[part] for name, column in data.items()} for part in (slice(rows), slice(rows, None)))
    result = ol.train(cost, train, optimizer=ol.optimizer.SGD(0.2), epochs=1, batch_size=64, validate=test, show={"error": error})
    errors = [result.history[-1].validation["error"]]
    for epoch in range(2, epochs + 1):
        if errors[-1] < 0.5:
            break
        result = ol.train(result, train, epochs=epoch, validate=test)
        errors.append(result.history[-1].validation["error"])

    ol.save_model(predict, result.parameters, path)
    model = ol.load_model(path)
    asked = {name: column[:400] for name, column in test.items() if name != "rating"}
    print(f"saved {path}; its error is {errors[-1]:.2f}")
    return {"error": errors, "true": whole[test["user"][:400], test["film"][:400]], "told": ol.infer(model, asked)}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the ratings, the initial values and the order of the data")
    arguments.add_argument("--epochs", type=int, default=30, help="maximum number of epochs")
    arguments.add_argument("--rows", type=int, default=8000, help="number of training ratings")
    arguments.add_argument("--path", default="recommender.safetensors", help="output file")
    main(**vars(arguments.parse_args()))
