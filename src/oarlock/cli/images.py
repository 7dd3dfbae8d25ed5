"""Small images drawn in a terminal, two characters per pixel."""

import numpy
from rich.columns import Columns
from rich.console import Console
from rich.text import Text

__all__ = ["draw_predictions"]

_SHADES = " .:-=+*#%@"


def draw_predictions(
    console: Console, images: numpy.ndarray, labels: numpy.ndarray, read: numpy.ndarray, confidence: numpy.ndarray
) -> None:
    """Draw a few images with their predicted labels: one per label, and one misclassified image last, if there is one.

    images: float[n, c, h, w] from 0 to 1; labels, read: int64[n]; confidence: float[n] from 0 to 1.
    """
    wrong = numpy.flatnonzero(labels != read)[:1]
    right = numpy.flatnonzero(labels == read)
    one_each = [index for label in numpy.unique(labels) for index in right[labels[right] == label][:1]]
    room = max(2, min(8, console.width // (2 * images.shape[-1] + 4)))
    chosen = [*one_each[: room - len(wrong)], *wrong]
    console.print(
        Columns(
            [_draw(images[index, 0], int(labels[index]), int(read[index]), float(confidence[index])) for index in chosen], padding=(0, 3)
        )
    )
    console.print()


def _draw(image: numpy.ndarray, label: int, read: int, confidence: float) -> Text:
    levels = numpy.clip((image * (len(_SHADES) - 1)).round().astype(int), 0, len(_SHADES) - 1)
    lines = ["".join(_SHADES[level] * 2 for level in row) for row in levels]
    text = Text("\n".join(lines) + "\n")
    text.append(f"read {read} ({confidence:.0%})", style="green" if read == label else "red")
    text.append("" if read == label else f", is {label}", style="red")
    return text
