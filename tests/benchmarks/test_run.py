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
    measured = {"median_ms": median, "first_step_s": 0.5, "rss_peak_mb": 300.0, "losses": list(losses)}
    return {"workload": "W1", "peer": "oarlock", "variant": "default", **measured, **said}


def test_the_table_has_medians_the_fastest_first_and_ratios():
    results = [result(4.0), result(2.0), result(3.0), result(1.5, peer="torch"), result(peer="jax", error="no module")]
    rows = run.summarize(results)
    assert [(row["peer"], row.get("median_ms")) for row in rows] == [("torch", 1.5), ("oarlock", 3.0), ("jax", None)]
    ratios = run.compare(rows, {"W1": 0.5})
    assert ratios == {"W1": (2.0, 6.0)}
    assert run.table(rows, ratios).splitlines() == [
        "W1   2.00 x the best peer, 6.00 x the limit",
        "  torch      default               1.500 ms a step   first    0.50 s   peak    300 MB",
        "  oarlock    default               3.000 ms a step   first    0.50 s   peak    300 MB",
        "  jax        default          failed: no module",
    ]


def test_a_variant_that_fails_in_one_round_has_failed():
    (row,) = run.summarize([result(), {"workload": "W1", "peer": "oarlock", "variant": "default", "error": "killed"}])
    assert row["error"] == "killed"
    assert run.compare([row], {}) == {}


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
            PEER % json.dumps({"median_ms": median, "first_step_s": 1.0, "rss_peak_mb": 9.0, "losses": [1, 1, 1]})
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
