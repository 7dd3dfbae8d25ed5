"""`ol.framework`: operations created from messages, as in the Framework document."""

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
    """Append the op that an OpDesc describes to `block`, by default the current one; return it.

    Types are inferred, and missing outputs are declared. Raises the errors of calling the operator, UnknownOperatorError,
    UndefinedVarError, and VerifyError for an invalid attribute.
    """
    return append_desc(current_block() if block is None else block, desc)


class OperationCreators(SimpleNamespace):
    """A namespace of functions by operator name, with `len` and iteration over the names."""

    def __len__(self) -> int:
        return len(vars(self))

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __contains__(self, name: object) -> bool:
        return name in vars(self)


def create_operation_creators(catalogue: Catalogue = standard) -> OperationCreators:
    """Create a function per registered operator from its OpProto, with slots and attributes as keyword arguments only.

    `ol.op` has the same functions, created on first use. A name that is a Python keyword gets a trailing underscore.
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
    """Declare a tensor with a unique name in the current block; it takes the type of the operator that writes it."""
    block = current_block()
    return block.new_var(block.program.unique("tensor"))


suggest_names(__name__)
