"""The bases of `Var` and `Block`. What files of higher floors attach to these, such as `x + 1`, stands in the stub of this file."""

__all__ = ["AttachedToBlock", "AttachedToVar"]


class AttachedToVar:
    """The members of `Var` that its own file does not have."""

    __slots__ = ()


class AttachedToBlock:
    """The members of `Block` that its own file does not have."""

    __slots__ = ()
