"""ParameterOptions: how one parameter of a layer starts, is called and is trained."""

from dataclasses import dataclass, fields

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.update_settings import UpdateSettings
from oarlock.layer.current_place import require_place
from oarlock.layer.initializer import Rule

__all__ = ["Given", "ParameterOptions", "as_options", "require_unnamed"]


@dataclass(frozen=True)
class ParameterOptions:
    """Options of one parameter, for any layer that makes one: ``ol.layer.fc(x, 10, weight=ol.layer.ParameterOptions(...))``.

    `initializer` is a rule of `ol.initializer`, in place of the layer's own. `name` is what the parameter is called; layers that call one
    alike, and want it in one shape, share it. Without `trainable` it is frozen: it keeps its first value, or what it is given. `shard` is
    the axis along which workers divide it, as `ol.passes.tensor_parallel` says, `place` the number of the place at which it lies, in place
    of what `ol.at_place` says. The others are for its updates, in place of what the
    optimizer has for all or beside it, as `UpdateSettings` says: the learning rate times `rate_factor`, `weight_decay`, the penalties `l1`
    and `l2`, and how its gradient is clipped. A rule by itself, ``weight=ol.initializer.orthogonal()``, says only how the parameter
    starts. Raises ArgumentError.
    """

    initializer: Rule | None = None
    name: str | None = None
    trainable: bool = True
    shard: int | None = None
    place: int | None = None
    rate_factor: float = 1.0
    weight_decay: float | None = None
    l1: float = 0.0
    l2: float = 0.0
    clip_value: float | None = None
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        if self.initializer is not None and not callable(self.initializer):
            raise ArgumentError(
                f"ParameterOptions: initializer is a rule, not {self.initializer!r:.60}",
                location=here(),
                hint="ol.initializer.constant(0.5)",
            )
        if self.name is not None:
            require_user_name(self.name)
        if not isinstance(self.trainable, bool):
            raise ArgumentError(f"ParameterOptions: trainable is True or False, not {self.trainable!r:.60}", location=here())
        if self.shard is not None and (isinstance(self.shard, bool) or not isinstance(self.shard, int) or self.shard < 0):
            raise ArgumentError(f"ParameterOptions: shard is an axis, counted from 0, not {self.shard!r:.60}", location=here())
        if self.place is not None:
            require_place(self.place)
        _ = self.update_settings  # which are checked when they are made

    @property
    def update_settings(self) -> UpdateSettings:
        """The settings of its updates, as the variable carries them."""
        return UpdateSettings(**{field.name: getattr(self, field.name) for field in fields(UpdateSettings)})


Given = ParameterOptions | Rule
"""Options, or only how a parameter starts."""


def as_options(given: Given | None, what: str) -> ParameterOptions:
    """The options that were given for a parameter, `what` of a layer. Raises ArgumentError."""
    if given is None or isinstance(given, ParameterOptions):
        return given or _NONE
    if not callable(given):
        raise ArgumentError(
            f"{what} is options of a parameter, or a rule by which it starts, not {given!r:.60}",
            location=here(),
            hint="ol.layer.ParameterOptions(initializer=ol.initializer.normal())",
        )
    return ParameterOptions(initializer=given)


_NONE = ParameterOptions()


def require_unnamed(kind: str, *given: Given | bool | None) -> None:
    """Raises ArgumentError where options for several parameters give them one name."""
    for options in given:
        if isinstance(options, ParameterOptions) and options.name is not None:
            raise ArgumentError(
                f'{kind}: its parameters cannot all be called "{options.name}"',
                location=here(),
                hint="options without a name go to all of them",
            )
