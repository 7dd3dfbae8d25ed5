"""No value that is fed, stored or made ends the process, and none makes an operator raise what is none of our errors."""

from hostile_values.children import run
from hostile_values.trial import EXECUTORS


def test_hostile_values_end_in_results_or_errors_of_ours(tmp_path):
    tally = run(0, range(100), tmp_path)
    assert tally.failures == []
    assert tally.signals == 0
    assert tally.trials == 100
    assert set(tally.outcomes) > {"ran", "KernelError", "ShapeError"}, "the values are hostile, yet not all of them"
    assert sum(tally.outcomes.values()) > 80 * len(EXECUTORS)
