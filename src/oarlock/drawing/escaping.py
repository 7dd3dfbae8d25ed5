"""Text in markup: the one place where it becomes part of a drawing.

A program may be a stranger's, and so is every name, line and label in it. All text of a drawing goes through `escaped`, and nothing else
that a program says gets into markup: no address, no style, no name of an element.
"""

import re
from html import escape

__all__ = ["escaped"]

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """`text` as the content of an element, or of an attribute in double quotes, of HTML and XML alike."""
    return escape(_NOT_XML.sub("\ufffd", text), quote=True).replace("\n", "&#10;")
