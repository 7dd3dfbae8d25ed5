"""The messages for a beam search that does not fit: the whole text, of which line 1 is the first of `model.py`."""

import textwrap
from pathlib import Path

import pytest
from user_scripts import last_words

MODEL = """
import oarlock as ol
with ol.Program():
    start = ol.layer.data("start", [4])
    one = ol.layer.data("one", [4], batch=None)
    table = ol.layer.data("table", [6, 6], batch=None)
    def search(step, states, beam_size=3, begin=0, end=1, max_length=9):
        return ol.layer.beam_search(step, states, beam_size=beam_size, begin=begin, end=end, max_length=max_length)
    def step(token, state):
        return ol.op.gather(table, token), state
"""

CALL = (
    "model.py:7 in search      return ol.layer.beam_search(step, states, beam_size=beam_size, begin=begin, end=end, max_length=max_length)"
)


@pytest.fixture
def require(tmp_path: Path):
    """Run the model, then one line more; compare the whole of the error's text."""

    def compare(line: str, expected: str) -> None:
        assert last_words(f"{MODEL}    {line}\n", tmp_path) == textwrap.dedent(expected).lstrip("\n")

    return compare


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("search(step, start, beam_size=0)", "beam_search: beam_size must be an integer >= 1, not 0"),
        ("search(step, start, max_length=True)", "beam_search: max_length must be an integer >= 1, not True"),
        ("search(step, start, begin=-1)", "beam_search: begin is the id of a token, not -1"),
        ("search(step, start, end='stop')", "beam_search: end is the id of a token, not 'stop'"),
        ("search(step, start, end=6)", "beam_search: end is 6, but step returns 6 tokens, numbered from 0"),
    ],
)
def test_numbers_that_are_none(require, line, message):
    require(
        line,
        f"""
        oarlock.ArgumentError: {message}
          {CALL}
        """,
    )


def test_a_step_that_is_a_variable(require):
    require(
        "search(start, start)",
        f"""
        oarlock.ArgumentError: beam_search: step is a function that writes a step, not Var float32['n', 4]
          {CALL}
        """,
    )


def test_no_states(require):
    require(
        "search(step, [])",
        f"""
        oarlock.ArgumentError: beam_search: there are no states, so the number of rows is unknown
          {CALL}
          Try: pass states=start, a variable with a row for each sequence    (oarlock explain ArgumentError)
        """,
    )


def test_states_with_other_numbers_of_rows(require):
    require(
        "search(step, [start, one])",
        f"""
        oarlock.ShapeError: beam_search: state "one" is float32[4], which does not have a row for each sequence
          {CALL}
          states have a row for each of the n sequences: T[n *d]
              "start"   float32[n, 4]   fed; declared at model.py:3
              "one"   float32[4]   fed; declared at model.py:4
        """,
    )


def test_a_step_that_forgets_its_state(require):
    require(
        "search(lambda token, state: ol.op.gather(table, token), start)",
        f"""
        oarlock.ArgumentError: beam_search: step returns 1 value, but must return log-probabilities and 1 state
          {CALL}
          Try: return ol.layer.log_softmax(logits), state    (oarlock explain ArgumentError)
        """,
    )


def test_logarithms_that_are_none(require):
    require(
        "search(lambda token, state: (token, state), start)",
        f"""
        oarlock.ShapeError: beam_search: step returns "full_like_0" as int64[3*n], but log-probabilities are float[3*n, v]
          {CALL}
          a row for each hypothesis, a column for each token
              "full_like_0"   int64[3*n]   from full_like at model.py:7
        """,
    )


def test_a_state_that_changes_its_type(require):
    require(
        "search(lambda token, state: (ol.op.gather(table, token), ol.layer.fc(state, 5)), start)",
        f"""
        oarlock.ShapeError: beam_search: a state is float32[3*n, 4] before the step but float32[3*n, 5] after it
          {CALL}
              "gather_0"   float32[3*n, 4]   from gather at model.py:7
              "fc_0.out"   float32[3*n, 5]   from linear at model.py:10
        """,
    )
