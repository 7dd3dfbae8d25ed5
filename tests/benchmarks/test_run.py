"""The command that compares: peers by turns, medians, ratios, and losses that must agree. Peers here are scripts that calculate nothing."""

import json
import sys

import pytest
import run

PEER = """
import json, sys
if "--list" in sys.argv:
    print(json.dumps({"W1": ["plain", "odd"]}))
elif "odd" in sys.argv:
    sys.exit("no such thing")
else:
    print("noise"); print("RESULT " + json.dumps(%s))
"""


def result(median: float = 2.0, losses: tuple[float, ...] = (3.0, 2.0, 1.0), **said: object) -> dict:
    measured = {"median_ms": median, "first_step_s": 0.5, "rss_peak_mb": 300.0, "rss_import_mb": 220.0, "losses": list(losses)}
    return {"workload": "W1", "peer": "oarlock", "variant": "default", **measured, **said}


def test_the_table_has_medians_and_ratios_of_each_round():
    ours, torch, hand = (4.0, 2.0, 3.0), (2.0, 1.6, 1.5), (1.0, 2.0, 3.0)
    rounds = [
        (result(mine), result(other, peer="torch"), result(bound, peer="hand"), result(peer="jax", error="no module"))
        for mine, other, bound in zip(ours, torch, hand, strict=True)
    ]
    results = [item for items in rounds for item in items]
    compared = run.compare(results, {"W1": 0.5}, "hand")
    assert (compared["W1"].to_best, compared["W1"].to_reference, compared["W1"].to_limit) == (2.0, 1.0, 6.0)
    assert run.details(run.summarize(results)).splitlines() == [
        "W1",
        "  torch      default               1.600 ms a step   first    0.50 s   memory    80 MB",
        "  hand       default               2.000 ms a step   first    0.50 s   memory    80 MB",
        "  oarlock    default               3.000 ms a step   first    0.50 s   memory    80 MB",
        "  jax        default          failed: no module",
    ]
    assert run.table(compared, "hand").splitlines() == [
        "|  | ours, ms | best peer | ours / best | ours / hand | ours / limit | first step, s | memory, MB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| W1 | 3 | torch default 1.6 | 2.00 | 1.00 | 6.00 | 0.50 | 80 |",
        "geometric mean of ours / best, W: 2.00",
        "geometric mean of ours / hand, W: 1.00",
    ]


def test_without_peers_the_table_has_what_we_took():
    results = [result(), result(0.1, workload="I1"), result(0.2, workload="I1", variant="untuned"), result(workload="W2", peer="torch")]
    assert run.table(run.compare(results, {})).splitlines()[2:] == [
        "| W1 | 2 |  |  |  | 0.50 | 80 |",
        "| I1 | 0.1 |  |  |  | 0.50 | 80 |",
    ]


def test_a_variant_that_fails_in_one_round_has_failed():
    results = [result(), {"workload": "W1", "peer": "oarlock", "variant": "default", "error": "killed"}]
    (row,) = run.summarize(results)
    assert row["error"] == "killed"
    assert run.compare(results, {}) == {}


def test_losses_that_differ_are_named():
    rows = run.summarize([result(), result(peer="torch"), result(peer="jax", losses=(3.0, 2.1, float("nan")))])
    assert run.disagreements(rows) == [
        "W1 jax default: loss 1 is 2.1, of others 2",
        "W1 jax default: loss 2 is nan, of others 1",
    ]
    assert run.disagreements(rows[:2]) == []


def test_peers_take_turns_in_processes_of_their_own(tmp_path, monkeypatch, capsys):
    for name, median in (("one", 2.0), ("two", 1.0)):
        (tmp_path / f"{name}.py").write_text(
            PEER % json.dumps({"median_ms": median, "first_step_s": 1.0, "rss_peak_mb": 9.0, "rss_import_mb": 4.0, "losses": [1, 1, 1]})
        )
    peers = {name: [sys.executable, "-S", str(tmp_path / f"{name}.py")] for name in ("one", "two")}
    results = run.run_rounds(peers, ["W1"], "plain", 2, 0.1, 60.0)
    assert [item["peer"] for item in results] == ["one", "two", "two", "one"]
    assert [row["median_ms"] for row in run.summarize(results)] == [1.0, 2.0]
    assert run.run_once(peers["one"], "one", "W1", "odd", 0.1, 60.0)["error"] == "no such thing"
    assert run.run_rounds(peers, ["W2"], "", 1, 0.1, 60.0) == []


@pytest.mark.parametrize("text", ['{"w": {"W1": {"limit_ms": 0.07, "gflop": 1}}}'])
def test_limits_are_milliseconds_by_workload(text, tmp_path):
    path = tmp_path / "limits.json"
    path.write_text(text)
    assert run.read_limits(path) == {"W1": 0.07}
    assert run.read_limits(None) == {}
