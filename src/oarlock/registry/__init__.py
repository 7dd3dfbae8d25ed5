"""Declaration of operators, and everything derived from declarations. Does not import torch."""

import oarlock.registry.new_op  # noqa: F401  it attaches `Block.new_op`
from oarlock.old_names import OLD_REGISTRY_FUNCTIONS, renamed
from oarlock.registry.case import Case, GradCheck, Rejects
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.creator import append_op, create
from oarlock.registry.declaration import Operator
from oarlock.registry.decorator import operator
from oarlock.registry.description import op_proto
from oarlock.registry.fused_operator import fused_backward
from oarlock.registry.text import parse_program
from oarlock.registry.type_check import require_legal, typecheck
from oarlock.suggestions import no_attribute

__all__ = [
    "Case",
    "Catalogue",
    "GradCheck",
    "Operator",
    "Rejects",
    "append_op",
    "create",
    "fused_backward",
    "op_proto",
    "operator",
    "parse_program",
    "require_legal",
    "standard",
    "typecheck",
]


def __getattr__(name: str) -> object:
    if name in OLD_REGISTRY_FUNCTIONS:
        return globals()[renamed("function", name, OLD_REGISTRY_FUNCTIONS)]
    raise no_attribute(__name__, name, __all__)
