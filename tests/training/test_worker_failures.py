"""Some of what `python -m worker_failures` does: a job whose worker is killed goes on by itself, to the bits of an unbroken one."""

from pathlib import Path

import pytest
from worker_failures.jobs import Failure, end_of, fault_of

pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="it looks for what is left behind as Linux shows it")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("failures") / "unbroken"
    assert end_of(folder, Failure(), 2, in_shares=True) == ""
    return folder


MORE = Failure("kill", 0, "step", 8), Failure("kill", 0, "save", 6)


@pytest.mark.parametrize(
    "failure",
    [Failure("kill", 1, "save", 3), *(pytest.param(more, marks=pytest.mark.slow) for more in MORE)],
    ids=lambda failure: str(failure).replace(" ", "_"),
)
def test_a_job_whose_worker_is_killed_goes_on_to_the_same_bits(failure, unbroken, tmp_path):
    assert end_of(tmp_path / "run", failure, 2, in_shares=True) == ""
    assert fault_of(tmp_path / "run", unbroken) == ""
