"""Every verb of the command line: what it prints, how it ends, and what it says when it refuses."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
import torch
from classifiers import digits_classifier
from processes import run_module

import oarlock as ol
from oarlock import errors
from oarlock.passes.pipeline import PASSES
from oarlock.registry import standard

SEED = 1
GOLDEN = Path(__file__).parents[1] / "golden" / "v1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`model.safetensors` reads digits; `run.safetensors` was stopped after 5 steps of 24; nobody writes to them."""
    folder = tmp_path_factory.mktemp("models")
    train, _ = ol.datasets.digits.split(seed=SEED)
    digits = digits_classifier(seed=SEED)
    options = {"optimizer": ol.optimizer.Adam(1e-2), "batch_size": 128, "epochs": 2, "progress": False}
    ol.save_model(digits.predict, ol.train(digits.cost, train, **options), folder / "model.safetensors")
    ol.save_model(ol.train(digits.cost, train, show={"accuracy": digits.accuracy}, steps=5, **options), folder / "run.safetensors")
    return folder


@pytest.fixture
def model(folder: Path) -> Path:
    return folder / "model.safetensors"


@pytest.fixture
def training(folder: Path, tmp_path: Path) -> Path:
    """A copy of `run.safetensors`, to be continued."""
    path = tmp_path / "run.safetensors"
    path.write_bytes((folder / "run.safetensors").read_bytes())
    return path


# Help


def test_python_m_oarlock_shows_every_verb(tmp_path):
    ended = run_module(tmp_path, "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    verbs = re.findall(r"^│ (\w+)  ", ended.stdout, re.MULTILINE)
    assert verbs == [
        "train",
        "infer",
        "evaluate",
        "profile",
        "serve",
        "resume",
        "runs",
        "plot",
        "report",
        "show",
        "summary",
        "check",
        "diff",
        "plan",
        "opt",
        "prune",
        "recompute",
        "quantize",
        "export",
        "ops",
        "explain",
        "datasets",
        "hash",
        "import",
    ]


def test_an_error_of_another_process_goes_to_its_error_output_without_a_traceback(tmp_path):
    ended = run_module(tmp_path, "show", "none.safetensors")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == 'MissingFileError: there is no file "none.safetensors"\n'


@pytest.mark.parametrize(
    "verb",
    [
        "train",
        "infer",
        "evaluate",
        "serve",
        "resume",
        "runs",
        "plot",
        "report",
        "show",
        "check",
        "diff",
        "plan",
        "prune",
        "recompute",
        "quantize",
        "export",
        "ops",
        "explain",
        "datasets",
        "hash",
        "import",
    ],
)
def test_every_verb_has_a_page(verb, prints):
    page = prints(verb, "--help")
    assert re.match(rf"\s*Usage: .*oarlock {verb} ", page)
    assert len(page.splitlines()) > 10
    assert "<bool>" not in page


@pytest.mark.parametrize("arguments", [["bogus"], ["show"], ["infer", "model.safetensors"], ["diff", "one"]])
def test_wrong_usage_ends_with_status_two(arguments, oarlock):
    ended = oarlock(*arguments)
    assert ended.status == 2
    assert re.match(r"Usage: .*oarlock ", ended.error)
    assert "Traceback" not in ended.error


# show, check, hash


def test_show_prints_the_program(model, prints):
    program = ol.load_model(model).program
    assert prints("show", model) == program.to_text()
    assert prints("show", model, "--no-source") == program.to_text(source=False)
    assert "hidden = ol.layer.conv2d(image, filters=32" in prints("show", model)


def test_show_draws_the_program(model, tmp_path, prints):
    drawing = ol.draw(ol.load_model(model).program)
    for option, text in (("--svg", drawing.svg), ("--html", drawing.page)):
        assert prints("show", model, option) == text
        out = tmp_path / f"drawn{option}"
        assert prints("show", model, option, out) == f"saved {out}\n"
        assert out.read_text(encoding="utf-8") == text
        named = tmp_path / f"by_name.{option[2:]}"
        assert prints("show", model, named) == f"saved {named}\n"
        assert named.read_text(encoding="utf-8") == text
    shallow = ol.draw(ol.load_model(model).program, depth=0, source=False)
    assert prints("show", model, "--svg", "--depth", 0, "--no-source") == shallow.svg != drawing.svg


def test_show_says_what_a_drawing_is_asked_for_by(model, tmp_path, refuses):
    assert refuses("show", model, "--svg", "--html", tmp_path / "out") == (
        "ArgumentError: show: --svg and --html exclude each other: give one of them"
    )
    assert refuses("show", model, "out.png") == (
        'ArgumentError: show: "out.png" needs a drawing\n  Try: --svg draws a picture, --html a page    (oarlock explain ArgumentError)'
    )
    assert refuses("show", model, "--depth", 1) == (
        "ArgumentError: show: --depth needs a drawing\n  Try: --svg draws a picture, --html a page    (oarlock explain ArgumentError)"
    )
    assert not list(tmp_path.iterdir())


def test_show_prints_a_training_program_a_file_of_bytes_and_a_file_of_text(folder, tmp_path, prints):
    program = ol.load_model(folder / "run.safetensors").program
    assert prints("show", folder / "run.safetensors") == program.to_text()
    (tmp_path / "program.bin").write_bytes(program.to_bytes())
    (tmp_path / "program.txt").write_text(program.to_text())
    assert prints("show", tmp_path / "program.bin") == program.to_text()
    assert prints("show", tmp_path / "program.txt", "--no-source") == program.to_text(source=False)


def test_summary_prints_the_layers_of_a_program(model, prints, oarlock):
    program = ol.load_model(model).program
    assert prints("summary", model) == f"{ol.summary(program)}\n"
    assert prints("summary", model, "--depth", 1, "--size", "n=32") == f"{ol.summary(program, depth=1, sizes={'n': 32})}\n"
    refused = oarlock("summary", model, "--size", "n")
    assert refused.status == 2
    assert "expected NAME=NUMBER, not 'n'" in refused.error


def test_check_says_what_it_has_checked(folder, tmp_path, prints):
    numbers = "5,450 trainable values"
    assert prints("check", folder / "model.safetensors") == (f"model.safetensors: a program of 1 block, 6 ops and {numbers}; no errors\n")
    program = ol.load_model(folder / "run.safetensors").program
    (tmp_path / "program.bin").write_bytes(program.to_bytes())
    ops = len(program.main.ops)
    assert prints("check", folder / "run.safetensors") == (
        f"run.safetensors: a training program of 1 block, {ops} ops and {numbers}; no errors\n"
    )
    assert prints("check", tmp_path / "program.bin").startswith("program.bin: a training program of 1 block, ")


def test_check_names_the_rule_that_is_broken(model, tmp_path, refuses):
    data = ol.load_model(model).program.to_bytes()
    (tmp_path / "program.bin").write_bytes(data.replace(b"softmax_0", b"softmax_1", 1))
    assert refuses("check", tmp_path / "program.bin") == (
        'VerifyError: main, op 5 (softmax): "softmax_0" is not declared in this block or its parents'
    )
    (tmp_path / "program.bin").write_bytes(data.replace(b"\x07softmax\x12", b"\x07softmix\x12", 1))
    error = refuses("check", tmp_path / "program.bin")
    assert error.startswith('UnknownOperatorError: main, op 5 (softmix): no operator "softmix"; did you mean "softmax"?')


@pytest.mark.parametrize("verb", ["show", "check", "hash"])
def test_a_file_that_is_no_program_is_refused(verb, model, tmp_path, refuses):
    assert refuses(verb, tmp_path / "none") == f'MissingFileError: there is no file "{tmp_path / "none"}"'
    assert refuses(verb, tmp_path / "none.safetensors") == f'MissingFileError: there is no file "{tmp_path / "none.safetensors"}"'
    assert refuses(verb, tmp_path) == f'MissingFileError: the folder "{tmp_path}" contains no run'
    (tmp_path / "letter.txt").write_text("Dear reader,\nthis is no program.\n")
    assert refuses(verb, tmp_path / "letter.txt").startswith("FormatError: these bytes are not an Oarlock program")
    (tmp_path / "torn.txt").write_bytes(b"program \xff\xfe")
    assert refuses(verb, tmp_path / "torn.txt").startswith('FormatError: "torn.txt" is not a valid program text')
    (tmp_path / "cut.safetensors").write_bytes(model.read_bytes()[:500])
    assert refuses(verb, tmp_path / "cut.safetensors").startswith(
        'FormatError: "cut.safetensors" is not a valid safetensors file, or is truncated'
    )


def test_hash_is_the_same_for_the_same_program_in_any_file(model, tmp_path, prints):
    program = ol.load_model(model).program
    (tmp_path / "program.bin").write_bytes(program.to_bytes(source=False))
    (tmp_path / "program.txt").write_text(program.to_text())
    hashes = {prints("hash", path) for path in (model, tmp_path / "program.bin", tmp_path / "program.txt")}
    assert len(hashes) == 1
    assert re.fullmatch(r"[0-9a-f]{64}\n", hashes.pop())


# diff, prune


def test_plan_prints_the_python_that_a_program_is_run_as(model, tmp_path, prints, oarlock):
    text = prints("plan", model)
    passes, plan = text.split("\n\n", 1)
    applied = {name: int(count) for name, count in re.findall(r"^# (\w+) +(\d+)   [A-Z].*[.]$", passes, re.MULTILINE)}
    assert applied == dict.fromkeys(PASSES, 0)
    assert plan.startswith("def plan(context_of, device, image_1, ")
    assert re.search(r"^    softmax_0_\d+ = softmax_(?:in_place_)?\d+\(", text, re.MULTILINE)
    loop = tmp_path / "loop.txt"
    loop.write_text(ol.load_model(GOLDEN / "recurrent.safetensors").program.to_text())
    assert re.search(r"^# batch_epilogue +\d+   Batch epilogue of a loop: ", prints("plan", loop), re.MULTILINE)
    assert "# batch_epilogue" not in prints("plan", loop, "--without", "batch_epilogue")
    bare, plan = prints("plan", loop, *(word for name in PASSES for word in ("--without", name))).split("\n\n", 1)
    assert re.fullmatch(r"# No passes\.\n# Constants kept between runs:\n# (fill_0_\d+) +float32\[\]\n# fill_1_\d+ +int64\[\]", bare)
    assert plan.startswith("def plan(")
    ended = oarlock("plan", model, "--without", "lifft")
    assert ended.status == 2
    assert f'there is no pass "lifft"; the passes are {", ".join(PASSES)}' in " ".join(ended.error.replace("│", "").split())


def test_plan_prints_the_regions_that_a_backend_would_compile(tmp_path, prints, oarlock):
    with ol.Program() as program:
        program.targets["y"] = ol.op.tanh(ol.op.exp(ol.op.tanh(ol.layer.data("x", shape=[2]))))
    (tmp_path / "chain.txt").write_text(program.to_text())
    assert re.search(
        r"^    \[tanh_1_\d+\] = region_\d+\(None, x_1\)$", prints("plan", tmp_path / "chain.txt", "--backend", "inductor"), re.MULTILINE
    )
    assert "region_" not in prints("plan", tmp_path / "chain.txt")
    ended = oarlock("plan", tmp_path / "chain.txt", "--backend", "xla")
    assert ended.status == 1
    assert 'backend must be "inductor", "cuda_graphs", "numpy" or None, not \'xla\'' in " ".join(ended.error.replace("│", "").split())


def test_diff_tells_programs_apart_and_says_so_by_its_status_when_asked(folder, model, oarlock, prints):
    assert prints("diff", model, model) == "the programs are the same\n"
    assert prints("diff", "--exit-code", model, model) == "the programs are the same\n"
    ended = oarlock("diff", model, folder / "run.safetensors")
    assert (ended.status, ended.error) == (0, "")
    assert "adam" in ended.output
    assert oarlock("diff", "--exit-code", model, folder / "run.safetensors").status == 2


def test_prune_keeps_what_some_variables_need(folder, tmp_path, prints, refuses):
    output = tmp_path / "accuracy.safetensors"
    assert prints("prune", folder / "run.safetensors", "accuracy", "softmax_0", "-o", output) == f"saved {output}\n"
    model = ol.load_model(output)
    assert list(model.program.targets) == ["accuracy", "softmax_0"]
    assert sorted(model.scope) == ["conv2d_0.b", "conv2d_0.w", "fc_0.b", "fc_0.w"]
    assert refuses("prune", folder / "run.safetensors", "acuracy", "-o", output).startswith(
        'UndefinedVarError: "acuracy" is not visible in main'
    )
    missing = tmp_path / "none" / "model.safetensors"
    assert refuses("prune", folder / "run.safetensors", "accuracy", "-o", missing) == (
        f'MissingFileError: there is no folder "{missing.parent}"'
    )


def test_recompute_saves_a_training_program_that_goes_on_as_it_was(folder, tmp_path, prints, refuses):
    output = tmp_path / "smaller.safetensors"
    told = prints("recompute", folder / "run.safetensors", "--segments", "3", "-o", output)
    assert re.fullmatch(rf"saved {re.escape(str(output))}: gradients recompute [1-9]\d* ops?\n", told)
    program, before = ol.load_model(output).program, ol.load_model(folder / "run.safetensors").program
    assert program.is_training
    assert len(program.main.ops) > len(before.main.ops)
    assert refuses("recompute", output, "--checkpoint", "nothing", "-o", output).startswith('UndefinedVarError: "nothing" is not visible')


def test_quantize_saves_a_model_whose_weights_are_integers(model, tmp_path, prints, oarlock):
    output = tmp_path / "small.safetensors"
    told = prints("quantize", model, "--at-least", "1", "-o", output)
    assert re.fullmatch(rf"saved {re.escape(str(output))}: [1-9] weights? as int8\n", told)
    assert "int8" in prints("show", output)
    ended = oarlock("quantize", model, "--mode", "static", "-o", output)
    assert ended.status == 2
    assert "the mode is" in ended.error


# ops, explain


def test_ops_lists_every_operator_and_the_first_line_of_its_page(prints):
    lines = prints("ops").splitlines()
    shipped = [operator for operator in standard if operator.kernel.__module__.startswith("oarlock.")]
    listed = {line.split()[0]: line.partition(" ")[2].strip() for line in lines}
    assert {operator.type for operator in shipped} <= set(listed)
    assert listed["relu"] == "Clamp negatives to zero: y = max(x, 0)."
    assert list(listed) == sorted(listed)
    assert all(listed[operator.type] for operator in shipped), "each has a first line"


def test_ops_prints_the_page_of_an_operator(prints):
    page = prints("ops", "gather")
    assert page.startswith("gather(x: T[k ...d], rows: int64[*b], axis=None, sparse=False) -> y: T\n\n")
    for heading in ("Inputs", "Outputs", "Promises", "Gradients", "Examples", "Refused"):
        assert f"\n{heading}\n    " in page
    assert prints("ops", "linear_dw").startswith("linear_dw(x: inexact[*b k], dout: inexact[*b n]) -> dw: inexact[k n]\n")


def test_every_operator_has_a_page(prints):
    for operator in [*standard, *standard.gradient_operators.values()]:
        assert prints("ops", operator.type).startswith(f"{operator.type}("), operator.type


def test_datasets_lists_every_data_set_and_prints_what_one_holds(prints, refuses):
    listed = prints("datasets")
    names = re.findall(r"^  (\w+)  +\S", listed, re.MULTILINE)
    assert names == list(ol.datasets.descriptions())
    assert prints("datasets", "iris") == (
        "Iris: 150 flowers of three species with four measurements (R. A. Fisher, 1936).\n\n"
        "It is part of scikit-learn; nothing is downloaded. `x` is in cm, and there are 50 flowers of each species.\n\n"
        "columns  x float32[n, 4], label int64[n]\n"
        "rows     iris:train 120, iris:test 30, iris:all 150\n"
        "features sepal length, sepal width, petal length, petal width\n"
        "classes  setosa, versicolor, virginica\n"
        "source   R. A. Fisher, 1936: The use of multiple measurements in taxonomic problems; UCI, with scikit-learn\n"
        "licence  CC BY 4.0\n"
    )
    for name in names:
        assert re.search(r"^columns  \w.*\nrows     \w.*(\n.*)*\nsource   \w.*\nlicence  \w", prints("datasets", name), re.MULTILINE)
    assert "rows     depends on the Python version\n" in prints("datasets", "standard_library")
    assert refuses("datasets", "irs") == (
        'DataError: there is no data set "irs"\n  Try: did you mean "iris"?    (oarlock explain DataError)'
    )


def test_a_data_set_trains_a_saved_program_by_its_name(tmp_path, prints):
    with ol.Program(seed=0):
        x, label = ol.layer.data("x", [4]), ol.layer.data("label", [], dtype="int64")
        logits = ol.layer.fc(ol.layer.batch_norm(x), 3)
        cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(logits, label))
    result = ol.train(cost, ol.datasets.iris.split(seed=0)[0], optimizer=ol.optimizer.Adam(0.05), epochs=1, progress=False)
    ol.save_model(result, tmp_path / "iris.safetensors")
    ol.save_model(logits, result.parameters, tmp_path / "model.safetensors")
    before = prints("infer", tmp_path / "model.safetensors", "--data", "iris:test")
    printed = prints("train", tmp_path / "iris.safetensors", "--data", "iris:train", "--validate", "iris:test", "--epochs", "30")
    losses = [float(loss) for loss in re.findall(r"validation loss ([0-9.]+)", printed)]
    assert len(losses) == 29
    assert losses[-1] < 0.3 < losses[0]
    assert re.match(r"test accuracy \d", before)


def test_ops_suggests_a_name(refuses):
    assert refuses("ops", "rleu") == 'UnknownOperatorError: no operator "rleu"; did you mean "relu"?'


def test_explain_prints_what_an_error_means(prints, refuses):
    for name in errors.__all__:
        page = prints("explain", name)
        assert page.startswith(f"{name}\n\n")
        assert len(page.splitlines()) >= 3
    assert prints("explain").startswith("All exceptions of Oarlock.\n")
    assert refuses("explain", "Shape") == f'ArgumentError: there is no error class "Shape"\n  {", ".join(errors.__all__)}'


def test_every_error_that_suggests_a_page_has_one(prints, refuses, model):
    suggested = re.search(r"\(oarlock (explain \w+)\)", refuses("train", model)).group(1)
    assert prints(*suggested.split()).startswith("ArgumentError\n")


# infer


def test_infer_prints_the_test_accuracy_and_draws_digits(model, prints):
    _, test = ol.datasets.digits.split(seed=SEED)
    read = ol.infer(ol.load_model(model), {"image": test["image"]}).argmax(1)
    output = prints("infer", model, "--data", "digits:test")
    assert output.splitlines()[0] == f"test accuracy {(read == test['label']).mean() * 100:.1f} %"
    assert re.search(r"read \d \(\d+%\)", output)
    assert "@@" in output, "ink"
    assert output.splitlines()[-1] == (
        f"Next: oarlock show {model} prints the program, oarlock check {model} verifies it, oarlock ops conv2d explains an operator."
    )


def test_infer_reads_the_split_of_the_models_own_seed_unless_told_otherwise(model, prints):
    own = prints("infer", model, "--data", "digits:test").splitlines()[0]
    assert prints("infer", model, "--data", "digits:test", "--seed", SEED).splitlines()[0] == own
    parts = {part: prints("infer", model, "--data", f"digits:{part}").splitlines()[0] for part in ("train", "all")}
    assert parts["train"].startswith("train accuracy ")
    assert parts["all"].startswith("all accuracy ")


def test_infer_reads_a_file_of_arrays_and_saves_what_it_predicts(model, tmp_path, prints):
    _, test = ol.datasets.digits.split(seed=SEED)
    expected = ol.infer(ol.load_model(model), {"image": test["image"]})
    numpy.savez(tmp_path / "test.npz", image=test["image"])
    output = tmp_path / "[predicted].npy"
    printed = prints("infer", model, "--data", tmp_path / "test.npz", "--output", output)
    assert printed == f"saved {output}\npredicted float32[360, 10]\n"
    assert numpy.array_equal(numpy.load(output), expected)
    numpy.savez(tmp_path / "labelled.npz", **test)
    assert prints("infer", model, "--data", tmp_path / "labelled.npz").startswith("data accuracy ")


def test_infer_saves_a_table_that_is_read_as_it_was_written(model, folder, tmp_path, prints, refuses):
    _, test = ol.datasets.digits.split(seed=SEED)
    prints("infer", model, "--data", "digits:test", "--output", tmp_path / "predicted.csv")
    table = ol.data.read(tmp_path / "predicted.csv", columns={"read": "*"}).rows
    assert (tmp_path / "predicted.csv").read_text().startswith("predict_0,predict_1,")
    assert numpy.array_equal(table.whole()["read"].astype("float32"), ol.infer(ol.load_model(model), {"image": test["image"]}))
    trained = ol.load_model(folder / "run.safetensors")
    ol.save_model(trained.program.targets["loss"], trained, tmp_path / "loss.safetensors")
    assert refuses("infer", tmp_path / "loss.safetensors", "--data", "digits:test", "--output", tmp_path / "loss.csv") == (
        'DataError: "predict", float32[], cannot be a column of a table\n'
        "  Try: use a .npy file, which can store any array    (oarlock explain DataError)"
    )
    assert not (tmp_path / "loss.csv").exists()


def test_infer_prints_the_types_of_several_targets(folder, tmp_path, prints):
    trained = ol.load_model(folder / "run.safetensors")
    both = {label: trained.program.targets[label] for label in ("loss", "accuracy")}
    ol.save_model(both, trained, tmp_path / "both.safetensors")
    assert prints("infer", tmp_path / "both.safetensors", "--data", "digits:test") == "loss  float32[]\naccuracy  float32[]\n"


def test_infer_refuses_what_it_cannot_do(folder, model, tmp_path, refuses):
    error = refuses("infer", folder / "run.safetensors", "--data", "digits:test")
    assert error.startswith("TrainingProgramError: this is a training program: it has ")
    assert refuses("infer", tmp_path / "none.safetensors", "--data", "digits:test") == (
        f'MissingFileError: there is no file "{tmp_path / "none.safetensors"}"'
    )
    assert refuses("infer", model, "--data", "digits:tset") == (
        'DataError: there is no data set "digits:tset"\n'
        "  one of digits, iris, wine, breast_cancer, diabetes, sample_images, standard_library, mnist, fashion_mnist, cifar10, "
        "shakespeare, copying, addition, sorting, moons, spirals, waves, optionally with :train, :test or :all; a folder of "
        "images; or a file that ends with .csv, .tsv, .npz, .npy, .parquet, .arrow, .feather, optionally with :train or :test\n"
        "  Try: list them: oarlock datasets    (oarlock explain DataError)"
    )
    assert refuses("infer", model, "--data", "none.npz") == 'DataError: there is no file "none.npz"'
    assert refuses("infer", model, "--data", "digits:test", "--output", tmp_path / "none" / "x.npy") == (
        f'MissingFileError: there is no folder "{tmp_path / "none"}"'
    )
    numpy.savez(tmp_path / "other.npz", pixels=numpy.zeros(3))
    assert refuses("infer", model, "--data", tmp_path / "other.npz").startswith('FeedError: the data set has no "image"\n')
    numpy.save(tmp_path / "objects.npy", numpy.array([{"a": 1}], dtype=object))
    (tmp_path / "objects.npy").rename(tmp_path / "objects.npz")
    assert refuses("infer", model, "--data", tmp_path / "objects.npz").startswith('DataError: "objects.npz" is not a file of plain arrays')
    (tmp_path / "letter.npz").write_text("Dear reader")
    assert refuses("infer", model, "--data", tmp_path / "letter.npz").startswith('DataError: "letter.npz" is not a file of plain arrays')


# train


SCRIPT = """
import sys
import neighbour
print(__name__, sys.argv[1:], neighbour.NAME)
if "fail" in sys.argv:
    import oarlock as ol
    with ol.Program():
        ol.layer.fc(0.5, 10)
if "crash" in sys.argv:
    raise KeyError("their own")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "neighbour.py").write_text("NAME = 'next door'\n")
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.lstrip("\n"))
    sys.modules.pop("neighbour", None)
    return path


def test_train_runs_a_script_with_its_own_arguments(script, prints):
    before = list(sys.path)
    printed = prints("train", script, "first", "--path", "x y", "-v", "--epochs", "3", "--seed", "7")
    assert printed == "__main__ ['--epochs', '3', '--seed', '7', 'first', '--path', 'x y', '-v'] next door\n"
    assert prints("train", script) == "__main__ [] next door\n"
    assert sys.path == before


def test_an_error_in_a_script_names_its_line(script, refuses):
    assert refuses("train", script, "fail") == (
        "ArgumentError: fc: input must be a variable of a program, not float 0.5\n  script.py:7      ol.layer.fc(0.5, 10)"
    )


def test_an_exception_that_is_a_scripts_own_is_not_hidden(script, oarlock):
    ended = oarlock("train", script, "crash")
    assert ended.status == 1
    assert ended.error.splitlines()[-1] == "KeyError: 'their own'"


def test_train_goes_on_with_the_saved_backend_unless_another_is_given(training, prints, refuses):
    result = ol.load_model(training)
    result.program.training = replace(result.program.training, backend="cuda_graphs")
    ol.save_model(result.program, result.scope, training)
    assert 'the saved run uses the backend "cuda_graphs": give another one, or "none"' in refuses(
        "train", training, "--data", "digits:train"
    )
    prints("train", training, "--data", "digits:train", "--steps", "1", "--backend", "none")
    assert ol.load_model(training).program.training.backend is None
    assert prints("train", training, "--data", "digits:train", "--steps", "1").endswith(f"saved {training}\n")


def test_train_continues_a_saved_program_in_its_file(training, prints):
    data, _ = ol.datasets.digits.split(seed=SEED)
    expected = ol.train(ol.load_model(training), data, progress=False)
    printed = prints("train", training, "--data", "digits:train", "--validate", "digits:test").splitlines()
    assert len(printed) == 3
    for epoch, line in enumerate(printed[:2], start=1):
        metrics = r"loss \d\.\d+  accuracy \d+\.\d %  validation loss \d\.\d+  validation accuracy \d+\.\d %"
        assert re.match(rf"epoch {epoch}/2  {metrics}  ", line), line
    assert printed[-1] == f"24 steps in total; saved {training}"
    scope = ol.load_model(training).scope
    assert all(torch.equal(scope[name], expected.parameters[name]) for name in expected.parameters)


def test_train_stops_after_some_steps_and_saves_elsewhere(training, tmp_path, prints):
    before = training.read_bytes()
    other = tmp_path / "other.safetensors"
    assert prints("train", training, "--data", "digits:train", "--steps", 2, "--save", other) == f"7 steps in total; saved {other}\n"
    assert training.read_bytes() == before
    assert int(ol.load_model(other).scope["@STEP"]) == 7
    printed = prints("train", other, "--data", "digits:train", "--epochs", 3)
    assert printed.splitlines()[-1] == f"36 steps in total; saved {other}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.py"], 'MissingFileError: there is no file "none.py"'),
        (["{training}"], "ArgumentError: a saved program needs --data\n  Try: --data digits:train    (oarlock explain ArgumentError)"),
        (
            ["{training}", "--data", "digits:train", "--bogus"],
            "ArgumentError: unknown argument '--bogus'\n  Try: oarlock train --help    (oarlock explain ArgumentError)",
        ),
        (["{training}", "--data", "digits:train", "--epochs", "0"], "ArgumentError: epochs must be an integer >= 1, not 0"),
        (["{training}", "--data", "digits:train", "--steps", "-1"], "ArgumentError: steps must be an integer >= 0, not -1"),
        (["{training}", "--data", "digits:train", "--save", "none/x"], 'MissingFileError: there is no folder "none"'),
        (
            ["{model}", "--data", "digits:train"],
            "ArgumentError: this model has no training program\n"
            "  Try: save one with ol.save_model(result, path)    (oarlock explain ArgumentError)",
        ),
    ],
)
def test_train_refuses_what_it_cannot_do(arguments, message, script, training, model, refuses):
    files = {"script": script, "training": training, "model": model}
    before = training.read_bytes()
    assert refuses("train", *(argument.format(**files) for argument in arguments)) == message
    assert training.read_bytes() == before


def test_train_tells_loggers_and_validates_by_steps(training, tmp_path, prints, refuses):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    options = ("--data", "digits:train", "--validate", "digits:test", "--validate-every", 4, "--log", f"tensorboard:{tmp_path / 'events'}")
    prints("train", training, *options)
    found = events.EventAccumulator(str(tmp_path / "events"), size_guidance={"scalars": 0})
    found.Reload()
    assert [event.step for event in found.Scalars("train/accuracy")] == list(range(6, 25))
    assert [event.step for event in found.Scalars("validation/loss")] == [8, 12, 16, 20, 24]
    assert refuses("train", training, "--data", "digits:train", "--log", "tensorboard").startswith(
        'ArgumentError: "tensorboard" is not a known logger\n  a logger is tensorboard and a folder: '
    )


def test_a_saved_run_that_is_not_finite_stops_and_what_was_before_is_saved(tmp_path, oarlock):
    rows = numpy.arange(1, 13, dtype="float32").reshape(12, 1)
    with ol.Program(seed=0):
        x = ol.layer.data("x", [1])
        cost = ol.layer.mean(ol.op.log(x) + ol.layer.fc(x, 1))
    result = ol.train(cost, {"x": rows}, batch_size=2, epochs=2, steps=6, progress=False)
    ol.save_model(result, tmp_path / "run.safetensors")
    rows[7] = 0.0
    numpy.savez(tmp_path / "rows.npz", x=rows)
    ended = oarlock("train", tmp_path / "run.safetensors", "--data", tmp_path / "rows.npz")
    assert ended.status == 1
    assert re.match(r'NotFiniteError: "loss" is -inf at step \d+, in epoch 2: log made -inf\n', ended.error)
    steps = int(re.search(r"at step (\d+)", ended.error)[1]) - 1
    assert ended.output == f"stopped after {steps} steps; saved {tmp_path / 'run.safetensors'}\n"
    assert int(ol.load_model(tmp_path / "run.safetensors").scope["@STEP"]) == steps


def test_a_run_in_a_folder_goes_on_after_a_stop_and_is_listed(training, tmp_path, prints, refuses, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = tmp_path / "whole.safetensors"
    prints("train", training, "--data", "digits:train", "--epochs", 3, "--save", whole)
    part = (
        "train",
        training,
        "--data",
        "digits:train",
        "--epochs",
        3,
        "--save",
        tmp_path / "part.safetensors",
        "--run",
        "runs/one",
        "--save-every",
        4,
    )
    told = prints(*part, "--steps", 5)
    assert told == f"run runs/one\n10 steps in total; saved {tmp_path / 'part.safetensors'}\nNext: oarlock resume runs/one\n"
    assert (tmp_path / "part.safetensors").read_bytes() != whole.read_bytes()
    listed = prints("runs", "runs").split()
    assert re.fullmatch("[0-9a-f]{8}", listed[listed.index("one") :][1])
    prints("resume", "runs/one")
    assert (tmp_path / "part.safetensors").read_bytes() == whole.read_bytes()
    assert "3/3" in prints("runs", "runs").split()
    assert refuses("resume", tmp_path) == f'MissingFileError: "{tmp_path}" is not a run folder: it has no run.json'
    assert refuses("train", training, "--data", "digits:train", "--save-every", 2).startswith(
        "ArgumentError: --save-every needs a run folder"
    )


def test_train_runs_at_a_place_that_is_named(training, prints, refuses):
    prints("train", training, "--data", "digits:train", "--steps", "1", "--place", "cpu")
    prints("train", training, "--data", "digits:train", "--steps", "1", "--place", "cpu, cpu")
    index = torch.cuda.device_count()
    assert f"there is no GPU {index}: PyTorch sees {index} on this machine" in refuses(
        "train", training, "--data", "digits:train", "--place", f"gpu:{index}"
    )
    for text in ("tpu", "gpu:", "gpu:one", "gpu:-1", "", "tpu,cpu"):
        message = refuses("train", training, "--data", "digits:train", "--place", text)
        wanted = "--place takes cpu, gpu or gpu:1 (the second GPU), or several separated by commas"
        assert f"{wanted}, not {text.split(',')[0]!r}" in " ".join(message.split())


def test_opt_prints_a_program_as_passes_leave_it(training, tmp_path, oarlock, prints, refuses):
    ended = oarlock("opt", training, "--pass", "data_parallel", "--pass", "shard_optimizer", "--workers", "3", "--no-source")
    exchanges, kept = re.fullmatch(r"data_parallel: (\d+)\nshard_optimizer: (\d+)\n", ended.error).groups()
    program = ol.load_model(training).program
    assert int(exchanges) == ol.passes.data_parallel(program)
    assert int(kept) == len(ol.passes.shard_optimizer(program, workers=3))
    assert ended.output == program.to_text(source=False)
    (tmp_path / "after.txt").write_text(ended.output)
    assert prints("hash", tmp_path / "after.txt").split()[0] == ol.content_hash(program)
    changed = oarlock("opt", training, "--pass", "data_parallel", "--diff")
    assert re.search(r"^\+ .*= all_reduce\(", changed.output, re.MULTILINE)
    assert oarlock("opt", training, "--pass", "cse").output == ol.load_model(training).program.to_text()
    assert 'there is no pass "data_paralel"' in refuses("opt", training, "--pass", "data_paralel")
