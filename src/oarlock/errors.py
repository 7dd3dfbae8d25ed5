"""All exceptions of Oarlock.

    OarlockError
    ├── while a program is built
    │   ├── ShapeError            ValueError    sizes do not fit an operator's signature
    │   ├── DTypeError            TypeError     a signature does not accept a dtype
    │   ├── ArgumentError         TypeError     an attribute or argument is wrong
    │   ├── UnknownOperatorError  LookupError   there is no operator of that name
    │   ├── UndefinedVarError     LookupError   no variable of that name is visible
    │   ├── ProgramError          ValueError    programs are mixed, a name is used twice, a block is unfinished
    │   ├── GradientError         ValueError    a path has no gradient
    │   ├── UnsupportedError      NotImplementedError  a model of another framework cannot be imported
    │   └── DeclarationError      ValueError    the declaration of an operator is wrong
    ├── while a program runs
    │   ├── FeedError             ValueError    the feed does not fit the inputs
    │   ├── UnsetVarError         LookupError   a variable has no value
    │   ├── KernelError           RuntimeError  PyTorch raised an error
    │   ├── NotFiniteError        ArithmeticError  a loss is NaN or infinite
    │   ├── ScopeError            RuntimeError  a scope or handle is used after it was dropped
    │   └── WorkerError           RuntimeError  another worker of the run has ended, or does not answer
    └── while a file is read or written
        ├── MissingFileError      FileNotFoundError  there is no such file
        ├── ReadError             OSError       the system refuses to read a file
        ├── FormatError           ValueError    a file is not an Oarlock file, truncated, or modified
        ├── VerifyError           ValueError    a program violates a rule of the language
        ├── LimitError            ValueError    a file exceeds a limit of the reader
        ├── TrainingProgramError  ValueError    a training program is used for inference only
        ├── DataError             ValueError    data is missing or invalid
        └── WriteError            OSError       the system refuses to write a file

Each class calls for a different reaction, which its docstring describes; `oarlock explain NAME` prints it. Tools should read the fields of
an error, not its text.
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
    """The base class of all errors of Oarlock.

    Fields, each `None` or empty if it does not apply: `message`, the problem in one line; `location`, the source line of the user;
    `contract`, the violated rule or the operator's signature; `running`, the position of execution; `given`, the arguments, one line each;
    `hint`, a fix; `op`, the type of the operator. The text has at most 4 KiB.
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
    r"""Return `text` with control and other unprintable characters escaped, such as `\\x1b`, so that it is safe to print in a terminal.

    With `lines`, line ends and tabs are kept. The memory is proportional to the text.
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(_escaped(text[at : at + _PIECE], kept) for at in range(0, len(text), _PIECE))


def _escaped(text: str, kept: str) -> str:
    return "".join(letter if letter.isprintable() or letter in kept else letter.encode("unicode_escape").decode() for letter in text)


def _line(text: str) -> str:
    """Return one line of a message, printable and truncated. Untrusted text from files is made safe here, and only here."""
    return _cut(visible(text[: _LONGEST_LINE + 1]), _LONGEST_LINE)


def _cut(text: str, longest: int) -> str:
    """Truncate `text` to `longest` bytes."""
    data = text.encode(errors="replace")
    return text if len(data) <= longest else data[: longest - 3].decode(errors="ignore") + "..."


class ShapeError(OarlockError, ValueError):
    """Sizes do not fit an operator's signature.

    Cause: two arguments give the same named size different values, or an argument has the wrong rank.

        x = ol.layer.data("x", shape=[784])
        y = ol.op.linear(x, w)              # wrong if w is [748, 10]: k is 784 in x, 748 in w

    Fix: the message names the size and the two arguments; make their sizes equal. Two different symbols (`n`, `m`) are two different
    sizes, even if they have the same value in a run.
    """

    __module__ = "oarlock"


class DTypeError(OarlockError, TypeError):
    """An operator does not accept a dtype, or two dtypes should be equal.

    Cause: integers for a `float` in the signature, or a mix of float32 and float64.

        ol.op.relu(label)                             # wrong if label is int64
        ol.op.relu(ol.op.cast(label, dtype="float32"))  # right: dtypes are only converted explicitly
    """

    __module__ = "oarlock"


class ArgumentError(OarlockError, TypeError):
    """An argument or attribute is missing, unknown, or of the wrong type.

    ol.layer.dropout(x, ratio=0.5)    # wrong
    ol.layer.dropout(x, rate=0.5)     # right; `oarlock ops dropout` describes the operator
    """

    __module__ = "oarlock"


class UnknownOperatorError(OarlockError, LookupError):
    """There is no operator of this name.

    Cause: a misspelling, or a program with a custom operator that is not registered in this process. Import the module that declares the
    operator before loading the program.
    """

    __module__ = "oarlock"


class UndefinedVarError(OarlockError, LookupError):
    """No variable of this name is visible in the block.

    A block sees its own variables and those of its enclosing blocks, but not those of a sibling or nested block. Return a value from a
    block through its outputs.
    """

    __module__ = "oarlock"


class ProgramError(OarlockError, ValueError):
    """A program is put together inconsistently.

    Cause: variables of two programs in one operator, a name used twice in one block, or an unfinished step block. Build each model inside
    one `with ol.Program() as program:`.
    """

    __module__ = "oarlock"


class GradientError(OarlockError, ValueError):
    """A gradient is requested along a path without one.

        index = ol.op.argmax(scores)
        ol.append_backward(ol.layer.mean(ol.op.cast(index, dtype="float32")))   # wrong

    Cause: an operator on every path from the target to a variable has no gradient there. Mark the value `stop_gradient` if no gradient is
    wanted, or declare one (docs/guides/add_an_operator.md).
    """

    __module__ = "oarlock"


class UnsupportedError(OarlockError, NotImplementedError):
    """A model of another framework cannot be imported, because no program can express it or an import rule is missing. Nothing was created.

    `given` lists every such place: the operator, its number of uses, its module and its source line. Change the model there, or import
    only the supported part of it.
    """

    __module__ = "oarlock"


class DeclarationError(OarlockError, ValueError):
    """The declaration of an operator is wrong: its signature, kernel and gradients do not agree.

    The positional parameters of a kernel are the inputs of its signature, in order; its keyword-only parameters are its attributes.
    docs/guides/add_an_operator.md shows a whole declaration.
    """

    __module__ = "oarlock"


class FeedError(OarlockError, ValueError):
    """The feed does not fit the inputs of the program: their names, shapes, dtypes or sizes.

        executor.run(program, feed={"image": x.astype("float64")})   # wrong for a float32 input
        executor.run(program, feed={"image": x.astype("float32")})   # right

    A symbol such as `n` has one value in a run: every input with this leading size has the same number of rows.
    """

    __module__ = "oarlock"


class UnsetVarError(OarlockError, LookupError):
    """A variable that a run needs has no value.

    Initialize parameters with `ol.init(program, scope)`, or load them from a file; feed inputs by name.
    """

    __module__ = "oarlock"


class KernelError(OarlockError, RuntimeError):
    """PyTorch raised an error while computing an op; it is the `__cause__`.

    The step is abandoned before anything is written: all parameters are unchanged.
    """

    __module__ = "oarlock"


class NotFiniteError(OarlockError, ArithmeticError):
    """A loss, or a parameter after an update, became NaN or infinite, and training stopped before that step.

    `result`, an `ol.TrainingResult`, has the state before the step; `ol.save_model` saves it. The message names the operator that produced
    the first such number, its source line and its inputs. Causes: a learning rate that is too large, a logarithm, root or quotient of 0,
    overflow of an exponential, or NaN in the data. `ol.train(..., not_finite="warn")` continues instead.
    """

    __module__ = "oarlock"

    result: Any = None


class ScopeError(OarlockError, RuntimeError):
    """A scope, or a handle to one of its variables, was used after the scope was dropped or the variable was erased.

    Names are unique in a scope, and scopes and variables are not copied; copy values with `other.set(name, scope[name])`.
    """

    __module__ = "oarlock"


class WorkerError(OarlockError, RuntimeError):
    """An exchange of tensors failed, because another worker of the run has ended or did not answer in time.

    The step is abandoned before anything is written. Restart all workers, as torchrun does; they resume from the last checkpoint of the
    run.
    """

    __module__ = "oarlock"


class MissingFileError(OarlockError, FileNotFoundError):
    """There is no file at the given path."""

    __module__ = "oarlock"


class ReadError(OarlockError, OSError):
    """The system refused to open or read a file; its exception, with the error number, is the `__cause__`.

    Cause: no permission, too many open files, or a name that is too long. Nothing was loaded. Get read permission or close other files,
    and load it again.
    """

    __module__ = "oarlock"


class FormatError(OarlockError, ValueError):
    """A file is not a model of Oarlock, or was damaged or modified.

    Nothing was loaded. Download the file again, or save it again with `ol.save_model`.
    """

    __module__ = "oarlock"


class VerifyError(OarlockError, ValueError):
    """A program violates a rule of the language; nothing of it was run.

    The message names the block, the op and the variable. `oarlock check FILE` prints the same.
    """

    __module__ = "oarlock"


class LimitError(OarlockError, ValueError):
    """A file or program exceeds a limit of the reader.

    The limits protect against files made to exhaust memory. If you trust the file, raise the limit with the argument that the message
    names; a file can never raise its own limit.
    """

    __module__ = "oarlock"


class TrainingProgramError(OarlockError, ValueError):
    """A training program was given to a function that only infers.

        oarlock.inference.load_model("training.safetensors")   # wrong: it updates parameters

    Save only the prediction, `ol.save_model(predict, parameters, FILE)`, or load the file with `ol.load_model`, which supports gradients
    and updates.
    """

    __module__ = "oarlock"


class DataError(OarlockError, ValueError):
    """A data set is unknown, missing on this machine, or does not match its checksum."""

    __module__ = "oarlock"


class WriteError(OarlockError, OSError):
    """The system refused to write a file; its exception, with the error number, is the `__cause__`.

    Cause: no space, a read-only file or folder, a limit on file sizes, or a name that is too long. The file at the path is unchanged, and
    no temporary file is left. Free disk space, get write permission, or use another path.
    """

    __module__ = "oarlock"
