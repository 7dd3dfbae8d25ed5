"""An array as a picture inside a page."""

import base64
import struct
import zlib

import numpy

__all__ = ["as_pixels", "picture_of"]

_LARGEST, _SMALLEST, _SHOWN = 512, 4, 128  # pixels a side: of what is taken for an image, and of what is shown


def as_pixels(rows: numpy.ndarray) -> numpy.ndarray | None:
    """The rows of an array that look like images, as uint8[n h w] or uint8[n h w 3]; None where they do not.

    They are [h w], [1 h w], [3 h w], [h w 1] or [h w 3], of 4 to 512 pixels a side. Numbers from 0 to 1 and from 0 to 255 are taken as they
    are, others from the least to the greatest of all rows; those that are not finite are black.
    """
    if rows.dtype.kind not in "biuf" or rows.ndim not in (3, 4) or not len(rows):
        return None
    values = rows
    if values.ndim == 4:
        if values.shape[1] in (1, 3) and values.shape[3] not in (1, 3):
            values = numpy.moveaxis(values, 1, 3)
        if values.shape[3] not in (1, 3):
            return None
        values = values[..., 0] if values.shape[3] == 1 else values
    if not all(_SMALLEST <= side <= _LARGEST for side in values.shape[1:3]):
        return None
    values = values[:, :: -(-values.shape[1] // _SHOWN), :: -(-values.shape[2] // _SHOWN)].astype("float64")
    finite = values[numpy.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low >= 0 and high <= 255 and (high > 20 or rows.dtype.kind == "u"):
        low, high = 0.0, 255.0
    with numpy.errstate(all="ignore"):
        scaled = (values - low) / (high - low or 1.0)
    return (numpy.nan_to_num(scaled, nan=0.0, posinf=1.0, neginf=0.0).clip(0, 1) * 255).round().astype("uint8")


def picture_of(pixels: numpy.ndarray, told: str) -> str:
    """Pixels, uint8[h w] or uint8[h w 3], as an element; `told` says what they are to who does not see them, and is escaped already."""
    height, width = pixels.shape[:2]
    return f'<img class="pixels" width="{width}" height="{height}" alt="{told}" src="{_png(pixels)}">'


def _png(pixels: numpy.ndarray) -> str:
    """Pixels as the address of a PNG that holds them (ISO 15948)."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")):
        data += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}"
