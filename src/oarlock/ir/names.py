"""Names: which are legal, which are generated, and what each suffix means."""

import re

from oarlock.errors import ProgramError
from oarlock.ir.location import here

__all__ = ["ALIASES", "CONSTANT", "COUNTER", "DRAWS", "forward_name", "gradient_name", "is_name", "next_name", "require_user_name"]

_NAME = re.compile(r"[A-Za-z0-9_./@-]{1,256}", re.ASCII)

COUNTER = "@STEP"
"""The program's step counter: how many steps have been committed."""

DRAWS = "@RANDOM"
"""The program's random state: how many runs that train have drawn random numbers."""


ALIASES = "@ALIASES"
"""The other names of parameters, a JSON object from those to theirs: an imported module has tied ones by all of their names."""

CONSTANT = "@CONSTANT"
"""Ends the name of what an imported module computes once, and its state dict does not hold."""


def is_name(text: str) -> bool:
    """Whether a variable or block may be called `text`: 1 to 256 of `A-Z a-z 0-9 _ . / @ -`, no `..`."""
    return bool(_NAME.fullmatch(text)) and ".." not in text


def require_user_name(name: str) -> str:
    """Return `name` if a user may give it. Raises ProgramError; `@` and `/` are ours."""
    if not isinstance(name, str) or not is_name(name) or "@" in name or "/" in name:
        raise ProgramError(
            f"{name!r:.80} cannot be a variable's name",
            location=here(),
            contract="a name has 1 to 256 of the characters A-Z a-z 0-9 _ . - and no '..'",
        )
    return name


def gradient_name(name: str) -> str:
    """The name of the gradient of the variable `name`."""
    return f"{name}@GRAD"


def next_name(name: str) -> str:
    """The name of the value that replaces the persistable variable `name` at the end of a step."""
    return f"{name}@NEXT"


_MARKS = re.compile(r"@[^.]*")


def forward_name(name: str) -> str:
    """The name of the block that a block called `name` is the gradient of, or is computed again for: `rnn_0.body` of `rnn_0@GRAD.body`.

    Random numbers are keyed by it, so that both draw the same.
    """
    return _MARKS.sub("", name)
