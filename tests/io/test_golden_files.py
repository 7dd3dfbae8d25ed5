"""Files of each version of the format are read and run for ever. Scripts beside them made them."""

from pathlib import Path

import numpy
import pytest
import torch
from tolerances import VALUES

import oarlock as ol
from oarlock.ir.content_hash import content_hash

FOLDER = Path(__file__).parent.parent / "golden"
HASHES = {
    "v1/digits": "0ac634b5344151f69a495fc56a964fe9595227bc7bcec16895900cb0ba1797bd",
    "v1/recurrent": "c18ee62197b1b556a3ff848028e2ef56798d911504b951b72e10165594564339",
    "v1/training": "85cb558a8ca20869b69192b1284a62ef832288f854e7b5cbad4b421900e38342",
    "v2/digits": "0ac634b5344151f69a495fc56a964fe9595227bc7bcec16895900cb0ba1797bd",
    "v2/normalization": "663633bb7c3827540008bd5ba5102864d8c801cc5d6593d3b0210d1244f0447f",
    "v2/recurrent": "89c3a0eb45af37e2f82008c8510580cb6279c9b565e7da9480bc81b1e6147645",
    "v2/training": "a1128c0592b7e455be0ae8623b270673cd5a42bb493cc7aed0d17946cc22191a",
}
FILES = sorted(HASHES)
IN_OLD_NAMES = [name for name in FILES if (FOLDER / f"{name}.in_names_of_today.txt").exists()]
IN_NAMES_OF_TODAY = [name for name in FILES if name not in IN_OLD_NAMES]


@pytest.mark.parametrize("name", IN_NAMES_OF_TODAY)
def test_a_file_is_read_printed_and_hashed_as_it_was(name):
    program = ol.load_model(FOLDER / f"{name}.safetensors").program
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert program.to_text() == text
    assert content_hash(program) == HASHES[name]
    assert content_hash(ol.registry.parse_program(text)) == HASHES[name]


@pytest.mark.parametrize("name", IN_OLD_NAMES)
def test_a_file_in_old_names_is_read_in_those_of_today(name):
    """Operators, slots and attributes have other names since version 2, slots of some gradients later; variables keep theirs."""
    program = ol.load_model(FOLDER / f"{name}.safetensors").program
    assert program.to_text() == (FOLDER / f"{name}.in_names_of_today.txt").read_text(encoding="utf-8")
    assert content_hash(program) == HASHES[name]
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert content_hash(ol.registry.parse_program(text)) == HASHES[name], "text in old names"


@pytest.mark.parametrize("name", IN_NAMES_OF_TODAY)
def test_a_file_is_written_again_byte_for_byte(name, tmp_path):
    path = FOLDER / f"{name}.safetensors"
    ol.save_model(ol.load_model(path), tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", IN_OLD_NAMES)
def test_a_file_in_old_names_is_written_again_in_those_of_today(name, tmp_path):
    path, again = FOLDER / f"{name}.safetensors", tmp_path / "again.safetensors"
    ol.save_model(ol.load_model(path), again)
    assert content_hash(ol.load_model(again).program) == HASHES[name]
    assert again.read_bytes() != path.read_bytes()


@pytest.mark.parametrize("name", FILES)
def test_a_file_runs_as_it_did(name):
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


@pytest.mark.parametrize("name", FILES)
def test_first_values_are_made_as_they_were(name):
    """Random numbers: init gives what the file holds, bit for bit."""
    model = ol.load_model(FOLDER / f"{name}.safetensors")
    fresh = ol.init(model.program, ol.Scope())
    assert {key for key in fresh if not fresh[key].equal(model.scope[key])} == set()
