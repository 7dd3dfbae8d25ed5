"""`.pt2` archives: read as PyTorch wrote them, and nothing of a stranger's is run."""

import io
import json
import os
import pickle
import random
import zipfile

import numpy
import pytest
import torch
from fuzz import exported_archives
from fuzz.archive_seeds import SEEDS, draft_of_archive
from fuzz.exported_archives import judge_archive, make_archive
from fuzz.payloads import PAYLOADS
from torch import nn
from typer.testing import CliRunner

import oarlock as ol
from oarlock.cli.main import app
from oarlock.interop.torch.archive import read_archive


class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(4, 3), nn.BatchNorm1d(3)
        self.register_buffer("shift", torch.arange(3.0), persistent=False)

    def forward(self, x):
        return {"y": self.norm(self.fc(x)) + self.shift}


@pytest.fixture(scope="module")
def module():
    torch.manual_seed(0)
    return Module()


@pytest.fixture(scope="module")
def archive(module, tmp_path_factory):
    path = tmp_path_factory.mktemp("archives") / "model.pt2"
    torch.export.save(torch.export.export(module, (torch.randn(2, 4),), dynamic_shapes={"x": {0: torch.export.Dim("batch")}}), path)
    return path


def rewritten(archive, path, change):
    """The archive with its entries changed: a function of a dict of bytes by path."""
    with zipfile.ZipFile(archive) as before:
        entries = {item.filename: before.read(item) for item in before.infolist()}
    change(entries)
    with zipfile.ZipFile(path, "w") as after:
        for name, data in entries.items():
            after.writestr(name, data)
    return path


def with_document(change):
    """A change of the model's JSON."""

    def of_entries(entries):
        (name,) = [name for name in entries if name.endswith("/models/model.json")]
        document = json.loads(entries[name])
        change(document)
        entries[name] = json.dumps(document).encode()

    return of_entries


def test_an_archive_comes_in_as_the_module_does(module, archive):
    model = ol.from_torch(archive)
    assert [var.name for var in model.program.parameters()] == [name for name, _ in module.named_parameters()]
    assert model.inputs["x"].shape == ("n", 4)
    x = torch.randn(5, 4)
    numpy.testing.assert_allclose(ol.infer(model, {"x": x}), module.eval()(x)["y"].detach(), rtol=1e-5, atol=1e-6)


def test_the_command_saves_it_reports_and_compares(archive, tmp_path):
    done = CliRunner().invoke(app, ["import", "torch", str(archive), "-o", str(tmp_path / "model.safetensors"), "--check"])
    assert done.exit_code == 0, done.output
    *lines, last = done.output.splitlines()
    assert lines == [
        "4 nodes: 3 native, 1 composed",
        "     2  aten.add.Tensor                                   native    add",
        "     1  aten._native_batch_norm_legit_functional.default  native    batch_norm",
        "     1  aten.linear.default                               composed  matrix_transpose, linear",
        f"saved {tmp_path / 'model.safetensors'}: 9 ops, 4 parameters",
    ]
    assert float(last.split()[2]) < 1e-5
    assert list(ol.load_model(tmp_path / "model.safetensors").program.targets) == ["y"]


HOSTILE = {
    "a function of the system": lambda document: document["graph_module"]["graph"]["nodes"][0].update(target="torch.os.system"),
    "an operator of others": lambda document: document["graph_module"]["graph"]["nodes"][0].update(target="torch.ops.evil.run.default"),
    "an operator of ours": lambda document: document["graph_module"]["graph"]["nodes"][0].update(target="#evil:run"),
    "python for a size": lambda document: sizes(document)[0].update(as_expr={"expr_str": "__import__('os').system('touch /tmp/x')"}),
    "a call for a size": lambda document: sizes(document)[0].update(as_expr={"expr_str": "Integer.__class__(3)"}),
    "a tower of powers": lambda document: sizes(document)[0].update(as_expr={"expr_str": "9**9**9**9"}),
    "a container that imports": lambda document: document["graph_module"]["module_call_graph"][0]["signature"].update(
        in_spec=json.dumps(
            [1, {"type": "collections.defaultdict", "context": json.dumps({"default_factory_module": "antigravity"}), "children_spec": []}]
        )
    ),
    "a sum that is multiplied out": lambda document: sizes(document)[0].update(as_expr={"expr_str": "*".join(["(s0 + s1)"] * 60)}),
    "powers of powers": lambda document: sizes(document)[0].update(as_expr={"expr_str": "(((((s0**8)**8)**8)**8)**8)**8"}),
    "a symbol that is counted to": lambda document: document["range_constraints"].update(u999999999999={"min_val": 0, "max_val": 9}),
    "a function that writes files": lambda document: node(document).update(target="torch.ops.aten.save.default"),
    "a function that opens files": lambda document: node(document).update(target="torch.ops.aten.from_file.default"),
    "a method of a class": lambda document: node(document).update(target="torch.ops.aten.__class__.mro"),
    "a function of text": lambda document: node(document).update(target="torch.ops.aten.warn.default"),
    "a path with quotes": lambda document: rename(document, "fc.weight", 'fc.x"), print(), ("'),
    "numbers multiplied on and on": lambda document: document["graph_module"]["graph"]["nodes"].extend(
        {
            "target": "_operator.mul",
            "inputs": [{"name": "", "arg": {"as_sym_int": {"as_name": f"m{number}"}}, "kind": 1}] * 2,
            "outputs": [{"as_sym_int": {"as_name": f"m{number + 1}"}}],
            "metadata": {},
        }
        for number in range(60)
    ),
    "an object": lambda document: document["graph_module"]["graph"]["inputs"].append({"as_custom_obj": {"name": "x", "class_fqn": "evil"}}),
}


def node(document):
    return document["graph_module"]["graph"]["nodes"][0]


def rename(document, name, other):
    """Call something otherwise, wherever it is called."""
    changed = json.loads(json.dumps(document).replace(json.dumps(name), json.dumps(other)))
    document.clear()
    document.update(changed)


def sizes(document):
    return [
        size for value in document["graph_module"]["graph"]["tensor_values"].values() for size in value["sizes"] if size.pop("as_int", 1)
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_what_would_run_is_refused(name, archive, tmp_path):
    with pytest.raises(ol.FormatError) as raised:
        read_archive(rewritten(archive, tmp_path / "hostile.pt2", with_document(HOSTILE[name])))
    assert raised.value.message.startswith('"hostile.pt2": the archive')


RUN = "__import__('os').environ.__setitem__('OARLOCK_TRAP', 'sprung')"
IN_PLACE_OF_A_NAME = {
    "an input": lambda document: rename(document, "x", f"x={RUN}"),
    "a parameter": lambda document: rename(document, "p_fc_weight", f"p={RUN}"),
    "an argument of the module": lambda document: called(document).update(forward_arg_names=[f"x={RUN}"]),
    "an argument by name": lambda document: called(document).update(
        forward_arg_names=None,
        in_spec=called(document)["in_spec"].replace('"context": "[]"', json.dumps({"context": json.dumps([f"x={RUN}"])})[1:-1]),
    ),
}


def called(document):
    return document["graph_module"]["module_call_graph"][0]["signature"]


@pytest.mark.parametrize("name", IN_PLACE_OF_A_NAME)
def test_python_in_the_place_of_a_name_is_not_run(name, archive, tmp_path, monkeypatch):
    """PyTorch writes names into the source of a function, which it then runs: a default value is enough."""
    monkeypatch.delenv("OARLOCK_TRAP", raising=False)
    path = rewritten(archive, tmp_path / "hostile.pt2", with_document(IN_PLACE_OF_A_NAME[name]))
    with pytest.raises(ol.FormatError, match="in place of a name"):
        ol.from_torch(path)
    assert "OARLOCK_TRAP" not in os.environ


class Trap:
    """An object that sets a flag when it is unpickled."""

    sprung = False

    def __reduce__(self):
        return (setattr, (Trap, "sprung", True))


def test_pickles_are_not_read(archive, tmp_path):
    def pickled(entries):
        config = next(name for name in entries if name.endswith("model_weights_config.json"))
        listed = json.loads(entries[config])
        listed["config"]["fc.weight"]["use_pickle"] = True
        entries[config] = json.dumps(listed).encode()
        entries[config.replace("model_weights_config.json", "weight_0")] = pickle.dumps(Trap())

    with pytest.raises(ol.FormatError, match="pickled"):
        read_archive(rewritten(archive, tmp_path / "pickled.pt2", pickled))
    sample = rewritten(
        archive,
        tmp_path / "sample.pt2",
        lambda entries: entries.update({name: pickle.dumps(Trap()) for name in entries if "sample_inputs" in name}),
    )
    read_archive(sample)
    assert not Trap.sprung


def test_a_bomb_of_a_zip_is_refused(archive, tmp_path):
    path = tmp_path / "bomb.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("m/models/model.json", b" " * 10_000_000)
    with pytest.raises(ol.LimitError, match="larger than the archive"):
        read_archive(path)


def test_a_tensor_is_held_to_its_bytes(archive, tmp_path):
    def longer(entries):
        config = next(name for name in entries if name.endswith("model_weights_config.json"))
        listed = json.loads(entries[config])
        listed["config"]["fc.weight"]["tensor_meta"]["strides"][0]["as_int"] = 2**40
        entries[config] = json.dumps(listed).encode()

    with pytest.raises(ol.FormatError, match="larger than its bytes"):
        read_archive(rewritten(archive, tmp_path / "longer.pt2", longer))


@pytest.mark.parametrize("text", ["[" + "{}," * 1_000_001 + "1]", "[" + "1," * 2_000_001 + "1]"])
def test_a_document_of_very_many_parts_is_refused_before_it_is_read(text, archive, tmp_path, monkeypatch):
    monkeypatch.setattr(json, "loads", lambda _: pytest.fail("it was read"))
    with zipfile.ZipFile(tmp_path / "many.pt2", "w") as many:
        many.writestr("m/models/model.json", text)
    with pytest.raises(ol.LimitError, match="its model has too many parts"):
        read_archive(tmp_path / "many.pt2")


def test_a_number_that_is_repeated_for_ever_is_refused(archive, tmp_path):
    def repeated(entries):
        config = next(name for name in entries if name.endswith("model_weights_config.json"))
        listed = json.loads(entries[config])
        listed["config"]["fc.weight"]["tensor_meta"].update(sizes=[{"as_int": 2**27}], strides=[{"as_int": 0}])
        entries[config] = json.dumps(listed).encode()

    with pytest.raises(ol.LimitError, match="its tensors take 536,870,9.* bytes, but the archive holds only"):
        read_archive(rewritten(archive, tmp_path / "repeated.pt2", repeated))


def test_spoilt_archives_end_in_errors_of_ours_or_run(tmp_path):
    """CONTRIBUTING.md gives the command for 20,000 of them."""
    outcomes = {judge_archive(tmp_path, make_archive(random.Random(f"0 {number}"))[1]) for number in range(30)}
    assert {"FormatError", "UnsupportedError", "runs"} <= outcomes


@pytest.mark.parametrize("name", sorted(SEEDS))
def test_an_archive_that_was_not_spoilt_runs(name, tmp_path):
    assert judge_archive(tmp_path, draft_of_archive(random.Random(0), name).to_bytes()) == "runs"


def test_the_judge_notices_python_that_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(exported_archives, "read_archive", lambda *_, **__: eval(PAYLOADS[0]))
    with pytest.raises(AssertionError, match="Python out of the file was run"):
        judge_archive(tmp_path, b"")


def test_an_archive_that_is_a_link_is_not_opened(archive, tmp_path):
    (tmp_path / "link.pt2").symlink_to(archive)
    with pytest.raises(ol.FormatError, match="is a symbolic link"):
        read_archive(tmp_path / "link.pt2", untrusted=True)


def test_what_is_no_archive_is_said_to_be_none(tmp_path):
    (tmp_path / "text.pt2").write_text("hello")
    with pytest.raises(ol.FormatError) as raised:
        read_archive(tmp_path / "text.pt2")
    assert raised.value.message == '"text.pt2": it is not a zip archive, or it is truncated'
    with pytest.raises(ol.MissingFileError):
        read_archive(tmp_path / "nothing.pt2")
    buffer = io.BytesIO()
    torch.save(nn.Linear(2, 2).state_dict(), buffer)
    (tmp_path / "state.pt2").write_bytes(buffer.getvalue())
    with pytest.raises(ol.FormatError, match="it holds 0 exported programs"):
        read_archive(tmp_path / "state.pt2")
