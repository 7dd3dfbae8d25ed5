"""Every exception of Oarlock.

    OarlockError
    ├── while a program is written
    │   ├── ShapeError            ValueError    sizes that do not fit an operator's signature
    │   ├── DTypeError            TypeError     a dtype that a signature does not take
    │   ├── ArgumentError         TypeError     a wrong attribute or argument
    │   ├── UnknownOperatorError  LookupError   no operator of that name
    │   ├── UndefinedVarError     LookupError   no variable of that name is visible
    │   ├── ProgramError          ValueError    programs mixed, names used twice, a block left open
    │   ├── GradientError         ValueError    a path without a gradient
    │   ├── UnsupportedError      NotImplementedError  a model of another framework that no program can be
    │   └── DeclarationError      ValueError    an operator declared wrongly
    ├── while a program runs
    │   ├── FeedError             ValueError    what was fed does not fit what was declared
    │   ├── UnsetVarError         LookupError   a variable that has no value yet
    │   ├── KernelError           RuntimeError  PyTorch refused
    │   ├── NotFiniteError        ArithmeticError  a loss that is NaN or infinite
    │   ├── ScopeError            RuntimeError  a handle or a scope used after it was dropped
    │   └── WorkerError           RuntimeError  another worker of the run has ended, or does not answer
    └── while a file is read, or written
        ├── MissingFileError      FileNotFoundError  no such file
        ├── ReadError             OSError       the system does not let a file be read
        ├── FormatError           ValueError    not a file of ours, truncated, or changed
        ├── VerifyError           ValueError    a program that breaks a rule of the language
        ├── LimitError            ValueError    a file larger than the reader allows
        ├── TrainingProgramError  ValueError    a training program given to something that only infers
        ├── DataError             ValueError    data that is missing, or not what was asked for
        └── WriteError            OSError       the system does not let a file be written

A class exists where a reader has to *do* something different; its docstring says what, and
`oarlock explain NAME` prints it. Tools read the fields, never the text.
"""

from collections.abc import Sequence
from typing import Any

__all__ = [
    "ArgumentError",
    "DTypeError",
    "DataError",
    "DeclarationError",
    "FeedError",
    "FormatError",
    "GradientError",
    "KernelError",
    "LimitError",
    "MissingFileError",
    "NotFiniteError",
    "OarlockError",
    "ProgramError",
    "ReadError",
    "ScopeError",
    "ShapeError",
    "TrainingProgramError",
    "UndefinedVarError",
    "UnknownOperatorError",
    "UnsetVarError",
    "UnsupportedError",
    "VerifyError",
    "WorkerError",
    "WriteError",
]


class OarlockError(Exception):
    """Anything that Oarlock refuses.

    Fields, each `None` or empty where it does not apply:
    `message` what broke, in one line; `location` where the user wrote it; `contract` the rule, an
    operator's signature as a rule; `running` where execution stood; `given` what was given, a line
    per argument; `hint` what to do; `op` the operator's type. The text has at most 4 KiB.
    """

    __module__ = "oarlock"

    def __init__(
        self,
        message: str,
        *,
        location: object | None = None,
        contract: str | None = None,
        running: str | None = None,
        given: Sequence[str] = (),
        hint: str | None = None,
        op: str | None = None,
    ):
        message = _line(message)
        super().__init__(message)
        self.message = message
        self.location = location
        self.contract = contract and _line(contract)
        self.running = running and _line(running)
        self.given = tuple(_line(line) for line in given[:_MOST_GIVEN])
        self.hint = hint and _line(hint)
        self.op = op and _line(op)

    def __str__(self) -> str:
        lines = [self.message]
        if self.location is not None:
            lines.append(f"  {_line(str(self.location))}")
        if self.contract:
            lines.append(f"  {self.contract}")
        if self.running:
            lines.append(f"  running   {self.running}")
        lines += [f"      {line}" for line in self.given]
        if self.hint:
            lines.append(f"  Try: {self.hint}    (oarlock explain {type(self).__name__})")
        return _cut("\n".join(lines), _LONGEST)


_LONGEST = 4096
_LONGEST_LINE = 1500
_MOST_GIVEN = 64
_PIECE = 2**16


def visible(text: str, *, lines: bool = False) -> str:
    """`text` as a terminal may show it: what steers one, or cannot be seen, as its escape, such as `\\x1b`.

    With `lines`, the ends of lines and tabulators stay. Memory in proportion to the text.
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(_escaped(text[at : at + _PIECE], kept) for at in range(0, len(text), _PIECE))


def _escaped(text: str, kept: str) -> str:
    return "".join(letter if letter.isprintable() or letter in kept else letter.encode("unicode_escape").decode() for letter in text)


def _line(text: str) -> str:
    """One line of a message: what a file says neither steers a terminal nor fills a log. Text from files is made so here, and only here."""
    return _cut(visible(text[: _LONGEST_LINE + 1]), _LONGEST_LINE)


def _cut(text: str, longest: int) -> str:
    """`text` in at most so many bytes: what a file says never fills a log."""
    data = text.encode(errors="replace")
    return text if len(data) <= longest else data[: longest - 3].decode(errors="ignore") + "..."


class ShapeError(OarlockError, ValueError):
    """Sizes do not fit an operator's signature.

    Cause: two arguments give the same named size different values, or have the wrong rank.

        x = ol.layer.data("x", shape=[784])
        y = ol.op.linear(x, w)              # wrong where w is [748, 10]: k is 784 in x, 748 in w

    Repair: the message names the size and the two arguments; give one of them the other's size.
    Two different symbols (`n`, `m`) are two different sizes, even if they happen to be equal in a run.
    """

    __module__ = "oarlock"


class DTypeError(OarlockError, TypeError):
    """A dtype that an operator does not take, or two that should be one.

    Cause: integers where the signature says `float`, or float32 beside float64.

        ol.op.relu(label)                             # wrong where label is int64
        ol.op.relu(ol.op.cast(label, dtype="float32"))  # right: dtypes change only where you say so
    """

    __module__ = "oarlock"


class ArgumentError(OarlockError, TypeError):
    """An argument or attribute that is missing, unknown, or of the wrong kind.

    ol.layer.dropout(x, ratio=0.5)    # wrong
    ol.layer.dropout(x, rate=0.5)     # right; `oarlock ops dropout` prints the page
    """

    __module__ = "oarlock"


class UnknownOperatorError(OarlockError, LookupError):
    """No operator has this name.

    Cause: a misspelling, or a program that uses a custom operator which this process has not
    registered. Import the module that declares the operator before loading the program.
    """

    __module__ = "oarlock"


class UndefinedVarError(OarlockError, LookupError):
    """No variable of this name is visible from where it was asked for.

    A block sees its own variables and those of the blocks around it, never those of a sibling or of
    a block inside it. Hand a value out of a block through its outputs.
    """

    __module__ = "oarlock"


class ProgramError(OarlockError, ValueError):
    """A program put together in a way that cannot mean anything.

    Cause: variables of two programs in one operator, a name used twice in one block, a step block
    that was never finished. Build each model inside one `with ol.Program() as program:`.
    """

    __module__ = "oarlock"


class GradientError(OarlockError, ValueError):
    """A gradient was asked for along a path that has none.

        index = ol.op.argmax(scores)
        ol.append_backward(ol.layer.mean(ol.op.cast(index, dtype="float32")))   # wrong

    Cause: an operator on every path from the target to a variable has no gradient there. Mark the
    value `stop_gradient` if no gradient is wanted, or declare one (docs/guides/add_an_operator.md).
    """

    __module__ = "oarlock"


class UnsupportedError(OarlockError, NotImplementedError):
    """A model of another framework does what no program can, or what nothing here imports yet. Nothing was made.

    `given` lists every such place: the operator, how often it stands there, the module it stands in, and the author's line. Change the
    model there, or import the part of it that can be.
    """

    __module__ = "oarlock"


class DeclarationError(OarlockError, ValueError):
    """An operator is declared wrongly: its signature, its kernel and its gradients do not agree.

    The positional parameters of a kernel are the inputs of its signature, in order; its keyword-only
    parameters are its attributes. docs/guides/add_an_operator.md shows a whole declaration.
    """

    __module__ = "oarlock"


class FeedError(OarlockError, ValueError):
    """The feed does not fit the declarations of the program: its names, shapes, dtypes or sizes.

        executor.run(program, feed={"image": x.astype("float64")})   # wrong for a float32 input
        executor.run(program, feed={"image": x.astype("float32")})   # right

    A symbol such as `n` has one value in a run: every input that leads with it has that many rows.
    """

    __module__ = "oarlock"


class UnsetVarError(OarlockError, LookupError):
    """A run needs the value of a variable that has none.

    Fill parameters with `ol.init(program, scope)`, or load them from a file; feed inputs by name.
    """

    __module__ = "oarlock"


class KernelError(OarlockError, RuntimeError):
    """PyTorch refused to compute an op on the values it was given; its exception is `__cause__`.

    The step is abandoned before anything is written: every parameter is as it was.
    """

    __module__ = "oarlock"


class NotFiniteError(OarlockError, ArithmeticError):
    """A loss, or a parameter by its update, became NaN or infinite, and training stopped before that step.

    `result`, an `ol.TrainingResult`, is what was trained until then: nothing of the step is in it, and `ol.save_model` saves it. The
    message names the operator that first made such a number, the line that wrote it, and what it was given. Causes: a learning rate that is
    too large, a logarithm, root or quotient of 0, exponentials that overflow, a row of the data that is not finite.
    `ol.train(..., not_finite="warn")` goes on instead.
    """

    __module__ = "oarlock"

    result: Any = None


class ScopeError(OarlockError, RuntimeError):
    """A scope, or a handle to one of its variables, was used after the scope was dropped, or after the variable was erased.

    Names are unique in a scope, and scopes and variables are not copied: take values, `other.set(name, scope[name])`.
    """

    __module__ = "oarlock"


class WorkerError(OarlockError, RuntimeError):
    """Another worker of the run has ended, or did not answer in time, so that an exchange of tensors failed.

    The step is abandoned before anything is written. All workers begin again, from the last checkpoint of the run: torchrun starts them.
    """

    __module__ = "oarlock"


class MissingFileError(OarlockError, FileNotFoundError):
    """There is no file at the path that was given."""

    __module__ = "oarlock"


class ReadError(OarlockError, OSError):
    """The system did not let a file be opened or read; its exception, with the number, is `__cause__`.

    Cause: the file is not yours to read, too many files are open, a name that is too long. Nothing was loaded. Get the right to read it,
    or close other files, and load it again.
    """

    __module__ = "oarlock"


class FormatError(OarlockError, ValueError):
    """A file that is not a model of ours, or is no longer what was written.

    Nothing was loaded. Fetch the file again, or save it again with `ol.save_model`.
    """

    __module__ = "oarlock"


class VerifyError(OarlockError, ValueError):
    """A program that breaks a rule of the language; nothing of it was run.

    The message names the block, the op and the variable. `oarlock check FILE` prints the same.
    """

    __module__ = "oarlock"


class LimitError(OarlockError, ValueError):
    """A file or program larger than the reader allows.

    The limits protect against files made to exhaust memory. Where the file is yours, raise the limit
    by the argument that the message names; a file can never raise its own.
    """

    __module__ = "oarlock"


class TrainingProgramError(OarlockError, ValueError):
    """A training program was given to something that can only infer.

        oarlock.inference.load_model("training.safetensors")   # wrong: it updates parameters

    Save the part that predicts, `ol.save_model(predict, parameters, FILE)`, or load the file with
    `ol.load_model`, which knows gradients and updates.
    """

    __module__ = "oarlock"


class DataError(OarlockError, ValueError):
    """A data set that is unknown, missing on this machine, or not what its checksum says."""

    __module__ = "oarlock"


class WriteError(OarlockError, OSError):
    """The system did not let a file be written; its exception, with the number, is `__cause__`.

    Cause: no room is left, the folder or the file is read-only, a limit on the size of files, a name that is too long. What stood at
    the path is as it was, and nothing stands beside it. Make room or get the rights there, or save to another place.
    """

    __module__ = "oarlock"
