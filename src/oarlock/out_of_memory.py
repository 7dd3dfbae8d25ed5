"""Out-of-memory errors as LimitError."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from oarlock.errors import LimitError

__all__ = ["is_out_of_memory", "out_of_memory", "refuses_memory"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory ran out, in Python, PyTorch or protobuf, which have no specific class for it."""
    return isinstance(error, MemoryError) or "allocate memory" in str(error) or "bad_alloc" in str(error)


def out_of_memory(what: str) -> LimitError:
    """Return the error for an operation that ran out of memory."""
    hint = "free memory, or raise the limit of the process (ulimit -v)"
    return LimitError(f"{what}: not enough memory", hint=hint)


def refuses_memory(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function that reads files, so that it raises LimitError if memory runs out."""

    @wraps(function)
    def checked(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
        try:
            return function(*arguments, **keywords)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        raise out_of_memory(function.__name__)  # raised here, after the frames with large data were released

    return checked
