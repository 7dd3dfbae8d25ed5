"""Net and NetBuilder, the faces that the net design gave to a program: thin, for a net is a block."""

from oarlock.compat_2017.net.builder import NetBuilder
from oarlock.compat_2017.net.network import Net
from oarlock.registry.checked_call import publish

__all__ = ["Net", "NetBuilder"]

publish(__name__)
