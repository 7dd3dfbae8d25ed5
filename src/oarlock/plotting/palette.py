"""Colors that are told apart whatever colors a reader sees (Okabe and Ito, 2008), for light and for dark backgrounds."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Look", "Tone", "legend_of", "looks_of", "tone_of"]


class Tone(NamedTuple):
    """How a line looks: a color on light and one on dark, one on either, and the lengths of dashes and gaps, empty for a whole line."""

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
    """The tone of curve `number`, from 0: a color each, and dashes from where there are no more colors."""
    light, dark, either = _COLORS[number % len(_COLORS)]
    return Tone(number % len(_COLORS), light, dark, either, _DASHES[number // len(_COLORS) % len(_DASHES)])


class Look(NamedTuple):
    """How a curve is drawn: its tone, whether its points are marked, and its name in the legend."""

    tone: Tone
    is_marked: bool
    name: str


def looks_of(runs: Sequence[str], parts: Sequence[str]) -> dict[tuple[str, str], Look]:
    """The looks of the curves of `runs` and `parts`: a color for each part of a single run, or else for each run, with dashes and marks
    for what is not training.
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
    """The entries of the legend of curves, each by its run and its part: the parts of a single run, or else one entry for each run, and one
    for each part that is not training.
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
