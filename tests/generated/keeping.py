"""Cases as files: what once failed stays, whatever the generator makes by then."""

import json
from pathlib import Path

import numpy

import oarlock as ol
from generated.making import Case

__all__ = ["KEPT", "read_case", "write_case"]

KEPT = Path(__file__).parent / "kept"


def write_case(case: Case, path: Path, failure: str) -> None:
    """Write the program as text, with the values it runs on, and what it failed with."""
    arrays = {
        name: {"dtype": str(array.dtype), "shape": array.shape, "data": array.ravel().tolist()} for name, array in case.arrays.items()
    }
    content = {
        "failure": failure.splitlines()[:12],
        "program": case.program.to_text(source=False).splitlines(),
        "arrays": arrays,
        "targets": case.targets,
        "wanted": case.wanted,
        "second": case.second,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_case(path: Path) -> Case:
    content = json.loads(path.read_text(encoding="utf-8"))
    arrays = {name: numpy.array(item["data"], dtype=item["dtype"]).reshape(item["shape"]) for name, item in content["arrays"].items()}
    targets = [(name, weight) for name, weight in content["targets"]]
    return Case(ol.parse_program("\n".join(content["program"])), arrays, targets, content["wanted"], content["second"])
