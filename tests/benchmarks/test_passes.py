"""The command that leaves out one pass after another."""

import passes


def test_each_pass_that_applies_is_left_out_by_itself():
    milliseconds, applied, ratios = passes.compare("W1", rounds=2, min_time=0.0)
    assert milliseconds > 0
    assert list(ratios) == ["all", *(name for name, count in applied.items() if count)]
    assert {"fuse_updates", "multi_tensor_updates"} <= ratios.keys()
    assert all(ratio > 0 for ratio in ratios.values())
