"""The examples of layers, as the generated reference shows them: each runs, and its results have the declared types."""

import importlib
import re
import runpy
from pathlib import Path

import numpy
import pytest

import oarlock as ol

REFERENCE = runpy.run_path(str(Path(__file__).resolve().parents[2] / "docs" / "generate.py"))  # makes reference_pages importable
LAYERS = vars(importlib.import_module("reference_pages.layers"))
PAGE = REFERENCE["make_page"]("docs/reference/layers.md")
EXAMPLES = dict(re.findall(r"^### ol\.layer\.(\w+)\n.*?^```python\n(?!def )(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def feed(program: ol.Program) -> dict[str, object]:
    """Values for those inputs that the program still has."""
    numbers = numpy.random.default_rng(0)
    sizes = {"n": 2, "t": 3, "s": 7}
    found: dict[str, object] = {}
    for var in program.main.inputs:
        shape = tuple(sizes.get(size, size) for size in var.shape)
        if var.name == "words":
            found[var.name] = [numbers.standard_normal((length, 8)).astype("float32") for length in (4, 1)]
        elif var.name == "lengths":
            found[var.name] = numpy.array([3, 1])
        elif var.dtype is ol.DType.INT64 and var.row_splits_of is None:
            found[var.name] = numbers.integers(1, 8, shape)
        elif var.row_splits_of is None:
            found[var.name] = numbers.standard_normal(shape).astype("float32")
    return found


def test_each_layer_has_an_example():
    assert sorted(EXAMPLES) == sorted(LAYERS["public_layers"]())


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name):
    names: dict[str, object] = {"ol": ol}
    with ol.Program() as program:
        exec(LAYERS["GIVEN"], names)
        given = set(names)
        exec(EXAMPLES[name], names)
    inputs = {var.name for var in program.main.inputs}
    results = {key: value for key, value in names.items() if key not in given | {"__builtins__"} and value.name not in inputs}
    assert results, "it gives something a name"
    for key, var in results.items():
        assert f"\n{key}: {var.type_text}\n" in PAGE or var.parameter
    fetched = [var for var in results.values() if not var.parameter]
    values = ol.Executor(check=True).run(program, feed(program), fetched, scope=ol.init(program, ol.Scope()), training=True)
    assert all(numpy.isfinite(value).all() for value in values if value.dtype.kind == "f"), name
