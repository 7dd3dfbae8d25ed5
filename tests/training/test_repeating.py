"""A run repeated on one machine, with one setting, ends in the same bits: in one process or another, wherever values come to lie.

The sizes fit no vector of a processor, so that libraries of products have ends to treat otherwise.
"""

import hashlib

import numpy
import pytest
import torch
from processes import run_python

import oarlock as ol

STEPS = 4
EXECUTORS = {"by a plan": {}, "without passes": {"passes": ()}, "by the interpreter": {"interpret": True}}


def network():
    """A recurrent cell over rows of an image, after a convolution: products in loops, of images, and of parameters as they are updated."""
    with ol.Program(seed=5) as program:
        image = ol.layer.data("image", shape=[1, 9, 7])
        label = ol.layer.data("label", shape=[], dtype="int64")
        hidden = ol.layer.conv2d(image, filters=3, size=3, padding=1, act="relu")
        rows = ol.op.transpose(ol.op.reshape(hidden, shape=[-1, 27, 7]), axes=(1, 0, 2))
        total, rnn = ol.op.reduce_sum(rows, axis=0), ol.rnn()
        with rnn.step():
            memory = rnn.memory(init=total)
            state = ol.layer.fc(rnn.step_input(rows), 7, act="tanh", name="given")
            state = ol.op.tanh(state + ol.layer.fc(rnn.previous_memory(memory), 7, bias=False, name="kept"))
            rnn.update_memory(memory, state)
            rnn.output(state)
        states = rnn()
        cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(ol.layer.fc(rnn.final_memory(memory), 5), label))
        cost = cost + ol.op.mean(ol.op.square(states))
        ol.optimizer.SGD(0.1).minimize(cost)
        program.targets["cost"] = cost
    return program


def feed(step, *, beyond=0):
    """A batch of 13 images, in memory of NumPy's that begins so many bytes beyond what it would begin at."""
    random = numpy.random.default_rng(step)
    drawn = random.normal(size=(13, 1, 9, 7)).astype("float32")
    memory = numpy.empty(drawn.nbytes + beyond, dtype="uint8")
    image = memory[beyond:].view("float32").reshape(drawn.shape)
    image[...] = drawn
    return {"image": image, "label": random.integers(0, 5, size=13)}


def trained(options, *, beyond=0, between=lambda step: None):
    """The digest of all costs and parameters of some steps."""
    program = network()
    scope = ol.init(program, ol.Scope())
    executor = ol.Executor(**options)
    digest = hashlib.sha256()
    for step in range(STEPS):
        between(step)
        digest.update(executor.run(program, feed(step, beyond=beyond), ["cost"], scope=scope, training=True)[0].tobytes())
    for name in sorted(scope):
        digest.update(scope[name].numpy().tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("options", list(EXECUTORS.values()), ids=list(EXECUTORS))
def test_a_training_that_is_repeated_gives_the_same_bits_wherever_memory_is_free(options):
    held = []

    def hold(step):
        """Memory of many sizes, every other piece of which is free again."""
        pieces = [torch.empty(random.integers(1, 5000)) for _ in range(200)]
        held.extend(pieces[::2])

    random = numpy.random.default_rng(0)
    expected = trained(options)
    assert trained(options) == expected
    assert trained(options, between=hold) == expected


@pytest.mark.parametrize("options", list(EXECUTORS.values()), ids=list(EXECUTORS))
def test_bits_do_not_depend_on_where_an_array_that_is_fed_begins(options):
    expected = trained(options)
    for beyond in (4, 8, 20, 64):
        assert trained(options, beyond=beyond) == expected


def test_another_process_with_the_same_setting_gives_the_same_bits(tmp_path):
    code = "import sys; sys.path[:0] = sys.argv[1:]\nfrom training import test_repeating\nprint(test_repeating.trained({}))"
    folder = __file__.rpartition("/training/")[0]
    assert run_python(code, tmp_path, folder).strip() == trained({})
