"""The description of a run, for its folder and for loggers."""

import os
import platform
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from typing import Any

import numpy
import torch

from oarlock.ir.content_hash import content_hash
from oarlock.ir.program import Program

__all__ = ["describe_environment", "describe_run"]


def describe_run(program: Program, data: str, command: Sequence[str]) -> dict[str, Any]:
    """Return the settings of a run that starts now, with a new `id`."""
    assert program.training is not None
    return {
        "id": secrets.token_hex(8),
        "program": content_hash(program),
        "seed": program.seed,
        "training": asdict(program.training),
        "targets": list(program.targets),
        "data": data,
        "command": list(command),
        "working_folder": os.getcwd(),
        "started": round(time.time(), 6),
        "environment": describe_environment(),
    }


def describe_environment() -> dict[str, Any]:
    """Return the machine and the versions of the libraries that compute."""
    return {
        "oarlock": metadata.version("oarlock") if _is_installed() else "a checkout",
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def _is_installed() -> bool:
    try:
        metadata.version("oarlock")
    except metadata.PackageNotFoundError:
        return False
    return True
