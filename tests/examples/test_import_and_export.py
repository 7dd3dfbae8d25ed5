"""The examples whose models come from PyTorch or train under ONNX Runtime, on less data and with fewer steps."""

import runpy
import sys
from pathlib import Path

import pytest

import oarlock as ol

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def load(name):
    """The names that an example defines, without running it."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)


@pytest.fixture
def few_digits(monkeypatch):
    """A fifth of the digits."""
    split = ol.datasets.digits.split
    monkeypatch.setattr(
        ol.datasets.digits, "split", lambda seed=0: tuple({name: array[::5] for name, array in part.items()} for part in split(seed))
    )


def test_a_residual_network_is_pretrained_imported_tuned_and_taken_back(few_digits, tmp_path, capsys):
    path = tmp_path / "resnet.safetensors"
    reached = load("fine_tuned_resnet")["main"](seed=0, epochs=2, path=str(path))
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("epoch")]
    assert [line.partition(":")[0] for line in lines] == [
        "in PyTorch",
        "only the last layer",
        "all layers",
        "back in PyTorch",
        f"saved {path}",
    ]
    alone = float(lines[1].split()[4].rstrip("%")) / 100
    assert reached > alone > 0.1, "tuning all layers does better than the last one alone, which does better than chance"
    assert float(lines[3].split()[-1]) < 1e-4
    _, test = ol.datasets.digits.split(seed=0)
    read = ol.infer(ol.load_model(path), {"image": test["image"]}).argmax(1)
    assert (read == test["label"]).mean() == pytest.approx(reached)


@pytest.mark.slow
def test_a_tuned_residual_network_reads_95_percent_of_the_digits_never_seen(tmp_path, capsys):
    assert load("fine_tuned_resnet")["main"](seed=0, path=str(tmp_path / "resnet.safetensors")) > 0.95


def test_a_tiny_gpt2_learns_and_its_file_writes_ascii(tmp_path, capsys):
    example = load("tiny_gpt2")
    path = tmp_path / "gpt2.safetensors"
    bits = example["main"](seed=0, steps=8, files=4, length=5, path=str(path))
    assert 3 < bits < 6, "of the 7 bits that a character has where nothing is learnt"
    printed = capsys.readouterr().out
    assert f"saved {path}\n\ndef " in printed
    model = ol.load_model(path)
    assert [var.type_text for var in model.program.main.inputs] == ["int64[n, t]"]
    names = [var.name for var in model.program.parameters()]
    assert "wte.weight" in names
    assert "h.2.attn.c_attn.weight" in names
    assert "lm_head.weight" not in names, "it is the embedding"
    text = example["write"](model, "import ", 3, 1)
    assert text.startswith("import ")
    assert len(text) == 10
    text.encode("ascii")


@pytest.mark.parametrize(
    ("name", "make", "library"), [("fine_tuned_resnet", "make_trunk", "torchvision"), ("tiny_gpt2", "make_gpt2", "transformers")]
)
def test_a_library_that_is_missing_is_named_with_what_installs_it(name, make, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, f"{library}.models", None)
    with pytest.raises(SystemExit, match=f"pip install {library}, or leave out --{library}"):
        load(name)[make](True)


def test_training_steps_under_onnx_runtime_lose_what_ours_lose(tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "step.onnx"
    assert load("trained_by_onnxruntime")["main"](seed=0, steps=12, path=str(path)) < 1e-5
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{path} takes image, label and 18 values of state, such as batch_norm_0.mean"
    assert [line.split()[1] for line in lines[1:-1]] == ["1", "11", "12"]
    losses = [float(line.split()[3]) for line in lines[1:-1]]
    assert losses[-1] < losses[0]
    shares = [float(word.rstrip("%")) for word in lines[-1].split() if word.endswith("%")]
    assert min(shares) > 30
    assert abs(shares[0] - shares[1]) < 1


@pytest.mark.parametrize("name", ["fine_tuned_resnet", "tiny_gpt2", "trained_by_onnxruntime"])
def test_the_example_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 160
