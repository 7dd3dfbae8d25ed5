"""The good files: small programs that between them use every part of the format."""

from functools import cache

from sample_programs import nested_loops

import oarlock as ol
from fuzz.draft import Draft
from oarlock.ir.program import Training
from oarlock.proto import program_pb2 as wire

__all__ = ["SEEDS", "draft_of"]


def digits() -> ol.Program:
    """A small reader of digits in training: convolution, pooling, dropout, a cost, an accuracy, Adam."""
    with ol.Program(seed=3) as program:
        image = ol.layer.data("image", shape=[1, 4, 4])
        label = ol.layer.data("label", shape=[], dtype="int64")
        hidden = ol.layer.pool2d(ol.layer.conv2d(image, filters=2, size=3, padding=1, act="relu"), size=2)
        logits = ol.layer.fc(ol.layer.dropout(ol.layer.flatten(hidden), rate=0.25), 3, name="logits")
        cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(logits, label))
        program.targets |= {"cost": cost, "accuracy": ol.layer.accuracy(ol.layer.softmax(logits), label)}
        ol.optimizer.Adam(0.01).minimize(cost)
    program.training = Training(batch_size=2, epochs=1)
    return program


def recurrent() -> ol.Program:
    """A loop with a memory, a capture and its gradient; an input that carries its value."""
    with ol.Program(seed=5) as program:
        xs = ol.layer.data("xs", shape=[2], batch="t")
        start = ol.layer.data("start", value=[0.5, -0.5], batch=None)
        loop = ol.rnn()
        with loop.step():
            x = loop.step_input(xs)
            memory = loop.memory(init=start)
            state = ol.layer.fc(ol.op.concat([x, loop.previous_memory(memory)]), 2, act="tanh", name="cell")
            loop.update_memory(memory, state)
            loop.output(state)
        cost = ol.op.reduce_sum(loop(), name="cost")
        program.targets["cost"] = cost
        ol.optimizer.SGD(0.1).minimize(cost)
    return program


def inference() -> ol.Program:
    """The program that predicts, pruned: no gradient, no tail."""
    program = digits()
    return ol.prune(program, {"predict": program.targets["accuracy"]})


def ragged() -> ol.Program:
    """Rows of rows of words, pooled twice, joined with rows that are carried, in training."""
    with ol.Program(seed=7) as program:
        words = ol.layer.data("words", [], dtype="int64", ragged=2)
        carried = ol.layer.data("carried", value=ol.Ragged.from_lists([[[1.0, 2.0]], []]))
        hidden = ol.layer.sequence_pool(ol.layer.embedding(words, (5, 2)), "max")
        joined = ol.layer.sequence_concat(ol.layer.fc(hidden, 2), carried)
        weights = ol.layer.sequence_softmax(joined)
        padded = ol.layer.sequence_pad(weights * joined, fill=1.0)
        cost = ol.layer.mean(ol.layer.sequence_pool(ol.layer.sequence_unpad(padded, joined), "last"), name="cost")
        program.targets["cost"] = cost
        ol.optimizer.SGD(0.1).minimize(cost)
    return program


SEEDS = {"digits": digits, "recurrent": recurrent, "nested": nested_loops, "inference": inference, "ragged": ragged}


@cache
def _parts(name: str) -> tuple[bytes, dict[str, tuple[str, list[int], bytes]]]:
    program = SEEDS[name]()
    scope = ol.init(program, ol.Scope())
    names = {"float32": "F32", "int64": "I64", "float64": "F64"}
    tensors = {}
    for var in program.persistables():
        value = scope[var.name].numpy()
        tensors[var.name] = (names[value.dtype.name], list(value.shape), value.tobytes())
    return program.to_bytes(), tensors


def draft_of(name: str) -> Draft:
    """A good file, to be spoiled."""
    data, tensors = _parts(name)
    return Draft(wire.ProgramFile.FromString(data), dict(tensors))
