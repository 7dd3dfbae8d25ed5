"""Which programs are shown to compute each row alone: those that do, by joining rows; and those that do not, by the reason."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from classifiers import digits_classifier, small_classifier
from op.arguments import Arguments, arguments_of, cases_of, compute
from serving.asking import model_of, rowwise_program
from tolerances import CLAIMS

import oarlock as ol
from oarlock.passes.rows import BY_FIRST_AXIS
from oarlock.registry import Case, GradCheck, standard
from oarlock.serving.rows import find_rows
from oarlock.serving.served_model import ServedModel


def program_of(write: Callable[..., Any], *shapes: list[int], dtype: str = "float64") -> ol.Program:
    with ol.Program(seed=0) as program:
        inputs = [ol.layer.data(f"x{number}", shape=shape, dtype=dtype) for number, shape in enumerate(shapes)]
        program.targets["y"] = write(*inputs)
    return program


ALONE: dict[str, tuple[Callable[..., Any], list[list[int]]]] = {
    "relu": (ol.op.relu, [[3]]),
    "linear": (lambda x: ol.layer.fc(x, 4), [[3]]),
    "softmax of logits": (lambda x: ol.layer.softmax(ol.layer.fc(x, 4)), [[3]]),
    "two inputs": (lambda x, y: ol.op.add(x, ol.op.multiply(y, y)), [[3], [3]]),
    "a shared vector": (lambda x: ol.op.multiply(x, ol.layer.create_parameter([3], name="s", dtype="float64")), [[2, 3]]),
    "a mean within rows": (lambda x: ol.op.mean(x, axis=1), [[3]]),
    "a sum along the last axis": (lambda x: ol.op.reduce_sum(x, axis=-1, keepdim=True), [[2, 3]]),
    "parts and together": (lambda x: ol.op.concat(list(ol.op.split(x, sections=2, axis=1)), axis=1), [[4]]),
    "a slice within rows": (lambda x: ol.op.slice(x, axis=1, start=1, stop=3), [[4]]),
    "a transpose within rows": (lambda x: ol.op.transpose(x, axes=(0, 2, 1)), [[2, 3]]),
    "a reshape": (lambda x: ol.op.reshape(x, shape=(-1, 3, 2)), [[6]]),
    "a reshape to rows of rows and back": (
        lambda x: ol.op.reshape(ol.layer.softmax(ol.op.reshape(x, shape=(-1, 3))), shape=(-1, 2, 3)),
        [[2, 3]],
    ),
    "layer norm": (lambda x: ol.layer.layer_norm(x), [[5]]),
    "batch norm, not training": (lambda x: ol.layer.batch_norm(x), [[2, 3]]),
    "dropout, not training": (lambda x: ol.layer.dropout(x, rate=0.5), [[3]]),
    "images": (lambda x: ol.layer.flatten(ol.layer.pool2d(ol.layer.conv2d(x, filters=2, size=3), size=2)), [[1, 6, 6]]),
    "words first, then rows again": (
        lambda x: ol.op.transpose(ol.layer.fc(ol.op.softmax(ol.op.transpose(x, axes=(1, 0, 2))), 3), axes=(1, 0, 2)),
        [[4, 3]],
    ),
    "words and rows as one, and apart again": (
        lambda x: ol.op.transpose(
            ol.op.reshape(ol.layer.fc(ol.op.reshape(ol.op.transpose(x, axes=(1, 0, 2)), shape=(-1, 3)), 5), shape=(4, -1, 5)),
            axes=(1, 0, 2),
        ),
        [[4, 3]],
    ),
    "heads beside the rows": (
        lambda x: ol.op.reshape(ol.op.softmax(ol.op.reshape(x, shape=(-1, 2, 2))), shape=(-1, 3, 4)),
        [[3, 4]],
    ),
    "a roll and a part of each row": (lambda x: ol.op.slice(ol.op.roll(x, shifts=(1,), axes=(1,)), axis=1, start=1), [[4]]),
    "what is shared, for each row": (
        lambda x: ol.op.concat(
            [ol.op.broadcast_to(ol.layer.create_parameter([1, 1, 3], name="c", dtype="float64"), like=[x], shape=("n", 1, 3)), x], axis=1
        ),
        [[2, 3]],
    ),
    "a table by places": (
        lambda x: ol.op.add(
            x, ol.op.gather(ol.layer.create_parameter([9, 3], name="t", dtype="float64"), ol.op.arange(like=[], stop=(4,)))
        ),
        [[4, 3]],
    ),
    "places of each row": (
        lambda x: ol.op.index(
            x, [ol.op.reshape(ol.op.arange(like=[x], stop=("n",)), shape=(-1, 1)), ol.op.arange(like=[], stop=(2,))], axes=(0, 1)
        ),
        [[4, 3]],
    ),
    "padded rows": (lambda x: ol.op.pad(x, before=(0, 1), after=(0, 2), mode="reflect"), [[4]]),
    "images by a grid": (lambda x, grid: ol.op.grid_sample(x, ol.op.tanh(grid)), [[2, 4, 4], [3, 3, 2]]),
    "a choice": (lambda x, y: ol.op.where(ol.op.less(x, y), x, ol.op.square(y)), [[3], [3]]),
    "a sorted row": (lambda x: ol.op.sort(x, axis=1)[0], [[5]]),
    "a constant of the rows": (lambda x: ol.op.add(x, ol.op.full_like(x, value=2.0, dtype="float64")), [[3]]),
}


@pytest.mark.parametrize("name", ALONE)
def test_rows_that_are_alone_may_be_joined(name, tmp_path):
    write, shapes = ALONE[name]
    program = program_of(write, *shapes)
    assert find_rows(program, standard).symbol is not None, find_rows(program, standard).reason
    served = ServedModel("m", model_of(program, tmp_path))
    draw = torch.Generator().manual_seed(0)
    feeds = [
        {f"x{at}": torch.randn([rows, *shape], generator=draw, dtype=torch.float64) for at, shape in enumerate(shapes)}
        for rows in (1, 3, 2)
    ]
    joined, alone = served.run(feeds), [served.run([feed])[0] for feed in feeds]
    for one, other in zip(joined, alone, strict=True):
        assert isinstance(one, dict)
        assert isinstance(other, dict)
        torch.testing.assert_close(one["y"], other["y"], rtol=CLAIMS[0], atol=CLAIMS[1])


NOT_ALONE: dict[str, tuple[Callable[..., Any], list[list[int]], str]] = {
    "a mean over rows": (lambda x: ol.op.add(x, ol.op.mean(x, axis=0)), [[3]], "mean_0 (mean) is not proved to compute rows independently"),
    "a softmax over rows": (
        lambda x: ol.op.transpose(ol.layer.softmax(ol.op.transpose(x, axes=(1, 0))), axes=(1, 0)),
        [[3]],
        "softmax_0 (softmax) is not proved to compute rows independently",
    ),
    "a loss": (lambda x: ol.op.mean(x), [[3]], "mean_0 (mean) is not proved to compute rows independently"),
    "the number of a row": (
        lambda x: ol.op.arange_like(x),
        [[3]],
        "arange_like_0 (arange_like) is not proved to compute rows independently",
    ),
    "rows of a row": (lambda x: ol.op.linear(x, ol.op.transpose(x, axes=(1, 0))), [[3]], "linear_0 (linear) is not proved"),
    "another's row": (lambda x: ol.op.slice(x, axis=0, start=0, stop=1), [[3]], "slice_0 (slice) is not proved"),
    "how many rows there are": (
        lambda x: ol.op.add(x, ol.op.cast(ol.op.size(x, axis=0), dtype="float64")),
        [[3]],
        "size_0 (size) is not proved",
    ),
    "numbers of rows": (
        lambda x: ol.op.add(x, ol.op.cast(ol.op.reshape(ol.op.arange(like=[x], stop=("n",)), shape=(-1, 1)), dtype="float64")),
        [[3]],
        "cast_0 (cast) is not proved",
    ),
    "a part that the number of rows tells": (
        lambda x: ol.op.narrow(x, like=[], axis=1, start=("n",), length=(1,)),
        [[3]],
        "narrow_0 (narrow) is not proved",
    ),
    "places of rows that are numbered otherwise": (
        lambda x: ol.op.index(x, [ol.op.neg(ol.op.arange(like=[x], stop=("n",)))], axes=(0,)),
        [[3]],
        "neg_0 (neg) is not proved",
    ),
    "places of rows from the second on": (
        lambda x: ol.op.index(x, [ol.op.arange(like=[x], start=(1,), stop=("n+1",))], axes=(0,)),
        [[3]],
        "arange_0 (arange) is not proved",
    ),
    "more rows": (lambda x: ol.op.pad(x, before=(1, 0), after=(0, 0)), [[3]], "pad_0 (pad) is not proved"),
    "a roll over rows": (lambda x: ol.op.roll(x, shifts=(1,), axes=(0,)), [[3]], "roll_0 (roll) is not proved"),
    "rows turned over": (lambda x: ol.op.flip(x, axes=(0,)), [[3]], "flip_0 (flip) is not proved"),
    "a sum along rows": (lambda x: ol.op.cumsum(x, axis=0), [[3]], "cumsum_0 (cumsum) is not proved"),
    "sorted rows": (lambda x: ol.op.sort(x, axis=0)[0], [[3]], "sort_0.values (sort) is not proved"),
    "a softmax over words and rows": (
        lambda x: ol.op.softmax(ol.op.reshape(x, shape=(1, -1))),
        [[3]],
        "softmax_0 (softmax) is not proved",
    ),
    "a place of another row": (
        lambda x: ol.op.reshape(ol.op.slice(ol.op.reshape(x, shape=(-1,)), axis=0, start=0), shape=(-1, 3)),
        [[3]],
        "slice_0 (slice) is not proved",
    ),
    "all rows": (lambda x: ol.op.concat([x, x], axis=0), [[3]], "concat_0 (concat) is not proved"),
    "an output of the model alone": (
        lambda x: ol.layer.create_parameter([2], name="p"),
        [[3]],
        "the first dimension of its inputs is not one variable size",
    ),
    "the numbers of some rows": (
        lambda x: ol.op.cast(ol.op.nonzero(ol.op.less(x, x)), dtype="float64"),
        [[]],
        "nonzero_0 (nonzero) is not",
    ),
}


@pytest.mark.parametrize("name", NOT_ALONE)
def test_rows_that_are_not_shown_to_be_alone_are_not_joined(name, tmp_path):
    write, shapes, reason = NOT_ALONE[name]
    program = program_of(write, *shapes)
    found = find_rows(program, standard)
    assert found.symbol is None
    assert found.reason.startswith(reason)
    served = ServedModel("m", model_of(program, tmp_path))
    assert served.joinable({"x0": torch.ones([2, *shapes[0]])}) is None


def test_the_programs_of_the_examples_are_joined():
    for made in (digits_classifier(), small_classifier()):
        made.program.targets["predict"] = made.predict
        assert find_rows(made.program, standard).symbol == "n"
    assert find_rows(rowwise_program(), standard).symbol == "n"


def test_a_loop_is_not_joined():
    with ol.Program() as program:
        words = ol.layer.data("words", shape=[2], batch="t")
        start = ol.layer.data("start", shape=[2], batch=None)
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=start)
            rnn.update_memory(state, ol.op.add(rnn.step_input(words), rnn.previous_memory(state)))
        rnn()
        program.targets["y"] = rnn.final_memory(state)
    assert find_rows(program, standard).symbol is None


def test_inputs_of_other_sizes_beside_the_rows_are_joined_apart(tmp_path):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["t", 2])
        program.targets["y"] = ol.op.reduce_sum(x, axis=1)
    served = ServedModel("m", model_of(program, tmp_path))
    kinds = {served.joinable({"x": torch.ones(rows, t, 2)}).kind for rows, t in ((1, 3), (2, 3), (1, 4))}
    assert len(kinds) == 2
    assert served.joinable({"x": torch.ones(0, 3, 2)}) is None


# What is listed, held to cases

LISTED = sorted(BY_FIRST_AXIS & set(standard.operators))


def test_what_is_listed_is_there():
    assert {"conv2d", "max_pool2d", "average_pool2d", "batch_norm", "cast", "dropout"} <= set(LISTED)


def two_rows(arguments: Arguments, first: str) -> Arguments:
    """The arguments, whose first input has two different rows."""
    return arguments.replaced(lambda slot, tensor: torch.cat([tensor[:1], tensor[-1:].flip(-1)]) if slot == first else tensor)


@pytest.mark.parametrize("name", LISTED)
def test_a_listed_operator_computes_each_index_of_its_first_axis_alone(name):
    operator = standard.get(name)
    first, tried = operator.signature.inputs[0].name, 0
    for _, case in cases_of(operator, Case, GradCheck):
        arguments = arguments_of(operator, case)
        if not arguments.tensors[first][0].ndim or not arguments.tensors[first][0].shape[0]:
            continue
        arguments, tried = two_rows(arguments, first), tried + 1
        whole = compute(operator, arguments, training=False)
        parts = [
            compute(
                operator, arguments.replaced(lambda slot, tensor, at=at: tensor[at : at + 1] if slot == first else tensor), training=False
            )
            for at in (0, 1)
        ]
        for slot, (together,) in whole.items():
            if together.ndim and operator.signature.output(slot).axes[0] == operator.signature.inputs[0].axes[0]:
                torch.testing.assert_close(torch.cat([part[slot][0] for part in parts]), together, rtol=CLAIMS[0], atol=CLAIMS[1])
            else:
                assert name == "batch_norm"
    assert tried
