"""Net and NetBuilder, the faces that the net design gave to a program: thin, for a net is a block."""

from oarlock.net.builder import NetBuilder
from oarlock.net.network import Net

__all__ = ["Net", "NetBuilder"]
