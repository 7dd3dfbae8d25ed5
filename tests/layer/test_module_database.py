"""A few modules of PyTorch's database; `tools/module_database.py` runs all. It is private, so a sample may change with PyTorch."""

import importlib
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

NAMES = ["AdaptiveAvgPool2d", "Conv2d", "ConvTranspose1d", "GroupNorm", "LSTM", "LSTMCell", "MultiheadAttention", "TransformerDecoderLayer"]
SAMPLES = 4


pytestmark = pytest.mark.slow  # PyTorch's testing code takes seconds to import; test_beside_torch.py has these layers, too


@pytest.fixture(scope="module")
def database() -> Iterator[ModuleType]:
    pytest.importorskip("expecttest")
    tools = str(Path(__file__).resolve().parents[2] / "tools")
    sys.path.insert(0, tools)
    try:
        yield importlib.import_module("module_database")
    finally:
        sys.path.remove(tools)


@pytest.mark.filterwarnings("ignore")  # PyTorch's own, of how its samples are called
@pytest.mark.parametrize("name", NAMES)
def test_samples_of_a_module_agree(database, name):
    info = next(info for info in database.module_db if info.module_cls.__name__ == name)
    found = itertools.islice(database.samples(info), 0, 400, 9 if name in ("LSTM", "TransformerDecoderLayer", "MultiheadAttention") else 1)
    reasons = [database.judge(*sample) for sample in itertools.islice(found, SAMPLES)]
    assert reasons
    assert not any(reasons), reasons
