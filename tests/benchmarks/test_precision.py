"""The commands that measure mixed precision and int8."""

import int8
import mixed_precision
import pytest

import oarlock as ol


def test_both_precisions_learn_alike():
    found = mixed_precision.compare(["float32", "bfloat16"], steps=4, width=16, seed=0)
    assert found["bfloat16"][0] == pytest.approx(found["float32"][0], rel=0.02)
    assert all(milliseconds > 0 for _, milliseconds in found.values())


def test_int8_is_as_accurate_and_smaller():
    model, digits = int8.train(width=96, epochs=2)
    models = [model, ol.quantize(model, "dynamic"), ol.quantize(model, "weights")]
    accuracies = [int8.accuracy(each, digits) for each in models]
    assert accuracies[0] > 0.8
    assert min(accuracies[1:]) > accuracies[0] - 0.01
    assert max(map(int8.kibibytes, models[1:])) < 0.5 * int8.kibibytes(model)
    assert next(ratio for _, ratio in int8.times(models, rows=2, rounds=1)) == 1.0
