"""Random numbers as a function of what they are for."""

import numpy
import pytest

from oarlock.runtime.random import key_of, permutation, uniform


@pytest.mark.parametrize("count", [0, 1, 2, 1437, 20_000])
@pytest.mark.parametrize("seed", [0, 7, -3])
def test_a_permutation_is_the_order_of_uniform_numbers_of_its_key(count, seed):
    key = key_of(seed, "order", 2)
    expected = numpy.argsort(uniform((count,), key).numpy(), kind="stable")
    assert numpy.array_equal(permutation(count, key), expected)


def test_the_largest_key_gives_a_permutation_without_a_warning():
    assert sorted(permutation(100, 2**63 - 1)) == list(range(100))
