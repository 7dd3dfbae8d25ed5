"""Sizes, attributes and settings that NumPy computed are those that Python has."""

import numpy
import pytest

import oarlock as ol

four, half = numpy.int64(4), numpy.float32(0.5)


def text_of(write) -> str:
    with ol.Program() as program:
        images = ol.layer.data("images", [4, 8, 8])
        write(images, ol.layer.data("ids", [], dtype="int64"))
    return program.to_text(source=False)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, ids, four, half: ol.layer.data("more", [four]),
        lambda x, ids, four, half: ol.layer.fc(x, four),
        lambda x, ids, four, half: ol.layer.conv2d(x, four, (four, four)),
        lambda x, ids, four, half: ol.layer.max_pool2d(x, four),
        lambda x, ids, four, half: ol.layer.embedding(ids, (four, four), padding_index=four - 1),
        lambda x, ids, four, half: ol.layer.nce(ol.layer.fc(ol.op.flatten(x), 3), ids, four, samples=four),
        lambda x, ids, four, half: ol.layer.create_parameter([four], name="own"),
        lambda x, ids, four, half: ol.layer.dropout(x, half),
        lambda x, ids, four, half: ol.op.reshape(x, [-1, four]),
        lambda x, ids, four, half: ol.op.full(shape=(four,), value=half, dtype="float32"),
        lambda x, ids, four, half: ol.op.reduce_sum(x, axis=(four - 1, four - 2), keepdim=four == four),
        lambda x, ids, four, half: ol.optimizer.Adam(half, weight_decay=half, accumulate=four).minimize(ol.layer.mean(ol.layer.fc(x, 1))),
        lambda x, ids, four, half: ol.optimizer.SGD(ol.optimizer.schedule.StepDecay(half, four)).minimize(ol.layer.mean(ol.layer.fc(x, 1))),
    ],
)
def test_a_program_is_the_same_with_numbers_of_numpy(write):
    expected = text_of(lambda x, ids: write(x, ids, 4, 0.5))
    assert text_of(lambda x, ids: write(x, ids, four, half)) == expected
    assert ol.parse_program(expected).to_text(source=False) == expected


def test_what_is_no_number_is_still_refused():
    with pytest.raises(ol.ArgumentError, match="fc: size must be an integer >= 1, not 4.0"):
        text_of(lambda x, ids: ol.layer.fc(x, numpy.float64(4.0)))
    with pytest.raises(ol.ArgumentError, match="rate must be float"):
        text_of(lambda x, ids: ol.layer.dropout(x, numpy.bool_(True)))
    with pytest.raises(ol.ArgumentError) as raised:
        ol.layer.data("x", shape=784)  # type: ignore[arg-type]
    assert raised.value.message == '"x": a shape is a list of sizes, not 784'
