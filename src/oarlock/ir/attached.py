"""The bases of `Var` and `Block`. What files of higher floors attach to these, such as `x + 1`, stands in the stub of this file."""

import importlib

from oarlock.suggestions import no_member

__all__ = ["AttachedToBlock", "AttachedToVar"]

_MEMBERS_OF_BLOCK = {
    "eval": "oarlock.runtime.block_run",
    "infer_shape": "oarlock.runtime.block_run",
    "new_op": "oarlock.registry.new_op",
    "run": "oarlock.runtime.block_run",
}
"""The file that attaches each member of a block."""


class AttachedToVar:
    """The members of `Var` that its own file does not have."""

    __slots__ = ()


class AttachedToBlock:
    """The members of `Block` that its own file does not have: each file that attaches some is loaded when one of these is first used."""

    __slots__ = ()

    def __getattr__(self, name: str) -> object:
        home = _MEMBERS_OF_BLOCK.get(name)
        if home is None:
            raise no_member("Block", name, [*dir(type(self)), *_MEMBERS_OF_BLOCK])
        importlib.import_module(home)
        return getattr(self, name)
