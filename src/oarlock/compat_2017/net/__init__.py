"""Net and NetBuilder, the faces that the net design gave to a program: thin, for a net is a block."""

from oarlock.compat_2017.net.builder import NetBuilder
from oarlock.compat_2017.net.network import Net
from oarlock.suggestions import no_attribute

__all__ = ["Net", "NetBuilder"]


def __getattr__(name: str) -> object:
    raise no_attribute(__name__, name, __all__)
