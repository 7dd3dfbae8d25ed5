"""Errors of ours as answers: a status, and the fields of the error as JSON."""

import json

from oarlock.errors import KernelError, LimitError, OarlockError, ShapeError, UndefinedVarError

__all__ = ["Refusal", "error_body", "status_of", "too_much"]


class Refusal(Exception):  # noqa: N818  it carries an error
    """An `error` of ours with the `status` of its answer, the seconds after which to `retry` if that helps, and the `limit` it met."""

    def __init__(self, status: int, error: OarlockError, *, retry: int | None = None, limit: str | None = None):
        super().__init__(str(error))
        self.status = status
        self.error = error
        self.retry = retry
        self.limit = limit


def too_much(limit: str, message: str, *, hint: str) -> Refusal:
    """A refusal, by status 413, of a request that goes beyond a `limit` of `ServingLimits`, or whose answer would."""
    return Refusal(413, LimitError(message, hint=hint), limit=limit)


def status_of(error: OarlockError) -> int:
    """The status for an error: 404 for a name that is not there, 422 for values that a run refuses, 400 for any other request."""
    if isinstance(error, UndefinedVarError):
        return 404
    if isinstance(error, KernelError | LimitError | ShapeError):
        return 422
    return 400


def error_body(error: OarlockError) -> bytes:
    """`{"error": ..., "type": ...}` and what else the error says; but not the line of the author, which is none of the caller's."""
    fields = {
        "error": error.message,
        "type": type(error).__name__,
        "contract": error.contract,
        "given": list(error.given),
        "hint": error.hint,
    }
    return json.dumps({name: value for name, value in fields.items() if value}).encode()
