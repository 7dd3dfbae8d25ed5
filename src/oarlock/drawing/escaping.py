"""Escaping text for markup, in one place.

Programs, including their names, source lines and labels, are untrusted. All text of a drawing goes through `escaped`, and nothing else of
a program becomes markup: no URLs, styles or element names.
"""

import re
from html import escape

__all__ = ["escaped"]

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """Escape `text` for an element or a double-quoted attribute, in both HTML and XML."""
    return escape(_NOT_XML.sub("\ufffd", text), quote=True).replace("\n", "&#10;")
