"""Each row of the seeds' feature list is claimed by a test, and no test claims an unknown row."""

import ast
import functools
from pathlib import Path

TESTS = Path(__file__).parent.parent
COUNTS = {"A": 41, "B": 53, "F": 22, "E": 19, "N": 24, "C": 30}
ROWS = {f"{document}{number}" for document, count in COUNTS.items() for number in range(1, count + 1)}


def is_mission(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.mission"


def claims_of(source: str) -> list[list[str]]:
    """Return the rows that each test of a file claims in its decorators."""
    return [
        [ast.literal_eval(row) for mark in node.decorator_list if is_mission(mark) for row in mark.args]  # type: ignore[attr-defined]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


@functools.cache
def claims() -> dict[str, list[list[str]]]:
    """Return the claimed rows of each test, by file."""
    return {path.relative_to(TESTS).as_posix(): claims_of(path.read_text(encoding="utf-8")) for path in sorted(TESTS.rglob("test_*.py"))}


def test_every_row_is_claimed_by_a_test_and_every_claim_is_of_a_row():
    claimed = {row for found in claims().values() for rows in found for row in rows}
    assert len(ROWS) == 189
    assert sorted(ROWS - claimed) == []
    assert sorted(claimed - ROWS) == []


def test_no_test_claims_more_than_three_rows():
    assert [(file, rows) for file, found in claims().items() for rows in found if len(rows) > 3] == []


def test_a_mark_counts_where_it_decorates_a_test():
    source = """
@pytest.mark.mission("B1", "B2")
@pytest.mark.parametrize("x", [1])
def test_one(x): ...

@pytest.mark.mission("B3")
def helper(): ...

def test_two(): ...
"""
    assert claims_of(source) == [["B1", "B2"], []]
