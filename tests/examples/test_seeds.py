"""For every listing of the seeds, a program that makes its calls, in our spelling where docs/guides/from_2017.md has one;
each is run here."""

import runpy
from pathlib import Path

import pytest

import oarlock as ol

SEEDS = sorted((Path(__file__).parent / "seeds").glob("*.py"))


@pytest.mark.mission("N24")
@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_the_listing_runs(path):
    with ol.scope.guard(ol.Scope()):
        runpy.run_path(str(path), run_name="__main__")


def test_every_listing_has_its_program():
    """A file that nobody expects, or one that went missing, is seen here."""
    assert [path.stem for path in SEEDS] == [
        "block_message",
        "block_names",
        "block_run",
        "context_and_place",
        "create_rnn",
        "gemm",
        "if_else",
        "layers_of_variables",
        "net_builder",
        "net_life",
        "net_run",
        "plain_network",
        "prune_and_eval",
        "recurrent_network",
        "rnn_demo",
        "rnn_run",
        "rnn_step",
        "scope_interface",
        "scope_of_framework",
        "scope_of_names",
        "scope_with_parent",
        "symbol_table",
        "trace_and_build",
        "variables",
    ]
