"""Folders of images, with a subfolder per class."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy

from oarlock.data.table import Table
from oarlock.errors import ArgumentError, DataError, MissingFileError
from oarlock.registry.range_check import require_count

__all__ = ["ImageFolder"]

_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
_LARGEST = 2**26  # pixels of one image


class ImageFolder(Table):
    """The images in `path`, whose subfolders are classes: image float32[channels, height, width] from 0 (black) to 1, label int64[].

    Classes are numbered in name order (`classes`), and images are sorted by path. `size` is the (height, width) to which images are
    resized; without it, all images must have the same size. `channels` is 1 for grayscale, 3 for color. An image is decoded when its row
    is read. Raises ArgumentError, MissingFileError if there is no folder, DataError if it has no images, for a file that is not an image,
    for images of different sizes, or if Pillow is not installed.
    """

    names = ("image", "label")

    def __init__(self, path: str | Path, *, size: tuple[int, int] | None = None, channels: int = 3):
        if channels not in (1, 3):
            raise ArgumentError(f"channels must be 1 or 3, not {channels!r:.40}")
        if size is not None:
            if not isinstance(size, tuple | list) or len(size) != 2:
                raise ArgumentError(f"size must be (height, width), not {size!r:.60}", hint="ol.data.ImageFolder(path, size=(64, 64))")
            size = (require_count("the height in size", size[0], most=2**14), require_count("the width in size", size[1], most=2**14))
        self.path, self.size, self.channels = Path(path), size, channels
        if not self.path.is_dir():
            raise MissingFileError(f'there is no folder "{path}"')
        self.classes = sorted(folder.name for folder in self.path.iterdir() if folder.is_dir() and not folder.name.startswith("."))
        files = [
            (file, label)
            for label, name in enumerate(self.classes)
            for file in sorted((self.path / name).rglob("*"))
            if file.suffix.lower() in _SUFFIXES
        ]
        if not files:
            raise DataError(
                f'"{path}" contains no images',
                contract="a folder for each class, with images in it",
                hint=f"use file names that end with {', '.join(_SUFFIXES)}",
            )
        self.files = [file for file, _ in files]
        self.labels = numpy.array([label for _, label in files], "int64")

    def __len__(self) -> int:
        return len(self.files)

    def take(self, rows: numpy.ndarray, names: Collection[str] | None = None) -> dict[str, object]:
        """See `Table.take`."""
        images = [self._decode(self.files[row]) for row in rows]
        for row, image in zip(rows, images, strict=True):
            if image.shape != images[0].shape:
                raise DataError(
                    f'"{self.files[row].name}" is {image.shape[1]} x {image.shape[2]}, but "{self.files[rows[0]].name}" is '
                    f"{images[0].shape[1]} x {images[0].shape[2]}",
                    hint="resize them with ol.data.ImageFolder(path, size=(64, 64))",
                )
        return {"image": numpy.stack(images), "label": self.labels[rows]}

    def _decode(self, file: Path) -> numpy.ndarray:
        image_module = _pillow()
        try:
            with image_module.open(file) as opened:
                if opened.width * opened.height > _LARGEST:
                    raise DataError(f'"{file.name}" has {opened.width} x {opened.height} pixels, more than {_LARGEST}')
                if opened.mode.startswith("I"):  # 16-bit grayscale, which convert() would clip at 255
                    opened = image_module.fromarray((numpy.asarray(opened) // 257).clip(0, 255).astype("uint8"))
                image = opened.convert("L" if self.channels == 1 else "RGB")
        except (OSError, SyntaxError, ValueError, image_module.DecompressionBombError) as error:
            reason = str(error).splitlines() or [type(error).__name__]
            raise DataError(f'"{file.name}" is not a readable image', given=reason[:1]) from error
        if self.size is not None:
            image = image.resize((self.size[1], self.size[0]), image_module.Resampling.BILINEAR)
        pixels = numpy.asarray(image, "float32") / numpy.float32(255)
        return pixels[None] if self.channels == 1 else numpy.ascontiguousarray(pixels.transpose(2, 0, 1))


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise DataError("reading images needs Pillow, which is not installed", hint='pip install "oarlock[images]"') from None
    return Image
