"""The layout of a model file, filled in by who knows neither this package nor PyTorch: the bytes that the library writes."""

import hashlib
import io

import pytest
import safetensors.torch
import torch

from oarlock.io.container import DTYPES, PROGRAM, as_stored, lay_out, read_container, write_container
from oarlock.tensor.dtype import to_torch

NAMES = ["w", 'ä "quoted"\n', "0" * 64, "z@MOMENT1", "\x01", "a/b", "é", "B", "_", "10", "9"]


def tensors() -> dict[str, torch.Tensor]:
    dtypes = zip(NAMES, DTYPES.values(), strict=False)
    made = {name: torch.arange(7 + number).to(to_torch(dtype)) for number, (name, dtype) in enumerate(dtypes)}
    parts = torch.complex(torch.arange(3.0), torch.ones(3))
    return made | {"scalar": torch.tensor(3.0), "nothing": torch.zeros(0, 3), "turned": torch.arange(12.0).view(3, 4).t(), "parts": parts}


def filled(held: dict[str, torch.Tensor], *, model: bool) -> bytes:
    """A file of tensors by its layout."""
    layout = lay_out(held, model=model)
    data = bytearray(layout.size)
    data[: len(layout.header)] = layout.header
    for name, (begin, size) in layout.places.items():
        if size:
            data[begin : begin + size] = as_stored(held[name]).contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    if model:
        digest = hashlib.sha256()
        for text, begin, size in layout.digested:
            digest.update(text.encode() + data[begin : begin + size])
        data[layout.digest : layout.digest + 64] = digest.hexdigest().encode()
    return bytes(data)


def test_a_model_by_its_layout_has_the_bytes_of_one_that_is_written():
    written = io.BytesIO()
    write_container(written, b"a program", tensors())
    made = filled({PROGRAM: torch.frombuffer(bytearray(b"a program"), dtype=torch.uint8), **tensors()}, model=True)
    assert made == written.getvalue()
    assert read_container(made)[0] == b"a program"


@pytest.mark.parametrize("names", [[], ["w", "scalar", "nothing", "10"]])
def test_tensors_alone_have_the_bytes_that_the_library_writes(names):
    held = {name: tensors()[name] for name in names}
    assert filled(held, model=False) == safetensors.torch.save(held)
