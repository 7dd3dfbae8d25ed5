"""The bases of `Var` and `Block`. Members attached by higher layers, such as `x + 1`, are declared in this file's stub."""

import importlib

from oarlock.suggestions import no_member

__all__ = ["AttachedToBlock", "AttachedToVar"]

_MEMBERS_OF_BLOCK = {
    "eval": "oarlock.runtime.block_run",
    "infer_shape": "oarlock.runtime.block_run",
    "new_op": "oarlock.registry.new_op",
    "run": "oarlock.runtime.block_run",
}
"""The module that attaches each member of a block."""


class AttachedToVar:
    """The members of `Var` that are attached by other modules."""

    __slots__ = ()


class AttachedToBlock:
    """The members of `Block` that are attached by other modules. Those modules are imported on first use."""

    __slots__ = ()

    def __getattr__(self, name: str) -> object:
        home = _MEMBERS_OF_BLOCK.get(name)
        if home is None:
            raise no_member("Block", name, [*dir(type(self)), *_MEMBERS_OF_BLOCK])
        importlib.import_module(home)
        return getattr(self, name)
