"""The command that compares steps of the trainer with those of the bare prepared program."""

import re

import training_overhead


def test_the_trainer_and_the_bare_program_take_turns_with_checkpoints_and_without(monkeypatch, capsys):
    arguments = ["training_overhead.py", "--models", "digits", "--seconds", "0.1", "--rounds", "1"]
    monkeypatch.setattr("sys.argv", arguments)
    training_overhead.main()
    lines = capsys.readouterr().out.splitlines()
    pattern = r" +digits +(.+?) +([\d.]+) ms +([\d.]+) ms bare +([\d.]+) +sums ([\d.]+) +processor ([\d.]+) +decile ([\d.]+)"
    said = [re.fullmatch(pattern, line) for line in lines]
    assert [line and line[1] for line in said] == ["trained", "with checkpoints"]
    assert all(float(number) > 0 for line in said if line for number in line.groups()[1:])
