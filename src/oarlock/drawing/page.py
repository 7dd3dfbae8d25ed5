"""A part of a page as a whole page, which runs no script but ours and asks no network."""

import base64
import hashlib
from pathlib import Path

from oarlock.drawing.escaping import escaped
from oarlock.drawing.style import css_variables

__all__ = ["page"]

_SCRIPT = (Path(__file__).parent / "program.js").read_text(encoding="utf-8")
_STYLE = css_variables("body") + "body{margin:0;padding:16px 20px 220px;background:var(--page)}"


def page(title: str, content: str) -> str:
    """An HTML page. Browsers hold it to its policy: no address is opened, and no script runs but the one with the digest that it names."""
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title><style>{_STYLE}</style></head>\n<body>{content}<script>{_SCRIPT}</script></body></html>\n"
    )
