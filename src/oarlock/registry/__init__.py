"""How an operator is declared, and everything that follows from a declaration. No torch."""

from oarlock.registry.case import Case, GradCheck, Rejects
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.creator import create
from oarlock.registry.operator import Operator, operator
from oarlock.registry.opproto import op_proto
from oarlock.registry.text import parse_program
from oarlock.registry.typecheck import typecheck

__all__ = ["Case", "Catalogue", "GradCheck", "Operator", "Rejects", "create", "op_proto", "operator", "parse_program", "standard", "typecheck"]
