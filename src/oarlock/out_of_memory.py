"""Memory that the system refuses, as an error of ours."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from oarlock.errors import LimitError

__all__ = ["is_out_of_memory", "out_of_memory", "refuses_memory"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was refused: by Python, or by PyTorch or protobuf, which have no class of their own for it."""
    return isinstance(error, MemoryError) or "allocate memory" in str(error) or "bad_alloc" in str(error)


def out_of_memory(what: str) -> LimitError:
    """The error for an operation that the system gives too little memory."""
    hint = "free memory, or raise the limit of the process (ulimit -v)"
    return LimitError(f"{what}: it needs more memory than the system gives", hint=hint)


def refuses_memory(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a function that reads files raise LimitError if memory is refused."""

    @wraps(function)
    def checked(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
        try:
            return function(*arguments, **keywords)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        raise out_of_memory(function.__name__)  # here, where the frames that hold what was read are gone

    return checked
