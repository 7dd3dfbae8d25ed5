"""The command that runs tests under other settings: `python -m settings`."""

import pytest
from settings import FAST, ROOT, SETTINGS, environment, run_tests

SHOWN = """
import os
import torch

def test_what_it_is_given():
    print({name: os.environ.get(name) for name in %r}, torch.backends.cpu.get_cpu_capability(), torch.get_num_threads())
    raise AssertionError
"""


def test_settings_are_those_that_change_how_kernels_round():
    assert list(SETTINGS.values()) == [
        {"ATEN_CPU_CAPABILITY": "default"},
        {"ATEN_CPU_CAPABILITY": "avx2"},
        {"MKL_ENABLE_INSTRUCTIONS": "AVX2"},
        {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
        {"MKL_CBWR": "COMPATIBLE"},
        {"ONEDNN_MAX_CPU_ISA": "SSE41"},
        {"OMP_NUM_THREADS": "1"},
        {"OMP_NUM_THREADS": "2"},
    ]


@pytest.mark.parametrize("setting", ["default", "two threads"])
def test_tests_are_run_with_one_setting_and_what_fails_is_told(setting, tmp_path, monkeypatch):
    for variables in SETTINGS.values():
        for name in variables:
            monkeypatch.setenv(name, "of another process")
    names = sorted({name for variables in SETTINGS.values() for name in variables})
    path = tmp_path / "test_shown.py"
    path.write_text(SHOWN % names)
    outcome = run_tests(setting, [str(path)])
    given = {name: {"OMP_NUM_THREADS": "1", **SETTINGS[setting]}.get(name) for name in names}
    assert not outcome.passed
    assert f"{given} " in outcome.summary
    assert (" DEFAULT 1\n" if setting == "default" else " 2\n") in outcome.summary
    assert outcome.seconds > 0


def test_tests_that_pass_are_told_in_a_line(tmp_path):
    path = tmp_path / "test_nothing.py"
    path.write_text("def test_nothing():\n    pass\n")
    outcome = run_tests("avx2", [str(path)])
    assert outcome.passed
    assert outcome.summary.startswith("1 passed in ")


def test_nothing_else_is_changed(monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert environment("MKL AVX2")["PYTHONHASHSEED"] == "7"


def test_the_tests_that_compare_bits_are_there():
    assert [path for path in FAST if not (ROOT / path.partition("::")[0]).is_file()] == []
