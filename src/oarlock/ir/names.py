"""Names: which are legal, which are generated, and the meaning of their suffixes."""

import re

from oarlock.errors import ProgramError
from oarlock.ir.location import here

__all__ = ["ALIASES", "CONSTANT", "COUNTER", "DRAWS", "forward_name", "gradient_name", "is_name", "next_name", "require_user_name"]

_NAME = re.compile(r"[A-Za-z0-9_./@-]{1,256}", re.ASCII)

COUNTER = "@STEP"
"""The step counter of a program: the number of committed steps."""

DRAWS = "@RANDOM"
"""The random state of a program: the number of training runs that have drawn random numbers."""


ALIASES = "@ALIASES"
"""The aliases of parameters, a JSON object from alias to name: imported modules may have tied parameters with several names."""

CONSTANT = "@CONSTANT"
"""The suffix of constants that an imported module computes once and that are not in its state dict."""


def is_name(text: str) -> bool:
    """Return whether `text` is a legal name of a variable or block: 1 to 256 of `A-Z a-z 0-9 _ . / @ -`, no `..`."""
    return bool(_NAME.fullmatch(text)) and ".." not in text


def require_user_name(name: str) -> str:
    """Return `name` if it is legal for user variables. Raises ProgramError; `@` and `/` are reserved."""
    if not isinstance(name, str) or not is_name(name) or "@" in name or "/" in name:
        raise ProgramError(
            f"{name!r:.80} cannot be a variable's name",
            location=here(),
            contract="a name has 1 to 256 of the characters A-Z a-z 0-9 _ . - and no '..'",
        )
    return name


def gradient_name(name: str) -> str:
    """Return the name of the gradient of variable `name`."""
    return f"{name}@GRAD"


def next_name(name: str) -> str:
    """Return the name of the value assigned to the persistable variable `name` at the end of a step."""
    return f"{name}@NEXT"


_MARKS = re.compile(r"@[^.]*")


def forward_name(name: str) -> str:
    """Return the forward name of a block, without generated marks: `rnn_0.body` for `rnn_0@GRAD.body`.

    Random numbers are keyed by it, so that a gradient or recomputed block draws the same numbers.
    """
    return _MARKS.sub("", name)
