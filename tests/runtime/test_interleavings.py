"""A part of the interleavings: `python -m interleavings` plays more."""

import pytest
from interleavings.playing import play

import oarlock as ol
from oarlock.runtime.variable import Variable


@pytest.mark.parametrize("number", range(25))
def test_nothing_that_is_held_changes_and_weights_are_right(number):
    done, failure = play(0, number)
    assert failure is None, f"{done}: {failure}"


def failures(numbers=12):
    return [number for number in range(numbers) if play(0, number)[1] is not None]


def test_a_run_that_writes_over_what_was_lent_is_noticed(monkeypatch):
    monkeypatch.setattr(Variable, "alone", lambda variable, value: value)
    assert failures()


def test_a_step_that_fails_and_lends_nothing_to_its_traceback_is_noticed(monkeypatch):
    monkeypatch.setattr(ol.runtime.step._Planned, "_lend_all", lambda step: step._lease.end())
    assert failures()
