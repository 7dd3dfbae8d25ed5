"""Resizing of signals, images and volumes."""

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.layer.window import Numbers, numbers
from oarlock.op.resizing import resize
from oarlock.registry.creator import require_type

__all__ = ["upsample"]

_MODES = {"bilinear": ("linear", 2), "trilinear": ("linear", 3), "bicubic": ("cubic", 2)}
"""The interpolation modes that PyTorch names by the number of axes."""


def upsample(
    x: Var,
    size: Numbers | None = None,
    *,
    scale: float | tuple[float, ...] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    name: str | None = None,
) -> Var:
    """Resize signals, images or volumes to `size`, or by the factor `scale`: float[n c ...s] -> float[n c ...t].

    One number applies to all axes. `mode` is "nearest", "nearest-exact", "linear", "cubic" or "area", as in `ol.op.resize`, or PyTorch's
    "bilinear", "trilinear" or "bicubic". Raises ArgumentError, and ShapeError for an input of another rank.

        y = ol.layer.upsample(image, scale=2, mode="bilinear")
    """
    x = require_type(x, "upsample: x")
    axes = len(x.shape or ()) - 2
    if not 1 <= axes <= 3:
        raise ShapeError(
            f"upsample: x must have one to three axes after its channels, not {x.type_text}", location=here(), given=[x.describe()]
        )
    kind, wanted = _MODES.get(mode, (mode, axes))
    if wanted != axes:
        raise ArgumentError(f'upsample: mode "{mode}" needs {wanted} axes, not {axes}', location=here(), given=[x.describe()])
    sizes = None if size is None else numbers(size, axes, "size", least=1)
    scales = None if scale is None else (float(scale),) * axes if isinstance(scale, int | float) else tuple(map(float, scale))
    return resize(x, size=sizes, scale=scales, mode=kind, align_corners=align_corners, name=name)
