"""A whole page around a part of one, with a content security policy."""

import base64
import hashlib
from pathlib import Path

from oarlock.drawing.escaping import escaped
from oarlock.drawing.style import css_variables

__all__ = ["page"]

_SCRIPT = (Path(__file__).parent / "program.js").read_text(encoding="utf-8")
_STYLE = css_variables("body") + "body{margin:0;padding:16px 20px 220px;background:var(--page)}"


def page(title: str, content: str) -> str:
    """Return an HTML page. Its policy allows no requests, and no script except the one with the given digest."""
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title><style>{_STYLE}</style></head>\n<body>{content}<script>{_SCRIPT}</script></body></html>\n"
    )
