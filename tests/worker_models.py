"""Models whose rows workers share, each with its optimizer, and batches for them.

Each model takes `accumulate`, that of its optimizer. `MODELS` has all of them, with how a worker's rows of a batch are drawn.
"""

from collections.abc import Callable, Sequence

import numpy

import oarlock as ol

__all__ = ["MODELS", "batches_of", "branches", "digits", "gpt", "looping", "of_classes", "of_sentences", "of_text", "ragged"]


def batches_of(make: Callable[[numpy.random.Generator, int], dict], sizes: Sequence[Sequence[int]]) -> list[list[dict]]:
    """For each batch, the feeds of the workers, which have as many rows as `sizes` says."""
    random = numpy.random.default_rng(0)
    return [[make(random, size) for size in each] for each in sizes]


def of_classes(random: numpy.random.Generator, rows: int) -> dict:
    return {"x": random.normal(size=(rows, 8)), "y": random.integers(0, 3, size=rows)}


def of_sentences(random: numpy.random.Generator, rows: int) -> dict:
    words = [random.integers(0, 11, size=random.integers(0, 6)) for _ in range(rows)]
    return {"words": words, "y": random.integers(0, 3, size=rows)}


def of_text(random: numpy.random.Generator, rows: int) -> dict:
    return {name: random.integers(0, 9, size=(rows, 5)) for name in ("ids", "next")}


def digits(accumulate: int = 1) -> ol.Program:
    """Batch normalization and dropout: statistics of all rows, and random numbers by the number of a row."""
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        hidden = ol.op.dropout(ol.op.relu(ol.layer.batch_norm(ol.layer.fc(x, 6, bias=False))), 0.5)
        logits = ol.layer.fc(hidden, 3)
        cost = ol.layer.mean(ol.op.softmax_with_cross_entropy(logits, y))
        ol.optimizer.Adam(1e-2, accumulate=accumulate).minimize(cost)
        program.targets = {"loss": cost, "accuracy": ol.metric.accuracy(logits, y)}
    return program


def branches(accumulate: int = 1) -> ol.Program:
    """Rows that take two ways, some of them on one worker alone."""
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        networks = ol.ifelse()
        with networks.true_block():
            networks.output(ol.layer.fc(x, 3))
        with networks.false_block():
            networks.output(ol.layer.fc(ol.op.dropout(ol.layer.fc(x, 5, act="tanh"), 0.3), 3))
        cost = ol.layer.cross_entropy(networks(y < 1), y)
        ol.optimizer.Momentum(0.1, 0.9, accumulate=accumulate).minimize(cost)
        program.targets = {"loss": cost}
    return program


def ragged(accumulate: int = 1) -> ol.Program:
    """A recurrent network over sentences of any lengths, none too."""
    with ol.Program(seed=0) as program:
        words, y = ol.layer.data("words", [], dtype="int64", ragged=1), ol.layer.data("y", [], dtype="int64")
        vectors = ol.layer.embedding(words, (11, 4), dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            word = rnn.step_input(vectors)
            state = rnn.memory(shape=[5])
            after = ol.layer.fc(ol.layer.concat([word, rnn.previous_memory(state)], axis=1), 5, act="tanh")
            rnn.update_memory(state, after)
            rnn.output(after)
        logits = ol.layer.fc(ol.layer.sequence_pool(rnn(), "last"), 3)
        cost = ol.layer.cross_entropy(logits, y)
        ol.optimizer.RMSProp(1e-2, accumulate=accumulate).minimize(cost)
        program.targets = {"loss": cost}
    return program


def looping(accumulate: int = 1) -> ol.Program:
    """A loop as long as a mean of all rows says."""
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        state = ol.layer.fc(x, 4)
        loop = ol.while_loop(ol.layer.mean(ol.op.square(state)) > 0.5, max_trips=9)
        with loop.block():
            after = ol.layer.fc(state, 4, act="tanh")
            loop.carry(state, after)
            loop.update_condition(ol.layer.mean(ol.op.square(after)) > 0.5)
        cost = ol.layer.cross_entropy(ol.layer.fc(loop(), 3), y)
        ol.optimizer.Momentum(0.01, 0.9, accumulate=accumulate).minimize(cost)
        program.targets = {"loss": cost}
    return program


def gpt(accumulate: int = 1) -> ol.Program:
    """A transformer of characters, with clipped gradients and a schedule."""
    with ol.Program(seed=0) as program:
        ids, following = (ol.layer.data(name, [5], dtype="int64") for name in ("ids", "next"))
        x = ol.layer.embedding(ids, (9, 8), dtype="float64")
        x = ol.layer.learned_positions(x, 5)
        x = ol.layer.transformer_encoder(x, layers=2, heads=2, dropout=0.1, act="gelu", norm_first=True, final_norm=True, causal=True)
        cost = ol.layer.cross_entropy(ol.layer.fc(x, 9), following)
        rate = ol.optimizer.schedule.CosineDecay(1e-2, 20)
        clip = ol.optimizer.ClipByGlobalNorm(1.0)
        ol.optimizer.Momentum(rate, 0.9, weight_decay=0.1, clip=clip, accumulate=accumulate).minimize(cost)
        program.targets = {"loss": cost}
    return program


MODELS: dict[str, tuple[Callable[..., ol.Program], Callable[[numpy.random.Generator, int], dict]]] = {
    "digits": (digits, of_classes),
    "gpt": (gpt, of_text),
    "ragged": (ragged, of_sentences),
    "branches": (branches, of_classes),
    "looping": (looping, of_classes),
}
