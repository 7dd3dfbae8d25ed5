"""Garbage is not looked for while plans are made."""

import gc

import pytest

import oarlock as ol
from oarlock.garbage_collection import collection_paused


@pytest.fixture
def generations():
    """The generations that were looked through, as they are."""
    found: list[int] = []

    def note(phase: str, information: dict[str, int]) -> None:
        if phase == "start":
            found.append(information["generation"])

    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)


def test_nothing_is_looked_through_while_it_is_paused(generations):
    with collection_paused():
        kept = [[] for _ in range(10_000)]
        assert generations == []
    kept += [[] for _ in range(10_000)]
    assert generations != []


def test_what_the_caller_turned_off_stays_off():
    gc.disable()
    try:
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_goes_on_after_an_error():
    with pytest.raises(ValueError, match="within"), collection_paused(), collection_paused():
        raise ValueError("within")
    assert gc.isenabled()


def test_a_plan_is_made_without(generations):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["n", 4], dtype="float32")
        for _ in range(30):
            x = ol.layer.fc(x, 4, act="tanh")
    scope = ol.Scope()
    ol.init(program, scope)
    gc.collect()
    generations.clear()
    ol.Executor().prepare(program, [x], scope=scope)
    assert len(generations) <= 1  # when all is made, it is looked through once
