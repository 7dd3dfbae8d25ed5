"""The messages for grouping rows in the step of a ragged loop, where only some of them are left: the whole text."""

import textwrap
from pathlib import Path

import pytest
from user_scripts import last_words

MODEL = """
import oarlock as ol
with ol.Program() as program:
    docs = ol.layer.data("docs", [1], ragged=2)
    each = ol.layer.data("each", [1])
    rnn = ol.rnn()
    with rnn.step():
        w = rnn.step_input(docs)
        {line}
    y = rnn()
"""

IFELSE = """ie = ol.ifelse()
        with ie.true_block():
            ie.output(ol.layer.sequence_pool(w, "sum"))
        with ie.false_block():
            ie.output(each * 1.0)
        rnn.output(ol.op.reduce_sum(ie(each > 0.0)))"""


GROUPS = "which groups all docs.s1 rows"


@pytest.mark.parametrize(
    ("line", "operator", "code"),
    [
        ('rnn.output(ol.op.reduce_sum(ol.layer.sequence_pool(w, "sum")))', "sequence_sum", None),
        ("rnn.output(ol.layer.sequence_expand(each, w))", "sequence_expand", None),
        ("rnn.output(ol.layer.sequence_softmax(w))", "sequence_softmax", None),
        (IFELSE, "sequence_elements", (13, "    rnn.output(ol.op.reduce_sum(ie(each > 0.0)))")),
    ],
)
def test_rows_of_a_step_are_not_grouped_as_all_rows_are(line: str, operator: str, code: tuple[int, str] | None, tmp_path: Path):
    number, text = code or (8, f"    {line}")
    assert last_words(MODEL.format(line=line), tmp_path) == textwrap.dedent(
        f"""
        oarlock.ShapeError: rnn: {operator} reads "docs.splits.0", {GROUPS}, but a step only has the rows that still have a step
          model.py:{number}  {text}
          a step orders rows by length, longest first, without those that have ended; they are not grouped
              "docs.splits.0"   int64[n+1]   fed; declared at model.py:3
          Try: group them before the loop, or group the results of the loop    (oarlock explain ShapeError)
        """
    ).lstrip("\n")
