"""Net and NetBuilder, the 2017 interface to a program, as thin wrappers of its main block."""

from oarlock.compat_2017.net.builder import NetBuilder
from oarlock.compat_2017.net.network import Net
from oarlock.registry.checked_call import publish

__all__ = ["Net", "NetBuilder"]

publish(__name__)
