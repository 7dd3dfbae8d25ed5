"""Files of the first version of the format are read and run for ever. `tests/golden/v1/make.py` made them."""

from pathlib import Path

import numpy
import pytest
import torch
from tolerances import VALUES

import oarlock as ol
from oarlock.ir.hashing import content_hash

FOLDER = Path(__file__).parent.parent / "golden" / "v1"
HASHES = {
    "digits": "0ac634b5344151f69a495fc56a964fe9595227bc7bcec16895900cb0ba1797bd",
    "recurrent": "48c322a50974257c287362b11cbf8a957bcc5834fbb72fa89519f36d003078cb",
    "training": "c59949f56d63905848f03a3c2eb7d3dd3c93d977ebd59d0f90c25df5a5cb79ee",
}


@pytest.mark.parametrize("name", sorted(HASHES))
def test_a_file_of_version_1_is_read_printed_and_hashed_as_it_was(name):
    program = ol.load_model(FOLDER / f"{name}.safetensors").program
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert program.to_text() == text
    assert content_hash(program) == HASHES[name]
    assert content_hash(ol.registry.parse_program(text)) == HASHES[name]


@pytest.mark.parametrize("name", sorted(HASHES))
def test_a_file_of_version_1_is_written_again_byte_for_byte(name, tmp_path):
    path = FOLDER / f"{name}.safetensors"
    ol.save_model(ol.load_model(path), tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", sorted(HASHES))
def test_a_file_of_version_1_runs_as_it_did(name):
    """Steps, dropout's choices and the updates of every variable; within float32's rounding, which machines share not quite."""
    model = ol.load_model(FOLDER / f"{name}.safetensors")
    relative, absolute = VALUES[torch.float32]
    with numpy.load(FOLDER / f"{name}.npz", allow_pickle=False) as expected:
        feed = {key.removeprefix("feed."): expected[key] for key in expected if key.startswith("feed.")}
        labels = list(model.program.targets)
        step = 0
        while f"step{step}.{labels[0]}" in expected:
            values = ol.Executor().run(model.program, feed, labels, scope=model.scope, training=True)
            for label, value in zip(labels, values, strict=True):
                numpy.testing.assert_allclose(value, expected[f"step{step}.{label}"], rtol=relative, atol=absolute)
            step += 1
        assert step
        for key in expected:
            if key.startswith("after."):
                numpy.testing.assert_allclose(model.scope[key[6:]].numpy(), expected[key], rtol=relative, atol=absolute, err_msg=key)


@pytest.mark.parametrize("name", sorted(HASHES))
def test_first_values_are_made_as_they_were(name):
    """The random numbers of version 1: init gives what the file holds, bit for bit."""
    model = ol.load_model(FOLDER / f"{name}.safetensors")
    fresh = ol.init(model.program, ol.Scope())
    assert {key for key in fresh if not fresh[key].equal(model.scope[key])} == set()
