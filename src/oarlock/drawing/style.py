"""The colors and sizes of drawings, and style sheets made from them."""

__all__ = ["COLORS", "HEAD", "LANES", "PITCH", "css_classes", "css_variables"]

COLORS = {  # by class: for light and for dark backgrounds
    "page": ("#ffffff", "#0d1117"),
    "outer": ("#f6f8fa", "#161b22"),
    "inner": ("#ddf4ff", "#0c2d4d"),
    "border": ("#d1d9e0", "#3d444d"),
    "line": ("#8c959f", "#6e7681"),
    "text": ("#1f2328", "#e6edf3"),
    "note": ("#59636e", "#9198a1"),
    "ours": ("#0969da", "#4493f8"),
    "peer": ("#afb8c1", "#545d68"),
    "value": ("#0550ae", "#79c0ff"),
    "parameter": ("#8250df", "#d2a8ff"),
    "state": ("#1a7f37", "#3fb950"),
    "forward": ("#0969da", "#4493f8"),
    "backward": ("#bc4c00", "#f0883e"),
    "update": ("#1a7f37", "#3fb950"),
    "measure": ("#8250df", "#ab7df8"),
}
LANES = ("#4c8dff", "#e3855a", "#3fa66b", "#b07cd8", "#c9a227", "#4bb3b8", "#d8709a", "#8c959f", "#7a8cff", "#9aa83a")
"""The colors of lanes, visible on light and dark backgrounds."""
HEAD = 24
"""The height of an item's line, in pixels."""
PITCH = 11
"""The distance between lanes, in pixels."""


def css_variables(scope: str) -> str:
    """Return the colors as CSS variables of the elements that `scope` selects, by the reader's scheme; and the lanes."""
    light, dark = ("".join(f"--{name}:{pair[number]};" for name, pair in COLORS.items()) for number in (0, 1))
    scheme = f"{scope}{{color-scheme:light dark;{light}}}@media (prefers-color-scheme:dark){{{scope}{{{dark}}}}}"
    return scheme + _lanes(scope)


def css_classes(scope: str) -> str:
    """Return the colors as CSS classes inside `scope`, such as `note` for filled and `note-line` for outlined elements; and the lanes."""
    light, dark = (
        "".join(f"{scope} .{name}{{fill:{pair[number]}}}{scope} .{name}-line{{stroke:{pair[number]}}}" for name, pair in COLORS.items())
        for number in (0, 1)
    )
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}{_lanes(scope)}"


def _lanes(scope: str) -> str:
    colors = "".join(f"{scope} .k{number}{{stroke:{color}}}" for number, color in enumerate(LANES))
    return f"{colors}{scope} [class^=k]{{fill:none;stroke-width:1.5}}"
