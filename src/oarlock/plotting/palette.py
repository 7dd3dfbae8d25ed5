"""Colors that color-blind readers can distinguish (Okabe and Ito, 2008), for light and dark backgrounds."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Look", "Tone", "legend_of", "looks_of", "tone_of"]


class Tone(NamedTuple):
    """The style of a line: colors for light, dark and unknown backgrounds, and the lengths of dashes and gaps, empty for a solid line."""

    number: int
    light: str
    dark: str
    either: str
    dashes: tuple[int, ...]


_COLORS = (
    ("#0072b2", "#56b4e9", "#3d9bdc"),  # blue
    ("#d55e00", "#ff8a4c", "#e8702a"),  # vermilion
    ("#009e73", "#2fc79a", "#1aa67d"),  # green
    ("#b45a8c", "#e69ac4", "#cc79a7"),  # purple
    ("#b37700", "#f0b429", "#d99a00"),  # orange
    ("#5b6470", "#b4bcc6", "#8a929c"),  # grey
)
_DASHES: tuple[tuple[int, ...], ...] = ((), (6, 3), (2, 3), (8, 3, 2, 3))


def tone_of(number: int) -> Tone:
    """Return the tone of curve `number`, counted from 0: a distinct color, or a distinct dash pattern after the last color."""
    light, dark, either = _COLORS[number % len(_COLORS)]
    return Tone(number % len(_COLORS), light, dark, either, _DASHES[number // len(_COLORS) % len(_DASHES)])


class Look(NamedTuple):
    """The look of a curve: its tone, whether its points are marked, and its name in the legend."""

    tone: Tone
    is_marked: bool
    name: str


def looks_of(runs: Sequence[str], parts: Sequence[str]) -> dict[tuple[str, str], Look]:
    """Return the looks of the curves of `runs` and `parts`.

    For a single run, each part has a color; otherwise each run has a color, and parts other than training have dashes and marks.
    """
    found = {}
    for row, run in enumerate(runs):
        for column, part in enumerate(parts):
            is_training = part == "training"
            if len(runs) == 1:
                tone, name = tone_of(column), part
            else:
                tone = tone_of(row)
                tone = tone if is_training else tone._replace(dashes=(5, 3))
                name = run if is_training or len(parts) == 1 else f"{run}, {part}"
            found[run, part] = Look(tone, not is_training, name)
    return found


def legend_of(drawn: Sequence[tuple[str, str]]) -> list[Look]:
    """Return the entries of the legend for curves given by run and part.

    They are the parts of a single run; otherwise an entry per run, and one per part other than training.
    """
    runs, parts = list(dict.fromkeys(run for run, _ in drawn)), list(dict.fromkeys(part for _, part in drawn))
    looks = looks_of(runs, parts)
    if len(runs) == 1:
        return [looks[key] for key in dict.fromkeys(drawn)]
    found = [Look(tone_of(row), False, run) for row, run in enumerate(runs)]
    if len(parts) == 1:
        return [look._replace(tone=looks[look.name, parts[0]].tone, is_marked=parts[0] != "training") for look in found]
    return found + [Look(_GREY._replace(dashes=(5, 3)), True, part) for part in parts if part != "training"]


_GREY = tone_of(len(_COLORS) - 1)
