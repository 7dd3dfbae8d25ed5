"""The page of errors."""

import inspect
from collections.abc import Iterator

from reference_pages.markdown import verbatim

from oarlock import errors


def error_classes() -> Iterator[str]:
    yield from (
        "# Errors",
        "",
        "`oarlock explain` prints this tree, `oarlock explain NAME` the text of an error. All are names of `oarlock`.",
        "",
        *verbatim(inspect.getdoc(errors)),
    )
    for name in errors.__all__:
        yield from ("", f"## {name}", "", *verbatim(inspect.getdoc(getattr(errors, name))))
