"""The command that compares the steps of two checkouts: here of one with itself."""

import re

import pytest
import turns


def test_two_checkouts_take_turns(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["turns.py", str(turns.HERE), "--workloads", "I1", "--seconds", "0.2", "--rounds", "1"])
    turns.main()
    line, last = capsys.readouterr().out.splitlines()
    said = re.fullmatch(r" +I1 +([\d.]+) ms here +([\d.]+) ms there +([\d.]+)  fastest ([\d.]+)", line)
    here, there, ratio, fastest = map(float, said.groups())
    assert here > 0
    assert there > 0
    assert last == f"geometric mean of 1: {ratio:.3f}  fastest {fastest:.3f}"


def test_a_checkout_that_cannot_run_is_told(tmp_path):
    with pytest.raises(RuntimeError, match="^the process of .* ended$"):
        turns.compare("I1", tmp_path, 0.1)
