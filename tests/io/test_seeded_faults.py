"""The tests of the verifier are tested too: with a rule broken, they fail. `python -m faults` breaks them all."""

from pathlib import Path

import pytest
from faults.catching import is_caught, without_fault
from faults.seeded import FAULTS

import oarlock


@pytest.mark.parametrize("file", ["proto/prescan.py"])
def test_a_broken_rule_is_noticed(file):
    assert is_caught(next(fault for fault in FAULTS if fault.file == file))


def test_a_faithful_copy_passes():
    assert not is_caught(without_fault(("proto",)))


def test_every_fault_stands_where_it_says():
    package = Path(oarlock.__file__).parent
    assert [fault for fault in FAULTS if fault.text not in (package / fault.file).read_text(encoding="utf-8")] == []


def test_there_are_many():
    assert len(FAULTS) >= 80
