"""ParameterOptions: initializer, name and training settings of one parameter of a layer, and the default place of parameters."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.update_settings import UpdateSettings
from oarlock.layer.initializer import Rule
from oarlock.registry.range_check import require_count

__all__ = ["Given", "ParameterOptions", "as_options", "at_place", "current_place", "require_place", "require_unnamed"]

_current: ContextVar[int] = ContextVar("oarlock_place", default=0)


@contextmanager
def at_place(number: int) -> Iterator[None]:
    """Make place `number` the default for parameters and layer state declared in this context; outside it, that is 0.

    Places are numbered in the order in which they are given to a run. An op that reads a parameter is computed at the parameter's place;
    see docs/guides/places.md. `with` statements nest, and each thread has its own default. Raises ArgumentError unless `number` is an
    integer from 0.

        with ol.at_place(1):
            x = ol.layer.fc(x, 4096, act="relu")
        executor = ol.Executor([ol.CPUPlace(), ol.CPUPlace()])  # or GPUs: ol.GPUPlace(0), ol.GPUPlace(1)
    """
    before = _current.set(require_place(number))
    try:
        yield
    finally:
        _current.reset(before)


def current_place() -> int:
    """Return the number of the default place of parameters."""
    return _current.get()


def require_place(number: object) -> int:
    """Return `number` if it is a valid place number. Raises ArgumentError."""
    return require_count("the number of a place", number, least=0, most=2**31 - 1)


@dataclass(frozen=True)
class ParameterOptions:
    """Options of one parameter, for any layer with parameters: ``ol.layer.fc(x, 10, weight=ol.layer.ParameterOptions(...))``.

    `initializer` is a rule of `ol.initializer` that replaces the layer's default; to set nothing else, pass the rule itself, as in
    ``weight=ol.initializer.orthogonal()``. `name` is the name of the parameter; layers that use the same name and shape share it.
    ``trainable=False`` freezes the parameter: it keeps its initial or assigned value. `shard` is the axis along which workers divide it
    under `ol.passes.tensor_parallel`. `place` is the number of its place and overrides `ol.at_place`.

    The other options apply to its updates and override or extend the optimizer's settings, as described in `UpdateSettings`: `rate_factor`
    multiplies the learning rate, `weight_decay`, the penalties `l1` and `l2`, and gradient clipping by `clip_value` and `clip_norm`. Raises
    ArgumentError.
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
                f"ParameterOptions: initializer must be a rule, not {self.initializer!r:.60}",
                location=here(),
                hint="ol.initializer.constant(0.5)",
            )
        if self.name is not None:
            require_user_name(self.name)
        if not isinstance(self.trainable, bool):
            raise ArgumentError(f"ParameterOptions: trainable must be True or False, not {self.trainable!r:.60}", location=here())
        if self.shard is not None and (isinstance(self.shard, bool) or not isinstance(self.shard, int) or self.shard < 0):
            raise ArgumentError(f"ParameterOptions: shard must be an axis, counted from 0, not {self.shard!r:.60}", location=here())
        if self.place is not None:
            require_place(self.place)
        _ = self.update_settings  # validates them

    @property
    def update_settings(self) -> UpdateSettings:
        """The settings of its updates, as stored in the variable."""
        return UpdateSettings(**{field.name: getattr(self, field.name) for field in fields(UpdateSettings)})


Given = ParameterOptions | Rule
"""Options of a parameter, or only its initializer."""


def as_options(given: Given | None, what: str) -> ParameterOptions:
    """Return the options given for a parameter; `what` names it in errors. Raises ArgumentError."""
    if given is None or isinstance(given, ParameterOptions):
        return given or _NONE
    if not callable(given):
        raise ArgumentError(
            f"{what} must be ParameterOptions or an initializer, not {given!r:.60}",
            location=here(),
            hint="ol.layer.ParameterOptions(initializer=ol.initializer.normal())",
        )
    return ParameterOptions(initializer=given)


_NONE = ParameterOptions()


def require_unnamed(kind: str, *given: Given | bool | None) -> None:
    """Raise ArgumentError if options for several parameters contain a name."""
    for options in given:
        if isinstance(options, ParameterOptions) and options.name is not None:
            raise ArgumentError(
                f'{kind}: its parameters cannot all have the name "{options.name}"',
                location=here(),
                hint="omit the name: the options then apply to all parameters",
            )
