"""Arrays as images in a page."""

import base64
import struct
import zlib

import numpy

__all__ = ["as_pixels", "picture_of"]

_LARGEST, _SMALLEST, _SHOWN = 512, 4, 128  # pixels per side: the limits for images, and the size to draw


def as_pixels(rows: numpy.ndarray) -> numpy.ndarray | None:
    """Return the rows of an array as images, uint8[n h w] or uint8[n h w 3], or None if they do not look like images.

    Rows must be [h w], [1 h w], [3 h w], [h w 1] or [h w 3], with 4 to 512 pixels per side. Values from 0 to 1 or 0 to 255 are not
    rescaled, others are scaled from the minimum to the maximum of all rows; non-finite values are black.
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


def picture_of(pixels: numpy.ndarray, alt: str) -> str:
    """Return pixels, uint8[h w] or uint8[h w 3], as an HTML image with the alternative text `alt`, which must be escaped."""
    height, width = pixels.shape[:2]
    return f'<img class="pixels" width="{width}" height="{height}" alt="{alt}" src="{_png(pixels)}">'


def _png(pixels: numpy.ndarray) -> str:
    """Encode pixels as the data URL of a PNG (ISO 15948)."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")):
        data += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}"
