"""`ol.framework`: operations made of messages, as the Framework document has them, for whatever language writes the message."""

import keyword
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from oarlock.ir.block import Block
from oarlock.ir.block_stack import current_block
from oarlock.ir.operation import Op
from oarlock.ir.var import Var
from oarlock.proto import program_pb2 as wire
from oarlock.registry import Catalogue, op_proto, standard
from oarlock.registry.description import append_desc
from oarlock.suggestions import suggest_names

__all__ = ["OperationCreators", "create_operation", "create_operation_creators", "tensor"]


def create_operation(desc: "wire.OpDesc", block: Block | None = None) -> Op:
    """Append the op that an OpDesc describes to `block`, the current one unless given; return it.

    Its types are inferred, and its outputs declared where they are not. Raises what calling the operator raises,
    UnknownOperatorError, UndefinedVarError, and VerifyError for an attribute that is not readable.
    """
    return append_desc(current_block() if block is None else block, desc)


class OperationCreators(SimpleNamespace):
    """Functions by the names of operators: attributes; `len` and iteration are over the names."""

    def __len__(self) -> int:
        return len(vars(self))

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __contains__(self, name: object) -> bool:
        return name in vars(self)


def create_operation_creators(catalogue: Catalogue = standard) -> OperationCreators:
    """A function per registered operator, made from its OpProto: keyword arguments only, slots and attributes by name.

    `ol.op` is the same, made when first used. A name that is a Python keyword has an underscore after it.
    """
    protos = [op_proto(operator) for operator in catalogue]
    return OperationCreators(**{proto.type + "_" * keyword.iskeyword(proto.type): _creator(proto, catalogue) for proto in protos})


def _creator(proto: "wire.OpProto", catalogue: Catalogue) -> Callable[..., object]:
    def create(**arguments: Any) -> object:
        return catalogue.get(proto.type)(**arguments)

    create.__name__ = create.__qualname__ = proto.type
    create.__doc__ = catalogue.get(proto.type).__doc__
    return create


def tensor() -> Var:
    """A tensor without a name of the user's, in the current block; it takes the type of the operator that writes it."""
    block = current_block()
    return block.new_var(block.program.unique("tensor"))


suggest_names(__name__)
