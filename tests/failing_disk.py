"""A disk that fails while a checkpoint is written: in this process, or in the one that writes, which runs this file instead of ours."""

import importlib.util
import io
import json
import os
import sys
from types import ModuleType

__all__ = ["FailingDisk", "environment_of", "fail_in"]

_VARIABLE = "OARLOCK_FAILING_DISK"


class FailingDisk:
    """The functions of the system that checkpoints call, of which one fails at its call of this number; a write then has written half."""

    def __init__(self, operation: str, number: int, fault: int):
        self.operation, self.left, self.fault = operation, number, fault

    def __getattr__(self, name: str):
        return self.failing(name, getattr(os, name)) if name == self.operation else getattr(os, name)

    def failing(self, name: str, real):
        def call(*arguments, **keywords):
            if name == "open" and len(arguments) > 1 and arguments[1] == os.O_RDWR:  # the lock, which is no part of a checkpoint
                return real(*arguments, **keywords)
            self.left -= 1
            if not self.left:
                raise OSError(self.fault, os.strerror(self.fault))
            return real(*arguments, **keywords)

        return call

    def write_half(self, file: io.BufferedWriter, data: bytes) -> None:
        self.left -= self.operation == "write"
        file.write(data if self.left else data[: len(data) // 2])
        file.flush()
        if not self.left:
            raise OSError(self.fault, os.strerror(self.fault))


def fail_in(module: ModuleType, operation: str, number: int, fault: int, patch=setattr) -> None:
    """Let the module that writes checkpoints meet such a disk."""
    disk = FailingDisk(operation, number, fault)
    if operation == "write":
        patch(module, "_write", disk.write_half)
    else:
        patch(module, "os", disk)


def environment_of(module: ModuleType, operation: str, number: int, fault: int) -> tuple[str, str]:
    """The variable of the environment by which a process that runs this file is told of it."""
    return _VARIABLE, json.dumps([module.__file__, operation, number, fault])


if __name__ == "__main__":
    file, *given = json.loads(os.environ[_VARIABLE])
    spec = importlib.util.spec_from_file_location("checkpoint_writing", file)
    assert spec is not None
    assert spec.loader is not None
    writing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writing)
    fail_in(writing, *given)
    writing.serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
