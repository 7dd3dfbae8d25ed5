"""The command that compares lookups with PyTorch's sparse gradients: both sides do the same work, and lines say how long."""

import re

import lookups
import pytest


def test_each_kind_of_step_has_a_line_for_each_table(capsys):
    lookups.main(["--rows", "40,60", "--ids", "16", "--width", "4", "--turns", "2", "--steps", "2"])
    lines = capsys.readouterr().out.splitlines()[2:]
    said = [re.fullmatch(r"\| ([a-z, ]+) \| (\d+) (\| [\d.]+ ){5}\|", line) for line in lines]
    assert [found and found.group(1, 2) for found in said] == [(kind, rows) for rows in ("40", "60") for kind in lookups.KINDS]


def test_tables_that_end_apart_are_no_comparison(monkeypatch):
    _, theirs = lookups.KINDS["sgd"]
    monkeypatch.setitem(lookups.KINDS, "sgd", (lookups.KINDS["lazy adam"][0], theirs))
    with pytest.raises(SystemExit, match=r"^sgd, 40 rows: the tables have moved by .*, and are .* apart$"):
        lookups.compare("sgd", 40, 4, 16, turns=1, steps=1)
