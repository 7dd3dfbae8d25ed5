"""Compare Oarlock with other frameworks on the same work.

    python benchmarks/run.py --workloads W1,W6 --peer torch="python path/to/peer_torch.py" --limits limits.json

A peer is a command that takes `--list`, `--workload`, `--variant` and `--min-time` and prints what `benchmarks/measure.py` does, which is
the first of them. Each run is a process of its own; peers take turns, and in every round another one begins. Step times are medians over
the rounds, and so is memory: what a process takes at its peak beyond its imports. The ratios say how much longer Oarlock takes than the
best peer (the median of the ratios in each round), than the peer that `--reference` names, and than the limit: the time that `--limits` (a
JSON object, `{"w": {"W1": {"limit_ms": 0.07}}}`) grants the arithmetic alone. Peers whose first three losses differ did other work, and
fail the run.
"""

import argparse
import json
import re
import shlex
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

OURS = "oarlock"
AGREEMENT = 1e-4  # how far apart the losses of two peers may be, relatively

Result = dict  # what a RESULT line holds, or workload, peer, variant and error


def variants_of(command: list[str]) -> dict[str, list[str]]:
    """The variants that a peer has of each workload."""
    done = subprocess.run([*command, "--list"], capture_output=True, text=True, check=True)  # noqa: S603  # the caller named it
    return json.loads(done.stdout.splitlines()[-1])


def run_once(command: list[str], peer: str, workload: str, variant: str, min_time: float, timeout: float) -> Result:
    """One process of one peer."""
    arguments = [*command, "--workload", workload, "--variant", variant, "--min-time", str(min_time)]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=timeout)  # noqa: S603
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        result = (
            json.loads(lines[-1].removeprefix("RESULT ")) if lines else {"error": (done.stderr.splitlines() or ["nothing printed"])[-1]}
        )
    except subprocess.TimeoutExpired:
        result = {"error": f"more than {timeout:.0f} s"}
    return {**result, "workload": workload, "peer": peer, "variant": variant}


def run_rounds(
    peers: dict[str, list[str]], workloads: list[str] | None, only: str, rounds: int, min_time: float, timeout: float
) -> list[Result]:
    """Every peer's every variant that `only` matches (`W6:torch:eager`), `rounds` times, by turns."""
    turns: dict[str, list[tuple[str, str]]] = {}
    for peer, command in peers.items():
        for workload, variants in variants_of(command).items():
            if workloads is None or workload in workloads:
                named = [(peer, variant) for variant in variants if re.search(only, f"{workload}:{peer}:{variant}")]
                turns.setdefault(workload, []).extend(named)
    results = []
    for number in range(rounds):
        for workload, order in turns.items():
            first = number % max(1, len(order))
            for peer, variant in order[first:] + order[:first]:
                results.append(run_once(peers[peer], peer, workload, variant, min_time, timeout))
                shown = results[-1].get("error") or f"{results[-1]['median_ms']:.3f} ms"
                print(f"round {number}: {workload} {peer} {variant}: {shown}", file=sys.stderr, flush=True)
    return results


def summarize(results: list[Result]) -> list[Result]:
    """One row for each variant of each workload: medians over the rounds, the fastest first."""
    rows = []
    for key in dict.fromkeys((item["workload"], item["peer"], item["variant"]) for item in results):
        mine = [item for item in results if (item["workload"], item["peer"], item["variant"]) == key]
        good = [item for item in mine if "error" not in item]
        row = dict(zip(("workload", "peer", "variant"), key, strict=True))
        if len(good) < len(mine):
            row["error"] = next(item["error"] for item in mine if "error" in item)
        elif good:
            row |= {name: statistics.median(item[name] for item in good) for name in ("median_ms", "first_step_s")}
            row["memory_mb"] = statistics.median(item["rss_peak_mb"] - item["rss_import_mb"] for item in good)
            row["losses"] = good[0]["losses"]
        rows.append(row)
    order = list(dict.fromkeys(row["workload"] for row in rows))
    return sorted(rows, key=lambda row: (order.index(row["workload"]), row.get("median_ms", float("inf"))))


@dataclass(frozen=True)
class Comparison:
    """One workload: our fastest variant and the peers' fastest, as rows, and how much longer ours takes; None is what was not run."""

    ours: Result
    best: Result | None
    to_best: float | None
    to_reference: float | None
    to_limit: float | None


def compare(results: list[Result], limits: dict[str, float], reference: str | None = None) -> dict[str, Comparison]:
    """For each workload that Oarlock ran. A ratio is the median of those of each round; the reference is no peer."""
    compared = {}
    rows = [row for row in summarize(results) if "median_ms" in row]  # the fastest first
    for workload in dict.fromkeys(row["workload"] for row in rows):
        mine = [row for row in rows if row["workload"] == workload]
        ours = next((row for row in mine if row["peer"] == OURS), None)
        if ours is None:
            continue
        best = next((row for row in mine if row["peer"] not in (OURS, reference)), None)
        bound = next((row for row in mine if row["peer"] == reference), None)
        to_limit = ours["median_ms"] / limits[workload] if workload in limits else None
        compared[workload] = Comparison(ours, best, _ratio(results, ours, best), _ratio(results, ours, bound), to_limit)
    return compared


def _ratio(results: list[Result], ours: Result, theirs: Result | None) -> float | None:
    """The median over the rounds of how much longer we took in each."""
    if theirs is None:
        return None

    def times(row: Result) -> list[float]:
        key = [row[name] for name in ("workload", "peer", "variant")]
        return [item["median_ms"] for item in results if [item[name] for name in ("workload", "peer", "variant")] == key]

    return statistics.median(mine / other for mine, other in zip(times(ours), times(theirs), strict=True))


def disagreements(rows: list[Result]) -> list[str]:
    """Who printed losses that are not those of the others."""
    found = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        having = [row for row in rows if row["workload"] == workload and "losses" in row]
        for number in range(3):
            middle = statistics.median([row["losses"][number] for row in having]) if having else 0.0
            for row in having:
                if not abs(row["losses"][number] - middle) <= AGREEMENT * abs(middle):
                    found.append(
                        f"{workload} {row['peer']} {row['variant']}: loss {number} is {row['losses'][number]:.7g}, of others {middle:.7g}"
                    )
    return found


def details(rows: list[Result]) -> str:
    """Every variant of every workload."""
    lines = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        lines.append(workload)
        for row in (row for row in rows if row["workload"] == workload):
            name = f"  {row['peer']:<10} {row['variant']:<16}"
            if "error" in row:
                lines.append(f"{name} failed: {row['error']}")
            else:
                lines.append(
                    f"{name} {row['median_ms']:>10.3f} ms a step   first {row['first_step_s']:>7.2f} s   memory {row['memory_mb']:>5.0f} MB"
                )
    return "\n".join(lines)


def table(compared: dict[str, Comparison], reference: str | None = None) -> str:
    """A line for each workload, in Markdown, and the geometric means over the workloads of each letter."""
    to_reference = [f"ours / {reference}"] if reference else []
    lines = [_line("", "ours, ms", "best peer", "ours / best", *to_reference, "ours / limit", "first step, s", "memory, MB")]
    lines.append(_line(*["---"] * lines[0].count(" | "), "---"))
    for workload, one in compared.items():
        best = f"{one.best['peer']} {one.best['variant']} {one.best['median_ms']:.3g}" if one.best else ""
        ratios = [one.to_best, *([one.to_reference] if reference else []), one.to_limit]
        said = ["" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
        lines.append(
            _line(workload, f"{one.ours['median_ms']:.3g}", best, *said, f"{one.ours['first_step_s']:.2f}", f"{one.ours['memory_mb']:.0f}")
        )
    for kind in dict.fromkeys(workload[0] for workload in compared):
        for what, name in (("best", "to_best"), *([(reference, "to_reference")] if reference else [])):
            ratios = [getattr(one, name) for workload, one in compared.items() if workload[0] == kind]
            if any(ratio is not None for ratio in ratios):
                mean = statistics.geometric_mean(ratio for ratio in ratios if ratio is not None)
                lines.append(f"geometric mean of ours / {what}, {kind}: {mean:.2f}")
    return "\n".join(lines)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def read_limits(path: Path | None) -> dict[str, float]:
    """Milliseconds by workload."""
    if path is None:
        return {}
    return {name: item["limit_ms"] for name, item in json.loads(path.read_text(encoding="utf-8"))["w"].items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND", help="another framework; may be given several times")
    parser.add_argument("--workloads", help="W1,W6 and so on; all where it is left out")
    parser.add_argument("--only", default="", metavar="REGEX", help="of workload:peer:variant, such as ':(torch:eager|oarlock:default)'")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--min-time", type=float, default=1.5, help="seconds of steps that each process times")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds that a process may take")
    parser.add_argument("--reference", metavar="NAME", help="a peer that is compared by itself, such as a program written by hand")
    parser.add_argument("--limits", type=Path, help="a JSON file")
    parser.add_argument("--out", type=Path, help="where every result is written, as JSON")
    arguments = parser.parse_args()
    peers = {OURS: [sys.executable, str(Path(__file__).with_name("measure.py"))]}
    for peer in arguments.peer:
        name, _, command = peer.partition("=")
        peers[name] = shlex.split(command)
    workloads = arguments.workloads.split(",") if arguments.workloads else None
    results = run_rounds(peers, workloads, arguments.only, arguments.rounds, arguments.min_time, arguments.timeout)
    rows = summarize(results)
    if arguments.out:
        arguments.out.write_text(json.dumps({"summary": rows, "results": results}, indent=1), encoding="utf-8")
    print(details(rows))
    print(table(compare(results, read_limits(arguments.limits), arguments.reference), arguments.reference))
    wrong = disagreements(rows)
    print("\n".join(["losses that differ:", *wrong]) if wrong else f"losses agree to {AGREEMENT:g}")
    return 1 if wrong or any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
