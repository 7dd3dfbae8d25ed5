"""Errors as HTTP answers: a status, and the fields of the error as JSON."""

import json

from oarlock.errors import KernelError, LimitError, OarlockError, ShapeError, UndefinedVarError

__all__ = ["LESS_MEMORY", "Refusal", "error_body", "status_of", "too_much"]


class Refusal(Exception):  # noqa: N818  wraps an error
    """An `error` with the HTTP `status` of its answer, the seconds after which to `retry` if that helps, and the exceeded `limit`."""

    def __init__(self, status: int, error: OarlockError, *, retry: int | None = None, limit: str | None = None):
        super().__init__(str(error))
        self.status = status
        self.error = error
        self.retry = retry
        self.limit = limit


LESS_MEMORY = "send fewer or shorter rows, or raise oarlock serve FILE --run-bytes"
"""The hint of a run that needs more than `run_bytes`."""


def too_much(limit: str, message: str, *, hint: str) -> Refusal:
    """Return a refusal with status 413 for a request or answer that exceeds a `limit` of `ServingLimits`."""
    return Refusal(413, LimitError(message, hint=hint), limit=limit)


def status_of(error: OarlockError) -> int:
    """Return the HTTP status of an error: 404 for an unknown name, 422 for values rejected by a run, 400 otherwise."""
    if isinstance(error, UndefinedVarError):
        return 404
    if isinstance(error, KernelError | LimitError | ShapeError):
        return 422
    return 400


def error_body(error: OarlockError) -> bytes:
    """Format an error: `{"error": ..., "type": ...}` and its other fields, except the source location, which is not for clients."""
    fields = {
        "error": error.message,
        "type": type(error).__name__,
        "contract": error.contract,
        "given": list(error.given),
        "hint": error.hint,
    }
    return json.dumps({name: value for name, value in fields.items() if value}).encode()
