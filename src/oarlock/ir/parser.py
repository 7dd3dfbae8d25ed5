"""Text to program, the inverse of `printer`, so that people and tests can write programs as text.

The text gives an op's outputs by position only, so the parser needs each operator's slots from the registry.
`oarlock.registry.parse_program` combines both.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, NoReturn

from google.protobuf.message import Message

from oarlock.errors import ArgumentError, FormatError, OarlockError
from oarlock.ir.attribute import Sizes, write_attribute, write_shape
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Role
from oarlock.ir.polynomial import split_at_commas
from oarlock.ir.printer import COMMITS, ROLES
from oarlock.ir.size import Shape
from oarlock.proto import program_pb2 as wire

__all__ = ["Slots", "parse_program_desc"]

_NAME = re.compile(r"[A-Za-z0-9_./@-]+")
_VALUE = re.compile(r"-?[0-9]+(?:\.[0-9]*)?e\+[0-9]+|[A-Za-z0-9_./@-]+")
_LINE_END = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SHAPE = re.compile(r"\[([^\[\]\n]*)\]")
_INT = re.compile(r"-?[0-9]+$")
_FLOAT = re.compile(r"-?(?:[0-9]+\.[0-9]*(?:e[+-]?[0-9]+)?|[0-9]+e[+-]?[0-9]+|inf|nan)$")
_ROLES = {text: role for role, text in ROLES.items()}
_COMMITS = {text: role for role, text in COMMITS.items()}  # "commit" means the last role that prints so, update


class Slots(NamedTuple):
    """The slot names of an operator, in order."""

    inputs: Sequence[str]
    outputs: Sequence[str]


def parse_program_desc(text: str, slots_of: Callable[[str], Slots], *, version: int) -> wire.ProgramDesc:
    """Parse a printed program. Raises FormatError, with the line number, for invalid text."""
    parser = _Parser(text, slots_of)
    try:
        return parser.program(version)
    except OarlockError:
        raise
    except (ValueError, RecursionError) as error:  # a number too large for its field, invalid Unicode, or deeply nested lists
        parser.refuse(f"a valid program ({type(error).__name__})")


class _Parser:
    """A cursor over the text, and the message built so far."""

    def __init__(self, text: str, slots_of: Callable[[str], Slots]):
        self.text = text
        self.at = 0
        self.slots_of = slots_of
        self.desc = wire.ProgramDesc()
        self.commits = Role.UPDATE  # the role of commits being read

    # Words

    def refuse(self, expected: str) -> NoReturn:
        line = self.text.count("\n", 0, self.at) + 1
        rest = self.text[self.at :].split("\n", 1)[0][:60]
        raise FormatError(f"line {line}: {expected} expected", given=[f"found {rest!r}" if rest else "found the end of the line"])

    def blank(self) -> None:
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def sees(self, literal: str) -> bool:
        self.blank()
        return self.text.startswith(literal, self.at)

    def skip(self, literal: str) -> bool:
        """Move past `literal` if it is next, and return whether it was."""
        if not self.sees(literal):
            return False
        self.at += len(literal)
        return True

    def need(self, literal: str) -> None:
        if not self.skip(literal):
            self.refuse(repr(literal))

    def word(self, what: str, pattern: re.Pattern[str] = _NAME) -> str:
        self.blank()
        match = pattern.match(self.text, self.at)
        if not match:
            self.refuse(what)
        self.at = match.end()
        return match.group()

    def peek(self) -> str:
        """Return the next word without moving, or ""."""
        self.blank()
        match = _NAME.match(self.text, self.at)
        return match.group() if match else ""

    def until(self, close: str) -> Iterator[None]:
        """Yield before each item of a comma-separated list, then move past `close`."""
        while not self.skip(close):
            yield
            if not self.sees(close):
                self.need(",")

    def number(self, what: str) -> int:
        text = self.word(what)
        if not text.isdigit():
            self.refuse(what)
        return int(text)

    # The program

    def program(self, version: int) -> wire.ProgramDesc:
        self.desc.version = version
        self.keyword("program")
        self.keyword("seed")
        self.need("=")
        seed = self.number("a seed")
        if seed >= 2**64:
            self.refuse("a seed below 2**64")
        self.desc.seed = seed
        if self.peek() == "batch_size":
            self.keyword("batch_size")
            self.need("=")
            self.desc.training.batch_size = self.number("a batch size")
            self.keyword("epochs")
            self.need("=")
            self.desc.training.epochs = self.number("a number of epochs")
            if self.peek() == "backend":
                self.keyword("backend")
                self.need("=")
                self.desc.training.backend = self.word("a backend")
        self.block(parent=None, role=Role.FORWARD)
        while self.peek() == "target":
            self.keyword("target")
            label = self.word("a label")
            self.need("=")
            self.desc.targets.add(label=label, var=self.word("a variable"))
        self.blank()
        if self.at < len(self.text):
            self.refuse("the end of the text")
        return self.desc

    def keyword(self, text: str) -> None:
        if self.peek() != text:
            self.refuse(repr(text))
        self.word(text)

    def block(self, parent: int | None, role: Role) -> tuple[int, str]:
        """Parse a block and its contents. Return its index and name."""
        self.keyword("block")
        index = len(self.desc.blocks)
        desc = self.desc.blocks.add(name=self.word("a block's name"))
        if parent is not None:
            desc.parent = parent
        self.need("(")
        for _ in self.until(")"):
            desc.inputs.append(self.typed(desc, stops=parent is None).name)
        if self.skip("->"):
            self.need("(")
            desc.outputs.extend(self.names(")"))
        self.need("{")
        while not self.skip("}"):
            role = self.statement(desc, index, role)
        return index, desc.name

    def statement(self, desc: wire.BlockDesc, index: int, role: Role) -> Role:
        """Parse one line and the blocks below it. Return the role of the following lines."""
        start, word = self.at, self.peek()
        if word in (*_ROLES, *_COMMITS):
            self.word(word)
            if self.skip(":") and _LINE_END.match(self.text, self.at):  # otherwise it is a variable of that name
                self.commits = _COMMITS.get(word, self.commits)
                return _ROLES.get(word, role)
            self.at = start
        if word in ("parameter", "frozen", "state", "var", "value"):
            self.word(word)
            if not self.sees(":") and not self.sees("<-"):
                self.declaration(desc, word)
                return role
            self.at = start
        if word and not self.sees("["):
            self.word("a variable")
            if self.skip("<-"):
                op = desc.ops.add(type="assign", role=int(self.commits))  # type: ignore[arg-type]
                op.inputs.add(name="x", vars=[self.word("a variable")])
                op.outputs.add(name="y", vars=[word])
                self.op_name(op)
                return role
            self.at = start
        self.op(desc, index, role)
        return role

    def declaration(self, desc: wire.BlockDesc, word: str) -> None:
        if word == "value":
            name = self.word("an input")
            self.need("=")
            var = next((var for var in desc.vars if var.name == name), None)
            if var is None:
                self.refuse(f"an input of the block instead of {name}")
            self.initializer(var)
            return
        if word == "frozen":
            self.keyword("parameter")
        var = self.typed(desc, stops=word == "state")
        var.persistable = word != "var"
        var.parameter = word in ("parameter", "frozen")
        var.trainable = word == "parameter"
        self.marks(var)
        if self.skip("="):
            self.initializer(var)

    def marks(self, var: wire.VarDesc) -> None:
        """Parse the marks that are next: `shard(axis=1, workers=4)`, `place(1)`, `update(rate_factor=0.5)`."""
        for name in self.marked("shard", var.sharding, "axis or workers"):
            setattr(var.sharding, name, self.number("a number"))
        if self.opens("place"):
            var.place = self.number("the number of a place")
            self.need(")")
        for name in self.marked("update", var.update, "a setting of updates"):
            value = self.value()
            if not isinstance(value, float):
                self.refuse("a float")
            setattr(var.update, name, value)

    def opens(self, mark: str) -> bool:
        """Move past `mark` and a parenthesis if they are next. Without the parenthesis, `mark` is a variable on the next line."""
        start = self.at
        if self.peek() == mark and self.word(mark) and self.skip("("):
            return True
        self.at = start
        return False

    def marked(self, mark: str, fields: Message, what: str) -> Iterator[str]:
        """Yield before the value of each field in parentheses after `mark`, if that is next."""
        if not self.opens(mark):
            return
        fields.SetInParent()
        for _ in self.until(")"):
            name = self.word(what)
            if name not in fields.DESCRIPTOR.fields_by_name:
                self.refuse(f"{what} instead of {name}")
            self.need("=")
            yield name

    def typed(self, desc: wire.BlockDesc, *, stops: bool) -> wire.VarDesc:
        """Parse `x: float32[n, 3]`, an optional `row_splits_of`, and an optional `gradient` or `stop_gradient`."""
        var = desc.vars.add(name=self.word("a variable"))
        self.need(":")
        var.dtype = self.dtype(self.word("a dtype")).number  # type: ignore[assignment]
        shape = self.shape()
        if shape is not None:
            write_shape(shape, var.shape)
        self.partition(var)
        mark = self.word("a mark") if self.peek() in ("gradient", "stop_gradient") else ""
        var.stop_gradient = mark == "stop_gradient" if mark else stops
        return var

    def partition(self, var: wire.VarDesc) -> None:
        """Parse `row_splits_of words.t` if it is next, but not a variable of that name on the next line."""
        start = self.at
        if self.peek() in ("row_splits_of", "partitions"):  # the name in format version 1
            self.word("a mark")
            if self.sees(":") or self.sees("<-"):
                self.at = start
            else:
                var.row_splits_of = self.word("a symbol")

    def dtype(self, name: str) -> DType:
        try:
            return DType(name)
        except ValueError:
            self.refuse(f"a dtype instead of {name}")

    def shape(self) -> Shape | None:
        """Parse `[n, 3]`; return None for `[*]`."""
        self.blank()
        match = _SHAPE.match(self.text, self.at)
        if not match:
            self.refuse("a shape")
        self.at = match.end()
        text = match.group(1).strip()
        if text == "*":
            return None
        sizes = [size.strip() for size in split_at_commas(text)] if text else []
        return tuple(int(size) if size.lstrip("-").isdigit() else size for size in sizes)

    def names(self, close: str) -> list[str]:
        """Parse variables up to and including `close`."""
        return [self.word("a variable") for _ in self.until(close)]

    # Ops

    def op(self, desc: wire.BlockDesc, index: int, role: Role) -> None:
        outputs: list[list[str]] = []
        while not self.skip("="):
            if outputs:
                self.need(",")
            several = self.until("]") if self.skip("[") else [None]
            outputs.append([self.typed(desc, stops=False).name for _ in several])
        type = self.word("an operator")
        slots = self.slots_of(type)
        op = desc.ops.add(type=type, role=int(role))  # type: ignore[arg-type]
        if len(outputs) > len(slots.outputs):
            self.refuse(f"at most {len(slots.outputs)} outputs of {type}")
        for slot, names in zip(slots.outputs, outputs, strict=False):
            op.outputs.add(name=slot, vars=names)
        self.need("(")
        blocks: dict[str, wire.AttributeDesc] = {}
        for _ in self.until(")"):
            name = self.word("a slot or an attribute")
            self.need("=")
            if name in slots.inputs:
                op.inputs.add(name=name, vars=self.names("]") if self.skip("[") else [self.word("a variable")])
            elif self.skip("{"):
                blocks[self.word("a block's name")] = op.attributes.add(name=name)
                self.need("}")
            elif self.skip("$"):
                op.attributes.add(name=name, var=self.word("a variable"))
            else:
                self.attribute(name, op.attributes.add())
        self.op_name(op)
        for _ in blocks:
            number, name = self.block(parent=index, role=role)
            if name not in blocks:
                self.refuse(f"one of the blocks {', '.join(blocks)} instead of {name}")
            blocks[name].block = number

    def op_name(self, op: wire.OpDesc) -> None:
        """Parse the name of an op, `as "scores"`, if it has one, but not a variable called `as` on the next line."""
        start = self.at
        if self.peek() == "as":
            self.word("as")
            if self.sees('"'):
                op.name = self.string()
            else:
                self.at = start

    def initializer(self, var: wire.VarDesc) -> None:
        var.initializer.type = self.word("an initializer")
        self.need("(")
        for _ in self.until(")"):
            name = self.word("an attribute")
            self.need("=")
            self.attribute(name, var.initializer.attributes.add())

    def attribute(self, name: str, desc: wire.AttributeDesc) -> None:
        value = self.value()
        try:
            write_attribute(name, value, desc)
        except ArgumentError as error:
            self.refuse(f"a valid attribute ({error.message})")

    def value(self) -> object:
        """Parse the value of an attribute."""
        self.blank()
        if self.sees('"'):
            return self.string()
        if self.skip("["):
            return tuple(self.value() for _ in self.until("]"))
        word = self.word("a value", _VALUE)
        if word == "shape":
            return Sizes(self.shape() or ())
        if word == "bytes":
            self.need("(")
            data = self.string()
            self.need(")")
            try:
                return base64.b64decode(data, validate=True)
            except ValueError:
                self.refuse("bytes in base64")
        if word in ("true", "false"):
            return word == "true"
        if _INT.match(word):
            number = int(word)
            if not -(2**63) <= number < 2**63:
                self.refuse("a 64-bit integer")
            return number
        if _FLOAT.match(word):
            return float(word)
        return self.dtype(word)

    def string(self) -> str:
        self.blank()
        match = _STRING.match(self.text, self.at)
        if not match:
            self.refuse("a string")
        self.at = match.end()
        try:
            return json.loads(match.group())
        except ValueError:
            self.refuse("a string")
