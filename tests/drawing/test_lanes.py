"""Lanes lead from what defines a value to all that read it, without a gap, and never two in one place."""

from random import Random

import pytest

from oarlock.drawing.lanes import ABOVE, Lanes, assign_lanes


def test_a_chain_is_one_straight_line():
    lanes, count = assign_lanes([[], ["a"], ["b"]], {"a": 0, "b": 1})
    assert lanes == [Lanes(0, writes=[0]), Lanes(0, reads=[0], writes=[0]), Lanes(0, reads=[0])]
    assert count == 1


def test_a_value_that_is_read_twice_goes_past_the_first_reader():
    lanes, count = assign_lanes([[], ["a"], ["a", "b"]], {"a": 0, "b": 1})
    assert lanes == [Lanes(0, writes=[0]), Lanes(1, through=[0], reads=[0], writes=[1]), Lanes(0, reads=[0, 1])]
    assert count == 2


def test_values_that_go_one_way_share_a_lane():
    lanes, count = assign_lanes([[], ["a", "b", "c"]], {"a": 0, "b": 0, "c": 0})
    assert lanes == [Lanes(0, writes=[0]), Lanes(0, reads=[0])]
    assert count == 1


def test_a_value_from_outside_comes_from_above():
    lanes, _ = assign_lanes([["a"], ["b"]], {"a": ABOVE, "b": ABOVE})
    assert lanes == [Lanes(0, through=[1], reads=[0]), Lanes(1, reads=[1])]


def test_what_nobody_defines_here_has_no_lane():
    assert assign_lanes([["parameter"]], {}) == ([Lanes()], 1)


@pytest.mark.parametrize("seed", range(30))
def test_lines_have_no_gaps_and_no_place_in_common(seed):
    random = Random(seed)
    count = random.choice([3, 20, 120])
    defined = {f"{number}.{part}": number for number in range(ABOVE, count) for part in range(random.choice([0, 1, 1, 3]))}
    reads = [
        random.sample(before := [name for name, first in defined.items() if first < number], min(len(before), random.choice([0, 1, 2, 5])))
        for number in range(count)
    ]
    lanes, used = assign_lanes(reads, defined)
    assert used <= 11
    below: set[int] = set(lanes[0].through + lanes[0].reads)
    for lane in lanes:
        assert set(lane.through + lane.reads) == below
        assert lane.dot not in lane.through
        assert not set(lane.through) & set(lane.writes)
        assert len({*lane.writes}) == len(lane.writes)
        assert len({*lane.reads}) == len(lane.reads)
        assert all(0 <= number < used for number in (lane.dot, *lane.through, *lane.reads, *lane.writes))
        below = set(lane.through + lane.writes)
    assert not below


def test_near_readers_are_drawn_where_far_ones_would_take_all_lanes():
    far = {f"far{number}": 0 for number in range(30)}
    reads = [[], *([f"near{number - 1}"] if number else [] for number in range(60)), *([name] for name in far)]
    lanes, _ = assign_lanes(reads, {**far, **{f"near{number}": number + 1 for number in range(60)}})
    assert all(lane.reads for lane in lanes[2:61])
