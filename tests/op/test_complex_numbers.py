"""Complex numbers: their types, numbers beside them, how they are fed, begun, saved and read; what is refused. Values and gradients of
operators are compared where those of all others are, with differences and with PyTorch.
"""

import math

import numpy
import pytest
import safetensors.torch
import torch
from tolerances import AUTOGRAD, MOMENTS

import oarlock as ol
from oarlock.io.container import write_container
from oarlock.io.tensor_file import TensorFile
from oarlock.registry.text import parse_program

Z = numpy.array([1 + 2j, -0.5 + 0.25j, 3j])


def run(program: ol.Program, feed: dict[str, object], fetch: list[ol.Var], **options: bool) -> list[numpy.ndarray]:
    return ol.Executor(**options).run(program, feed, fetch, scope=ol.Scope())


def test_types_tell_parts_and_wholes():
    with ol.Program():
        z, w = ol.layer.data("z", [3], "complex64"), ol.layer.data("w", [3], "complex128")
        x = ol.layer.data("x", [3], "float64")
        assert [ol.op.real(z).dtype, ol.op.abs(w).dtype, ol.op.abs(x).dtype] == [ol.DType.FLOAT32, ol.DType.FLOAT64, ol.DType.FLOAT64]
        assert [ol.op.complex(x, x).dtype, ol.op.rfft(x).dtype, ol.op.irfft(z).dtype] == [
            ol.DType.COMPLEX128,
            ol.DType.COMPLEX128,
            ol.DType.FLOAT32,
        ]
        with pytest.raises(ol.DTypeError, match=r"^add: y is complex128, but x is complex64; they must have the same dtype"):
            z + w
        with pytest.raises(ol.DTypeError, match=r"^less: x must be a real number, not complex64"):
            z < 1.0  # noqa: B015
        with pytest.raises(ol.DTypeError, match=r"^real: z must be complex, not float64"):
            ol.op.real(x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_the_part_of_no_complex_number(dtype: str):
    with ol.Program() as program:
        x = ol.layer.data("x", [4, 2], dtype)
        for build in (lambda: ol.op.complex(x, x), lambda: ol.op.view_as_complex(x), lambda: ol.op.polar(x, x), lambda: ol.op.rfft(x)):
            with pytest.raises(ol.DTypeError, match=f"must be float32 or float64, not {dtype}: no complex dtype has such parts"):
                build()
        with pytest.raises(ol.DTypeError, match=f"^fft: x must be complex, or float32 or float64, not {dtype}"):
            ol.op.fft(x)
    assert program.main.ops == []


def test_numbers_stand_beside_complex_variables():
    with ol.Program() as program:
        z = ol.layer.data("z", [3], "complex128", batch=None)
        y = (2j - z) * (1.5 + 0.5j) + 3 - z / numpy.complex64(2j)
    expected = (2j - Z) * (1.5 + 0.5j) + 3 - Z / 2j
    for options in ({}, {"interpret": True, "check": True}):
        numpy.testing.assert_allclose(run(program, {"z": Z}, [y], **options)[0], expected, *AUTOGRAD)


@pytest.mark.parametrize(
    ("dtype", "number", "message"),
    [
        ("float32", 1j, '"x" is float32, which cannot represent 1j'),
        ("int64", 1 + 0.5j, r'"x" is int64, which cannot represent \(1\+0.5j\)'),
        ("complex64", 1e300j, '"x" is complex64, which cannot represent 1e[+]300j'),
        ("complex64", "1", '"x" and str .* do not combine'),
    ],
)
def test_a_number_that_a_dtype_does_not_hold_is_refused(dtype: str, number: object, message: str):
    with ol.Program() as program:
        x = ol.layer.data("x", [3], dtype)
        with pytest.raises(ol.OarlockError, match=message):
            x + number
    assert program.main.ops == []


def test_a_complex_number_that_is_real_is_one_number_of_the_program():
    with ol.Program() as program:
        x = ol.layer.data("x", [3])
        _ = x + (2 + 0j), ol.layer.data("z", [3], "complex64") * (2 + 0j)
    assert [op.type for op in program.main.ops] == ["full", "add", "full", "multiply"]


def test_complex_numbers_become_real_ones_by_no_cast():
    with ol.Program():
        z = ol.layer.data("z", [3], "complex64")
        with pytest.raises(ol.DTypeError) as raised:
            ol.op.cast(z, dtype="float32")
    assert raised.value.message == "cast: x is complex64, but float32 cannot hold its imaginary part"
    assert raised.value.hint == "use ol.op.real(x) or ol.op.abs(x)"


def test_feeds_of_arrays_tensors_and_numbers_of_python_are_taken():
    with ol.Program() as program:
        y = ol.op.conj(ol.layer.data("z", [3], "complex64", batch=None))
    for fed in (Z.astype("complex64"), torch.tensor(Z).to(torch.complex64).conj().conj(), Z.tolist(), [1, 2.5, 1j]):
        expected = numpy.conj(numpy.asarray(fed, dtype="complex64"))
        assert run(program, {"z": fed}, [y])[0].tobytes() == expected.tobytes()
    lazily = torch.tensor(Z).to(torch.complex64).conj()  # which PyTorch conjugates when somebody reads it
    assert numpy.array_equal(run(program, {"z": lazily}, [y])[0], Z.astype("complex64"))
    with pytest.raises(ol.FeedError, match='^"z" must be complex64, not complex128'):
        run(program, {"z": Z}, [y])
    with pytest.raises(ol.FeedError, match='^"z" must be complex64, not float32'):
        run(program, {"z": numpy.ones(3, "float32")}, [y])
    with ol.Program() as program:
        y = ol.layer.data("x", [3], batch=None) * 2.0
    with pytest.raises(ol.FeedError, match='^"x" must be float32, not complex64'):
        run(program, {"x": [1.0, 2.0, 1j]}, [y])


def model(dtype: str, initializer: object = None) -> tuple[ol.Program, ol.Var, ol.Var]:
    with ol.Program(seed=3) as program:
        z = ol.layer.data("z", [4], dtype)
        w = ol.layer.create_parameter([4], dtype=dtype, name="w", initializer=initializer)
        y = ol.op.multiply(z, w)
    return program, w, y


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_program_of_complex_numbers_is_the_same_text_and_the_same_bytes_again(dtype: str):
    program, _, y = model(dtype, ol.initializer.array([1j, 2, 3 + 1j, 0]))
    assert f"{dtype}[n, 4]" in str(program)
    read = parse_program(str(program))
    assert [(var.name, var.type_text) for var in read.main.vars.values()] == [
        (var.name, var.type_text) for var in program.main.vars.values()
    ]
    assert str(parse_program(str(read))) == str(read)
    again = ol.Program.from_bytes(program.to_bytes())
    assert again.to_bytes() == program.to_bytes()
    feed = {"z": numpy.ones((2, 4), dtype)}
    scope = ol.init(again, ol.Scope())
    found = ol.Executor().run(again, feed, [again.main.vars[y.name]], scope=scope)[0]
    assert numpy.array_equal(found[0], numpy.array([1j, 2, 3 + 1j, 0], dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_model_file_holds_complex_parameters_as_their_parts(dtype: str, tmp_path):
    program, _, y = model(dtype)
    scope = ol.init(program, ol.Scope())
    path = tmp_path / "model.safetensors"
    ol.save_model(y, scope, path)
    loaded = ol.load_model(path)
    kept, found = scope.var("w").get(torch.Tensor), loaded.scope.var("w").get(torch.Tensor)
    assert found.dtype is kept.dtype
    assert torch.equal(found, kept)
    held = safetensors.torch.load_file(path)["w"]
    assert torch.equal(held, torch.view_as_real(kept))
    feed = {"z": numpy.ones((1, 4), dtype)}
    assert numpy.array_equal(ol.infer(loaded, feed)[0], kept.numpy())


def test_a_file_whose_parts_are_not_those_of_its_program_is_refused(tmp_path):
    program, _, y = model("complex64")
    scope, path = ol.init(program, ol.Scope()), tmp_path / "model.safetensors"
    write_container(path, ol.prune(program, {"predict": y}).to_bytes(), {"w": torch.zeros(4, 3)})
    with pytest.raises(ol.FormatError, match=r'^the file has "w" as float32\[4, 3\]'):
        ol.load_model(path)
    assert scope.var("w").is_set


def test_weights_of_others_are_read_where_safetensors_has_them(tmp_path):
    weights = torch.tensor(Z).to(torch.complex64)
    safetensors.torch.save_file({"w": weights}, tmp_path / "weights.safetensors")
    with TensorFile.open(tmp_path / "weights.safetensors") as file:
        assert file.entries["w"].type_text == "complex64[3]"
        assert torch.equal(file.read("w"), weights)


@pytest.mark.parametrize(
    ("initializer", "mean", "size"),
    [
        (ol.initializer.normal(2.0, 3.0), 2.0, 3.0),
        (ol.initializer.uniform(-1.0, 1.0), 0.0, math.sqrt(1 / 3)),
    ],
    ids=["normal", "uniform"],
)
def test_complex_first_values_are_as_large_as_real_ones(initializer, mean: float, size: float):
    with ol.Program(seed=1) as program:
        ol.layer.create_parameter([200, 300], dtype="complex64", name="w", initializer=initializer)
    scope = ol.init(program, ol.Scope())
    w = scope.var("w").get(torch.Tensor).to(torch.complex128) - mean
    count = w.numel()
    assert abs(complex(w.mean())) < MOMENTS * size / math.sqrt(count)
    assert abs(float(w.abs().square().mean().sqrt()) / size - 1.0) < MOMENTS / math.sqrt(count)
    assert abs(float((w.real * w.imag).mean())) < MOMENTS * size**2 / math.sqrt(count)


def test_first_values_that_know_no_complex_numbers_are_refused():
    with ol.Program(), pytest.raises(ol.DTypeError, match="^the initializer orthogonal yields floats, but the parameter is complex64"):
        ol.layer.create_parameter([4, 4], dtype="complex64", name="w", initializer=ol.initializer.orthogonal())
    with ol.Program(), pytest.raises(ol.DTypeError, match="^array: a float32 parameter cannot hold complex numbers"):
        ol.layer.create_parameter([2], name="v", initializer=ol.initializer.array([1j, 2]))


def test_a_gradient_begins_at_real_numbers_or_is_given():
    with ol.Program():
        z = ol.layer.data("z", [3], "complex64", batch=None)
        with pytest.raises(ol.GradientError) as raised:
            ol.gradients(z * 1j, z)
        cost = ol.op.reduce_sum(z)
        with pytest.raises(ol.GradientError, match='^the cost must be one float, yet "reduce_sum_0" is complex64') as other:
            ol.append_backward(cost)
    assert raised.value.message == '"multiply_0" is complex64[3], and no gradient is given that begins there'
    assert raised.value.hint == ("a gradient is one of real numbers: take ol.op.real(x) or ol.op.abs(x), or give target_gradients")
    assert other.value.hint == "ol.op.real(x) and ol.op.abs(x) are floats"


def test_a_gradient_with_respect_to_a_complex_number_is_pytorchs():
    z = torch.tensor(Z, requires_grad=True)
    (z * z.conj() * (1 + 1j) / (z + 2)).abs().sum().backward()
    with ol.Program() as program:
        x = ol.layer.data("z", [3], "complex128", batch=None)
        cost = ol.op.reduce_sum(ol.op.abs(x * ol.op.conj(x) * (1 + 1j) / (x + 2)))
        (dz,) = ol.gradients(cost, x)
    for options in ({}, {"interpret": True, "check": True}):
        numpy.testing.assert_allclose(run(program, {"z": Z}, [dz], **options)[0], z.grad.numpy(), *AUTOGRAD)


def test_numpy_computes_real_numbers_alone():
    with ol.Program() as program:
        y = ol.op.conj(ol.layer.data("z", [3], "complex64", batch=None))
    with pytest.raises(ol.ProgramError, match="^NumPy has no kernel for conj of complex numbers"):
        ol.Executor(backend="numpy").run(program, {"z": Z.astype("complex64")}, [y], scope=ol.Scope())


def test_compositions_of_complex_numbers_are_pytorchs():
    z, w = torch.tensor(Z), torch.tensor(Z[::-1].copy()) * (0.5 - 1j)
    with ol.Program() as program:
        x, y = ol.layer.data("z", [3], "complex128", batch=None), ol.layer.data("w", [3], "complex128", batch=None)
        found = [
            ol.op.vector_norm(x),
            ol.op.vector_norm(x, order=3.0),
            ol.op.normalize(x, axis=0),
            ol.op.vecdot(x, y),
            ol.op.isclose(x, y),
            ol.op.softsign(x),
            ol.op.einsum("i,j->ij", x, y),
            x**2.0,
            x**-0.5,
        ]
    expected = [
        torch.linalg.vector_norm(z),
        torch.linalg.vector_norm(z, 3),
        z / torch.linalg.vector_norm(z),
        torch.linalg.vecdot(z, w),
        torch.isclose(z, w),
        torch.nn.functional.softsign(z),
        torch.einsum("i,j->ij", z, w),
        z**2.0,
        z**-0.5,
    ]
    for options in ({}, {"interpret": True, "check": True}):
        for ours, theirs in zip(run(program, {"z": Z, "w": w.numpy()}, found, **options), expected, strict=True):
            torch.testing.assert_close(torch.from_numpy(numpy.asarray(ours)), theirs, rtol=AUTOGRAD[0], atol=AUTOGRAD[1])
